"""What a policy is judged by: facts of Python and Linux, and programs, benign and hostile."""

import tomllib
from pathlib import Path
from typing import Any


def _data(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text("utf-8"))


KNOWN = _data("known.toml")
HARMLESS = frozenset(KNOWN["names"]["harmless"].split())
REVEALING: dict[str, str] = KNOWN["revealing"]
NEEDS: dict[str, str] = KNOWN["needs"]
NOW_AND_THEN: dict[str, str] = KNOWN["now_and_then"]

_PROGRAMS = _data("examples.toml")
BENIGN: list[str] = _PROGRAMS["benign"]
HOSTILE: dict[str, str] = _PROGRAMS["hostile"]  # by what they do
