"""Any report and any end gives an outcome, and a report gives none that decides anything."""

import signal
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.fork_server import protocol
from sandbox.fork_server.error_text import MOST_LINES
from sandbox.fork_server.outcome import (
    Ending,
    Kind,
    Reported,
    outcome_of,
    read_report,
)
from sandbox.policy.loader import Policy, load_policy
from tests.conftest import ROOT

POLICY: Policy = load_policy(ROOT / "policy.yaml")
KINDS = {kind for union in get_args(Kind) for kind in (get_args(union) or [union])}


def ended(status: int, ended_for: int = protocol.NOT_BY_ZYGOTE, cpu_seconds: float = 0.1) -> Ending:
    return Ending(status, ended_for, cpu_seconds, 1024)


@given(st.binary(max_size=100) | st.binary(min_size=17).map(lambda rest: b"\1" + rest), st.binary())
def test_any_bytes_of_a_guest_give_an_outcome_that_decides_nothing(
    report: bytes, output: bytes
) -> None:
    outcome = outcome_of(read_report(report, POLICY), output, 0.5, POLICY)
    assert outcome.kind in get_args(Reported)
    assert outcome.error.count("\n") < MOST_LINES
    assert 0 <= outcome.cpu_seconds <= POLICY.rlimits.cpu_seconds
    assert 0 <= outcome.max_rss_kib <= POLICY.rlimits.address_space_mib * 1024


@given(st.integers(6, 255), st.text())
def test_a_verdict_that_no_guest_gives_is_no_report(verdict: int, text: str) -> None:
    forged = protocol.pack_report(verdict, 0, 0, f"forged {text}")
    outcome = outcome_of(read_report(forged, POLICY), b"", 0.5, POLICY)
    assert outcome.kind == "error"
    assert "forged" not in outcome.error


@given(st.integers(0, 4), st.integers(0, 2**62), st.integers(0, 2**62), st.text())
def test_a_report_is_read_as_it_was_written(verdict: int, cpu: int, rss: int, text: str) -> None:
    read = protocol.unpack_report(protocol.pack_report(verdict, cpu, rss, text))
    assert read[:3] == (verdict, cpu, rss)
    assert read[3].encode() == text.encode("utf-8", "backslashreplace")


@given(
    st.integers(-(2**31), 2**31 - 1)
    | st.integers(0, 255)
    | st.integers(0, 255).map(lambda n: n << 8),
    st.integers(0, 2),
    st.floats(0, 1e6),
)
def test_any_wait_status_gives_an_outcome(status: int, ended_for: int, cpu: float) -> None:
    outcome = outcome_of(ended(status, ended_for, cpu), b"", 0.5, POLICY)
    assert outcome.kind in KINDS - {"rejected", "syntax_error", "busy", "unavailable"}
    assert outcome.error.count("\n") < MOST_LINES


def test_a_guest_without_memory_for_its_report_is_told_as_one_that_needed_too_much() -> None:
    outcome = outcome_of(ended(protocol.NO_MEMORY_TO_REPORT << 8), b"so far\n", 0.5, POLICY)
    assert (outcome.kind, outcome.output) == ("memory_limit", "so far\n")


@pytest.mark.parametrize("number", range(1, 65))
@pytest.mark.parametrize("core", [0, 0x80])
def test_death_by_any_signal_is_told_by_its_name_or_number(number: int, core: int) -> None:
    word = ended(number | core)
    outcome = outcome_of(word, b"", 0.5, POLICY)
    assert word.was_killed_from_outside(POLICY) == (number == signal.SIGKILL)
    if number == signal.SIGKILL:
        assert outcome.kind == "memory_limit"
    elif number == signal.SIGXCPU:
        assert outcome.kind == "cpu_limit"
    else:
        names = {one.value: one.name for one in signal.Signals}
        assert outcome.kind == "crashed"
        assert outcome.error.endswith(names.get(number, f"signal {number}"))


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        (ended(signal.SIGKILL, protocol.WALL_TIME_OVER), "wall_limit"),
        (ended(signal.SIGKILL, protocol.CPU_TIME_OVER, 1.9), "cpu_limit"),
        (ended(signal.SIGKILL, cpu_seconds=float(POLICY.rlimits.cpu_seconds)), "cpu_limit"),
    ],
)
def test_a_limit_that_the_zygote_or_the_kernel_kept_is_no_reason_to_run_again(
    word: Ending, kind: str
) -> None:
    assert outcome_of(word, b"", 0.5, POLICY).kind == kind
    assert not word.was_killed_from_outside(POLICY)
