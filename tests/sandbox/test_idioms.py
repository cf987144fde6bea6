"""Ordinary programs run, one for each idiom, and print what CPython prints.

`expect_stdout` in the corpus is what 3.11, 3.12 and 3.13 print, a last expression's value included.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.sandbox import Sandbox

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "idioms.jsonl"
ROWS = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['id']} {row['idiom']}")
def test_an_ordinary_program_prints_what_cpython_prints(
    sandbox: Sandbox, row: dict[str, Any]
) -> None:
    outcome = sandbox.run(row["source"])
    assert (outcome.kind, outcome.error, outcome.violations) == ("ok", "", ())
    assert outcome.output == row["expect_stdout"]
