"""Progress stands on a terminal's last line, and nowhere else."""

import io
import sys

import pytest

from tests.performance import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_each_text_replaces_the_one_before_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    progress.show("1 of 2")
    progress.show()
    assert terminal.getvalue() == "\r\x1b[K1 of 2\r\x1b[K"


def test_a_log_gets_none_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    progress.show("1 of 2")
    assert capsys.readouterr() == ("", "")
