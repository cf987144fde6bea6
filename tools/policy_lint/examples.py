"""Example programs, benign and hostile, to show whom an entry of a policy lets in or keeps out."""

import tomllib
from pathlib import Path

_PROGRAMS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
BENIGN: tuple[str, ...] = tuple(_PROGRAMS["benign"])
EXAMPLES: dict[str, str] = _PROGRAMS["hostile"] | {
    f"the benign {source.splitlines()[0]!r}": source for source in BENIGN
}
