"""The name in the log that belongs to a user's id."""

import json
from pathlib import Path

import pytest

from function.observability import events
from tools import pseudonym

TOKEN = "7100000001:" + "A" * 35


def test_it_is_the_name_that_the_log_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"TOKEN": TOKEN}))
    monkeypatch.setenv("CONFIG_PATH", str(config))
    assert pseudonym.main(["4242"]) == 0
    assert capsys.readouterr().out.strip() == events.pseudonym(4242, TOKEN)


def test_without_a_token_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    monkeypatch.setenv("CONFIG_PATH", str(config))
    assert pseudonym.main(["4242"]) == 2
    assert "No TOKEN" in capsys.readouterr().err
