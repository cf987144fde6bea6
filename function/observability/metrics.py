"""Metrics for Prometheus, on an address of their own: https://prometheus.io/docs/concepts/metric_types

Counters follow the events; gauges are read when somebody asks. Loaded only where METRICS is set.
"""

import logging
import os
import platform
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, Counter, Histogram, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from function import __version__
from function.observability import events

log = logging.getLogger(__name__)

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

Status = Callable[[], Mapping[str, Any]]

_listening: dict[str, socket.socket] = {}


def listen(address: str) -> socket.socket:
    """Return a socket that listens at HOST:PORT, the same each time. Raises ValueError.

    Called in the master: workers inherit it, so that one may begin before another has ended. A
    master that replaces another (SIGUSR2) shares the address with it, and no other program does.
    """
    if address in _listening:
        return _listening[address]
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"METRICS is {address!r}: write it as HOST:PORT, such as 127.0.0.1:9100")
    try:
        if "GUNICORN_PID" not in os.environ:
            _bind(host, int(port), is_shared=False).close()  # fails where another program listens
        _listening[address] = _bind(host, int(port), is_shared=True)
    except (OSError, OverflowError) as error:
        raise ValueError(f"METRICS is {address!r}, and there it cannot serve: {error}") from None
    return _listening[address]


def _bind(host: str, port: int, *, is_shared: bool) -> socket.socket:
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, is_shared)
        listening.bind((host, port))
        listening.listen()
    except BaseException:
        listening.close()
        raise
    return listening


def serve(
    address: str, sandbox: Status, watch: Status, store: Status, outbox: Status | None = None
) -> None:
    """Answer Prometheus at an address from now on, in a thread of its own.

    The others return the status of Sandbox, PolicyWatch, Store and Outbox.
    """
    registry = CollectorRegistry()
    registry.register(_Gauges(_service(sandbox), _policy(watch), _store(store), _outbox(outbox)))
    events.listeners.append(_Counts(registry).count)
    answer = make_wsgi_app(registry)

    def answer_head_too(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        is_head = environ["REQUEST_METHOD"] == "HEAD"
        body = answer(environ | {"REQUEST_METHOD": "GET"} if is_head else environ, start_response)
        return [] if is_head else body

    server = _Server(("", 0), _Silent, bind_and_activate=False)
    server.socket.close()
    server.socket = listen(address)
    server.setup_environ()
    server.set_app(answer_head_too)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    server_name, server_port = "calcubot", 0


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Counts:
    """Counts events."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"calcubot_{name}", what, labels, registry=registry)

        def histogram(name: str, what: str) -> Histogram:
            return Histogram(f"calcubot_{name}", what, buckets=SECONDS, registry=registry)

        self._programs = counter("programs", "Programs, by how they ended", "outcome")
        self._seconds = histogram("program_seconds", "From a request to its answer")
        self._cpu_seconds = histogram("program_cpu_seconds", "CPU time of programs")
        by_route, by_result = ("route", "status"), ("result",)
        self._by_name = {
            "response": (counter("http_requests", "By route and status", *by_route), by_route),
            "delivery": (
                counter("deliveries", "Answers, by result", *by_result),
                by_result,
            ),
        }
        self._unanswered = counter("unanswered", "Requests refused, ignored or limited", "event")

    def count(self, event: str, fields: Mapping[str, Any]) -> None:
        """Count one event; see `events`."""
        if event == "program":
            self._programs.labels(fields["outcome"]).inc()
            self._seconds.observe(fields["ms"] / 1000)
            self._cpu_seconds.observe(fields["cpu_ms"] / 1000)
        elif event in self._by_name:
            counter, labels = self._by_name[event]
            counter.labels(*(fields[label] for label in labels)).inc()
        elif event in ("refused", "ignored", "limited"):
            self._unanswered.labels(event).inc()


Source = Callable[[], Iterator[Metric]]


class _Gauges(Collector):
    """Reads what is in force when it is asked; a source that cannot be read costs no other."""

    def __init__(self, *sources: Source) -> None:
        self._sources = (_build, *sources)

    def collect(self) -> Iterator[Metric]:
        """Yield what is in force now."""
        for source in self._sources:
            try:
                yield from list(source())
            except Exception:
                log.exception("a metric cannot be read")


def _gauge(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(f"calcubot_{name}", what, value)


def _labelled(kind: Any, name: str, what: str, label: str, values: Mapping[str, float]) -> Metric:
    metric: Metric = kind(f"calcubot_{name}", what, labels=[label])
    for key, value in values.items():
        metric.add_metric([key], value)  # type: ignore[attr-defined]
    return metric


def _build() -> Iterator[Metric]:
    build = GaugeMetricFamily("calcubot_build_info", "Versions", labels=["version", "python"])
    build.add_metric([__version__, platform.python_version()], 1)
    yield build


def _service(status: Status) -> Source:
    def read() -> Iterator[Metric]:
        now = status()
        yield _gauge("serving", "1 if programs can be run", int(now["serving"]))
        if now["serving"]:
            guests, layers = now["guests"], {k: int(bool(v)) for k, v in now["layers"].items()}
            yield _gauge("guests_prepared", "Guests that wait confined", guests["prepared"])
            yield _gauge("guests_running", "Programs that run now", guests["running"])
            restarts = now["zygote"]["restarts"]
            yield CounterMetricFamily("calcubot_zygote_restarts", "Zygotes that died", restarts)
            is_on = "1 if the layer is in force"
            yield _labelled(GaugeMetricFamily, "layer", is_on, "layer", layers)

    return read


def _policy(status: Status) -> Source:
    def read() -> Iterator[Metric]:
        now = status()
        in_force = {now["sha256"]: 1}
        yield _labelled(GaugeMetricFamily, "policy", "The policy in force", "sha256", in_force)
        edits = {name: n for name, n in now["reloads"].items() if name != "last"}
        what = "Edits of the policy, by what became of them"
        yield _labelled(CounterMetricFamily, "policy_reloads", what, "result", edits)
        is_refused = int("refused" in now)
        yield _gauge("policy_refused", "1 if the file as it stands is not in force", is_refused)

    return read


def _store(status: Status) -> Source:
    def read() -> Iterator[Metric]:
        is_degraded = int(status()["state"] != "ok")
        yield _gauge("store_degraded", "1 if the store is lost and memory stands in", is_degraded)

    return read


def _outbox(status: Status | None) -> Source:
    def read() -> Iterator[Metric]:
        now = status() if status else {"waiting": 0, "bytes": 0, "oldest_seconds": 0, "dropped": 0}
        yield _gauge("outbox_waiting", "Answers that wait for Telegram", now["waiting"])
        yield _gauge("outbox_bytes", "What waits, in bytes", now["bytes"])
        yield _gauge("outbox_oldest_seconds", "Since when the oldest waits", now["oldest_seconds"])
        what = "Answers given up, because too much waited"
        yield CounterMetricFamily("calcubot_outbox_dropped", what, now["dropped"])

    return read
