"""Ordinary programs run, one for each idiom, and print what CPython prints.

`expect_stdout` in the corpus is what 3.11, 3.12 and 3.13 print, a last expression's value included.
"""

import json
import sys
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


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are of Python 3.12")
def test_a_program_with_type_parameters_prints_what_cpython_prints(sandbox: Sandbox) -> None:
    outcome = sandbox.run(
        "type Pair[A, B] = tuple[A, B]\n"
        "class Stack[T]:\n"
        "    def __init__(self): self.items: list[T] = []\n"
        "    def push(self, item: T) -> T:\n"
        "        self.items.append(item)\n"
        "        return item\n"
        "def swap[A, B: int, *C, **D](pair: Pair[A, B]) -> Pair[B, A]: return pair[1], pair[0]\n"
        "print(Stack[int]().push(3), swap((1, 2)), Pair)"
    )
    assert (outcome.error, outcome.output) == ("", "3 (2, 1) Pair\n")
