"""Metrics for Prometheus, on an address of their own: https://prometheus.io/docs/concepts/metric_types

They are read off the log's events and the sandbox's status when somebody asks, so that nothing else
knows of them. Loaded only where METRICS is set.
"""

import logging
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from function.observability import logs
from sandbox import PolicyWatch, Sandbox

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class _Programs(logging.Handler):
    """Counts what the log says of programs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._ended = Counter(
            "calcubot_programs", "Programs, by how they ended", ["outcome"], registry=registry
        )
        self._seconds = Histogram(
            "calcubot_program_seconds",
            "From a request to its answer",
            buckets=SECONDS,
            registry=registry,
        )
        self._cpu_seconds = Histogram(
            "calcubot_program_cpu_seconds",
            "CPU time of programs",
            buckets=SECONDS,
            registry=registry,
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Count one event."""
        fields = getattr(record, "fields", {})
        if "outcome" in fields:
            self._ended.labels(fields["outcome"]).inc()
            self._seconds.observe(fields["ms"] / 1000)
            self._cpu_seconds.observe(fields["cpu_ms"] / 1000)


class _Status(Collector):
    """Reads the status of the sandbox and of its policy when it is asked."""

    def __init__(self, sandbox: Sandbox, watch: PolicyWatch) -> None:
        self._sandbox = sandbox
        self._watch = watch

    def collect(self) -> Iterator[Metric]:
        """Yield what is in force now."""
        status = self._sandbox.status()
        serving = status["serving"]
        yield GaugeMetricFamily("calcubot_serving", "1 if programs can be run", int(serving))
        if not serving:
            return
        prepared, running = status["guests"]["prepared"], status["guests"]["running"]
        yield GaugeMetricFamily("calcubot_guests_prepared", "Guests that wait confined", prepared)
        yield GaugeMetricFamily("calcubot_guests_running", "Programs that run now", running)
        restarts = status["zygote"]["restarts"]
        yield CounterMetricFamily("calcubot_zygote_restarts", "Zygotes that died", restarts)
        layers = GaugeMetricFamily("calcubot_layer", "1 if the layer is in force", labels=["layer"])
        for name, report in status["layers"].items():
            layers.add_metric([name], int(bool(report)))
        yield layers
        policy = GaugeMetricFamily("calcubot_policy", "The policy in force", labels=["sha256"])
        policy.add_metric([self._sandbox.policy.sha256], 1)
        yield policy
        in_file = self._watch.status()
        reloads = CounterMetricFamily(
            "calcubot_policy_reloads",
            "Edits of the policy, by what became of them",
            labels=["result"],
        )
        for result in ("taken_up", "refused"):
            reloads.add_metric([result], in_file["reloads"][result])
        yield reloads
        is_refused = int("refused" in in_file)
        yield GaugeMetricFamily(
            "calcubot_policy_refused", "1 if the file as it stands is not in force", is_refused
        )


def serve(address: str, sandbox: Sandbox, watch: PolicyWatch) -> None:
    """Answer Prometheus at HOST:PORT, in a thread of its own. Raises ValueError with the cure."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"METRICS is {address!r}: write it as HOST:PORT, such as 127.0.0.1:9100")
    registry = CollectorRegistry()
    registry.register(_Status(sandbox, watch))
    try:
        start_http_server(int(port), host, registry)
    except (OSError, OverflowError) as error:
        raise ValueError(f"METRICS is {address!r}, and there it cannot serve: {error}") from None
    logs.log.addHandler(_Programs(registry))
