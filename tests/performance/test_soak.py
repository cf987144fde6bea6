"""tools/soak: it finds what it is there to find."""

from dataclasses import replace

import pytest

from tests.performance import soak
from tests.performance.soak import Reading, Tally, findings

CALM = Reading(processes=8, descriptors=40, memory_mib=60.0, quick_ms=2.0)


def test_a_wrong_answer_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "BENIGN", (("N+1", "N = N+1"),))
    monkeypatch.setattr(soak, "HOSTILE", ("import os\nprint('REACHED', os.getpid())", "(" * 5000))
    monkeypatch.setattr(soak, "REST_SECONDS", 0.5)
    assert soak.main(["--minutes", "0.08"]) == 1
    printed = capsys.readouterr().out
    assert "wrong answer: " in printed
    assert "killed worker" in printed


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, ""),
        ({"processes": 9}, "processes left: 8 at first, 9 at last"),
        ({"descriptors": 41}, "descriptors left: 40 at first, 41 at last"),
        ({"memory_mib": 80.0}, "memory left: 60.0 MiB, then 80.0 MiB"),
        ({"quick_ms": 9.0}, "slower: a tenth came within 2.00 ms, then 9.00 ms"),
    ],
)
def test_what_is_left_behind_or_became_slower_is_found(change: dict[str, int], found: str) -> None:
    tally = Tally()
    tally.note("benign")
    assert "\n".join(findings(CALM, replace(CALM, **change), tally)) == found


def test_silence_is_no_success() -> None:
    assert findings(CALM, CALM, Tally()) == ["no benign program was answered at all"]


def test_a_hostile_program_that_gets_what_it_wants_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(soak, "ask", lambda port, text: "REACHED it")
    tally = Tally()
    soak.hostile(0, tally)
    assert tally.counts["wrong"] == 1


def test_no_time_is_a_wrong_argument() -> None:
    with pytest.raises(SystemExit) as end:
        soak.main(["--minutes", "0"])
    assert end.value.code == 2
