"""The wall clock jumps: nobody is refused or answered for longer than was meant."""

import time
from pathlib import Path

import pytest

from function.store import open_store


@pytest.mark.parametrize("jump", [-86400, 86400], ids=["back", "ahead"])
def test_counts_begin_anew_after_their_time_whatever_the_clock_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    store, real = open_store(str(tmp_path / "state.db")), time.time
    for expected in (1, 2, 3):
        assert store.count("sender", 60) == expected
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    assert store.count("sender", 60) == 1
    assert store.count("sender", 60) == 2
    monkeypatch.setattr(time, "time", lambda: real() + jump + 61)
    assert store.count("sender", 60) == 1
    store.set("mode", "compact", 86400)
    assert store.get("mode") == "compact"
    store.close()
