"""What to write instead of what is refused: one sentence for each of the most frequent refusals."""

import tomllib
from functools import cache
from pathlib import Path


@cache
def _hints() -> dict[str, str]:
    """The names that have a hint -> it."""
    with open(Path(__file__).with_suffix(".toml"), "rb") as file:
        return {name: hint for hint, names in tomllib.load(file).items() for name in names.split()}


def hint(*names: str) -> str:
    """Return ": " and what to write instead of the first name that has a hint, or ""."""
    return next((f": {_hints()[name]}" for name in names if name in _hints()), "")
