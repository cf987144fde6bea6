"""What a policy is judged by: facts of Python and of Linux, which known.toml has."""

import tomllib
from pathlib import Path
from typing import Any

KNOWN: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
HARMLESS = frozenset(KNOWN["names"]["harmless"].split())
REVEALING: dict[str, str] = KNOWN["revealing"]
NEEDS: dict[str, str] = KNOWN["needs"]
NOW_AND_THEN: dict[str, str] = KNOWN["now_and_then"]
