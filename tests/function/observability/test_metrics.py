import logging
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from function.observability import logs, metrics
from sandbox.fork_server.outcome import Outcome
from sandbox.policy_watch import PolicyWatch
from sandbox.sandbox import Sandbox
from tests.conftest import ROOT
from tools.serve import free_port


@pytest.fixture
def served():
    """Return a function that serves a sandbox's metrics, and returns one that reads them."""
    kept, level = logs.log.handlers[:], logs.log.level
    logs.log.setLevel(logging.INFO)

    def serve(sandbox: Any, watch: Any = None) -> Callable[[], list[str]]:
        address = f"127.0.0.1:{free_port()}"
        metrics.serve(address, sandbox, watch or PolicyWatch(sandbox, ROOT / "policy.yaml"))
        url = f"http://{address}/metrics"
        return lambda: urllib.request.urlopen(url).read().decode().splitlines()

    yield serve
    logs.log.handlers, logs.log.level = kept, level


def test_programs_are_counted_by_outcome_with_their_times(served, sandbox: Sandbox) -> None:
    read = served(sandbox)
    logs.program(Outcome("ok", cpu_seconds=0.002), 1, 0.004)
    logs.program(Outcome("ok", cpu_seconds=0.002), 2, 0.004)
    logs.program(Outcome("cpu_limit", cpu_seconds=2.0), 2, 2.1)
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
    assert any(re.fullmatch(r"calcubot_guests_prepared [1-4]\.0", line) for line in lines)


def test_edits_of_the_policy_are_counted(served, sandbox: Sandbox, tmp_path: Path) -> None:
    watch = PolicyWatch(sandbox, tmp_path / "policy.yaml")
    read = served(sandbox, watch)
    assert "calcubot_policy_refused 0.0" in read()
    watch.look()  # there is no file
    lines = read()
    assert "calcubot_policy_refused 1.0" in lines
    assert 'calcubot_policy_reloads_total{result="refused"} 1.0' in lines
    assert 'calcubot_policy_reloads_total{result="taken_up"} 0.0' in lines


def test_a_sandbox_that_does_not_serve_says_so(served) -> None:
    lines = served(SimpleNamespace(status=lambda: {"serving": False}), SimpleNamespace())()
    assert "calcubot_serving 0.0" in lines


@pytest.mark.parametrize("address", ["9100", ":9100", "127.0.0.1:", "127.0.0.1:x", "256.1.1.1:1"])
def test_an_address_that_cannot_be_is_refused(address: str, sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="METRICS is"):
        metrics.serve(address, sandbox, PolicyWatch(sandbox, ROOT / "policy.yaml"))
