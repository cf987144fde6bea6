"""Metrics for Prometheus, on an address of their own: https://prometheus.io/docs/concepts/metric_types

Counters follow the events; gauges are read when somebody asks. Loaded only where METRICS is set.
"""

import logging
import os
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client import CollectorRegistry, Counter, Histogram, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from function import __version__
from function.observability import events

log = logging.getLogger(__name__)

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

Status = Callable[[], Mapping[str, Any]]


def check(address: tuple[str, int]) -> None:
    """Raise ValueError where METRICS cannot be served at.

    A master that replaces another (SIGUSR2) shares the address with it.
    """
    try:
        if "GUNICORN_PID" not in os.environ:
            socket.create_server(address).close()  # fails where another program listens
    except (OSError, OverflowError) as error:
        raise ValueError(f"METRICS is {address}, and there it cannot serve: {error}") from None


def serve(address: tuple[str, int], **statuses: Status | None) -> None:
    """Answer Prometheus at an address from now on, in a thread of its own.

    `sandbox`, `policy`, `store` and `outbox` return the status of what bears that name.
    """
    registry = CollectorRegistry()
    registry.register(_Gauges({name: read for name, read in statuses.items() if read}))
    events.listeners["metrics"] = _Counts(registry).count
    answer = make_wsgi_app(registry)

    def answer_head_too(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        is_head = environ["REQUEST_METHOD"] == "HEAD"
        body = answer(environ | {"REQUEST_METHOD": "GET"} if is_head else environ, start_response)
        return [] if is_head else body

    server = _Server(address, _Silent)
    server.set_app(answer_head_too)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()


class _Server(ThreadingWSGIServer):
    allow_reuse_port = True  # a worker begins before the one that it replaces has ended
    server_name, server_port = "calcubot", 0

    def server_bind(self) -> None:
        """Bind without asking for a name of the address, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.setup_environ()


class _Silent(WSGIRequestHandler):
    timeout = 10

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Counts:
    """Counts events; see `events`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, what: str, *labels: str) -> tuple[Counter, tuple[str, ...]]:
            return Counter(f"calcubot_{name}", what, labels, registry=registry), labels

        def histogram(name: str, what: str) -> Histogram:
            return Histogram(f"calcubot_{name}", what, buckets=SECONDS, registry=registry)

        self._counters = {
            "program": counter("programs", "Programs, by how they ended", "outcome"),
            "response": counter("http_requests", "By route and status", "route", "status"),
            "delivery": counter("deliveries", "Answers by call, by result", "result"),
        }
        unanswered = counter("unanswered", "Requests refused, ignored or limited", "event")
        self._counters |= dict.fromkeys(("refused", "ignored", "limited"), unanswered)
        self._seconds = histogram("program_seconds", "From a request to its answer")
        self._cpu_seconds = histogram("program_cpu_seconds", "CPU time of programs")

    def count(self, event: str, _level: int, fields: Mapping[str, Any]) -> None:
        """Count one event."""
        if event in self._counters:
            counter, labels = self._counters[event]
            counter.labels(*({"event": event, **fields}[label] for label in labels)).inc()
        if event == "program":
            self._seconds.observe(fields["ms"] / 1000)
            self._cpu_seconds.observe(fields["cpu_ms"] / 1000)


def _layers(statuses: Any) -> dict[str, bool]:
    return {name: bool(detail) for name, detail in statuses["sandbox"]["layers"].items()}


def _of_zygotes(group: str, name: str) -> Callable[[Any], int]:
    """Read a number off the status of a zygote: the sum, where one for libraries is another."""

    def read(statuses: Any) -> int:
        sandbox = statuses["sandbox"]
        more = sandbox.get("libraries", {}).get(group, {})
        return int(sandbox[group][name] + more.get(name, 0))

    return read


# Name, what it is, its one label, and how it is read off the statuses: a number, or one by label.
_GAUGES: tuple[tuple[str, str, str, Callable[[Any], Any]], ...] = (
    ("build_info", "Version", "version", lambda _: {__version__: 1}),
    ("serving", "1 if programs can be run", "", lambda s: s["sandbox"]["serving"]),
    ("libraries", "1 if programs find them", "", lambda s: s["sandbox"]["libraries"]["serving"]),
    ("guests_prepared", "Guests that wait", "", _of_zygotes("guests", "prepared")),
    ("guests_running", "Programs that run", "", _of_zygotes("guests", "running")),
    ("layer", "1 if it is in force", "layer", _layers),
    ("policy", "The policy in force", "sha256", lambda s: {s["policy"]["sha256"]: 1}),
    ("policy_refused", "1 if the file as it stands is", "", lambda s: "refused" in s["policy"]),
    ("store_degraded", "1 if memory stands in", "", lambda s: s["store"]["state"] != "ok"),
    ("outbox_waiting", "Answers for Telegram", "", lambda s: s["outbox"]["waiting"]),
    ("outbox_bytes", "Their updates' size", "", lambda s: s["outbox"]["bytes"]),
    ("outbox_oldest_seconds", "The oldest's age", "", lambda s: s["outbox"]["oldest_seconds"]),
)
_COUNTERS: tuple[tuple[str, str, str, Callable[[Any], Any]], ...] = (
    ("zygote_restarts", "Zygotes that died", "", _of_zygotes("zygote", "restarts")),
    (
        "policy_reloads",
        "Edits of the policy",
        "result",
        lambda s: {name: n for name, n in s["policy"]["reloads"].items() if name != "last"},
    ),
    ("outbox_dropped", "Answers given up as too many", "", lambda s: s["outbox"]["dropped"]),
)


class _Gauges(Collector):
    """Reads the statuses when it is asked; one that cannot be read costs no other metric."""

    def __init__(self, statuses: Mapping[str, Status]) -> None:
        self._statuses = statuses

    def collect(self) -> Iterator[Metric]:
        """Yield what is there now."""
        now = {}
        for name, read in self._statuses.items():
            try:
                now[name] = read()
            except Exception:
                log.exception("the status of the %s cannot be read", name)
        for kind, metrics in ((GaugeMetricFamily, _GAUGES), (CounterMetricFamily, _COUNTERS)):
            for name, what, label, number in metrics:
                with suppress(LookupError):
                    value = number(now)
                    metric = kind(f"calcubot_{name}", what, labels=[label] if label else [])
                    for key, each in (value if label else {"": value}).items():
                        metric.add_metric([key] if label else [], float(each))
                    yield metric
