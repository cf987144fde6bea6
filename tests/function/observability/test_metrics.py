import logging
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from function.observability import events, metrics
from function.state.memory import Memory
from sandbox.fork_server.outcome import Outcome
from sandbox.policy_watch import PolicyWatch
from sandbox.sandbox import Sandbox
from tests.conftest import ROOT
from tests.ports import free_port


@pytest.fixture
def served():
    """Return a function that serves statuses as metrics, and returns one that reads them."""
    kept = dict(events.listeners)

    def serve(
        sandbox: Any, watch: Any = None, store: Any = None, outbox: Any = None
    ) -> Callable[..., list[str]]:
        port = free_port()
        watch = watch or PolicyWatch(sandbox, ROOT / "policy.yaml")
        store = store or Memory().status
        statuses = {"sandbox": sandbox.status, "policy": watch.status, "store": store}
        metrics.serve(("127.0.0.1", port), **statuses, outbox=outbox)
        url = f"http://127.0.0.1:{port}/metrics"
        return lambda method="GET": (
            urllib.request.urlopen(urllib.request.Request(url, method=method))
            .read()
            .decode()
            .splitlines()
        )

    yield serve
    events.listeners.clear()
    events.listeners.update(kept)


def test_programs_are_counted_by_outcome_with_their_times(served, sandbox: Sandbox) -> None:
    read = served(sandbox)
    events.program(Outcome("ok", cpu_seconds=0.002), 1, 0.004)
    events.program(Outcome("ok", cpu_seconds=0.002), 2, 0.004)
    events.program(Outcome("cpu_limit", cpu_seconds=2.0), 2, 2.1)
    lines = read()
    assert 'calcubot_programs_total{outcome="ok"} 2.0' in lines
    assert 'calcubot_programs_total{outcome="cpu_limit"} 1.0' in lines
    assert 'calcubot_program_seconds_bucket{le="0.005"} 2.0' in lines
    assert 'calcubot_program_cpu_seconds_bucket{le="2.5"} 3.0' in lines


def test_what_is_in_force_is_read_when_it_is_asked_for(served, sandbox: Sandbox) -> None:
    lines = served(sandbox)()
    assert "calcubot_serving 1.0" in lines
    assert 'calcubot_layer{layer="seccomp"} 1.0' in lines
    assert f'calcubot_policy{{sha256="{sandbox.policy.sha256}"}} 1.0' in lines
    assert "calcubot_guests_running 0.0" in lines
    assert "calcubot_zygote_restarts_total 0.0" in lines
    assert "calcubot_libraries 1.0" not in lines
    assert any(re.fullmatch(r"calcubot_guests_prepared [1-4]\.0", line) for line in lines)


def test_a_zygote_for_libraries_is_counted_too(served, maths: Sandbox) -> None:
    lines = served(maths)()
    assert "calcubot_libraries 1.0" in lines
    assert any(re.fullmatch(r"calcubot_guests_prepared [2-8]\.0", line) for line in lines)


def test_edits_of_the_policy_are_counted(served, sandbox: Sandbox, tmp_path: Path) -> None:
    watch = PolicyWatch(sandbox, tmp_path / "policy.yaml")
    read = served(sandbox, watch)
    assert "calcubot_policy_refused 0.0" in read()
    watch.look()  # there is no file
    lines = read()
    assert "calcubot_policy_refused 1.0" in lines
    assert 'calcubot_policy_reloads_total{result="refused"} 1.0' in lines
    assert 'calcubot_policy_reloads_total{result="reloaded"} 0.0' in lines


def nothing() -> dict[str, Any]:
    raise RuntimeError


def test_a_sandbox_that_does_not_serve_says_so_and_the_rest_is_there(served) -> None:
    stopped = SimpleNamespace(status=lambda: {"serving": False})
    watch = SimpleNamespace(status=lambda: {"sha256": "abc", "reloads": {"last": "none"}})
    lines = served(stopped, watch)()
    assert "calcubot_serving 0.0" in lines
    assert 'calcubot_policy{sha256="abc"} 1.0' in lines


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_read_costs_no_other_metric(served) -> None:
    broken = SimpleNamespace(status=nothing)
    lines = served(broken, broken, lambda: {"state": "degraded"}, nothing)()
    assert "calcubot_store_degraded 1.0" in lines
    assert any(line.startswith("calcubot_build_info{") for line in lines)


def test_store_outbox_deliveries_and_requests_are_there(served, sandbox: Sandbox) -> None:
    waiting = {"waiting": 3, "bytes": 9, "oldest_seconds": 41, "dropped": 2}
    read = served(sandbox, outbox=lambda: waiting)
    events.emit("response", logging.DEBUG, route="/webhook", status=200)
    events.emit("delivery", result="ok")
    events.emit("refused", status=401, path="/webhook", reason="x")
    lines = read()
    assert "calcubot_store_degraded 0.0" in lines
    assert "calcubot_outbox_waiting 3.0" in lines
    assert "calcubot_outbox_oldest_seconds 41.0" in lines
    assert "calcubot_outbox_dropped_total 2.0" in lines
    assert 'calcubot_http_requests_total{route="/webhook",status="200"} 1.0' in lines
    assert 'calcubot_deliveries_total{result="ok"} 1.0' in lines
    assert 'calcubot_unanswered_total{event="refused"} 1.0' in lines


def test_head_is_answered_without_a_body(served, sandbox: Sandbox) -> None:
    assert served(sandbox)("HEAD") == []


def test_a_successor_shares_the_address_and_no_other_program_does(
    served, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "127.0.0.1", free_port()
    metrics.check(address)
    for _ in range(2):
        metrics.serve(address, sandbox=sandbox.status)
    with pytest.raises(ValueError, match=r"METRICS is .*cannot serve: .*in use"):
        metrics.check(address)
    monkeypatch.setenv("GUNICORN_PID", "1")
    metrics.check(address)


def test_an_address_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="METRICS is"):
        metrics.check(("256.1.1.1", 1))
