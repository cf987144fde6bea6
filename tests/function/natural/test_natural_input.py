"""The benign corpus through the real sandbox: what people type, and what they are told."""

import ast
import json
import math
from typing import Any

import pytest

from function import natural
from function.answers.replies import reply
from function.calculator import Answer, calculate, read_program
from function.parts import text_of
from sandbox.policy.loader import Policy
from sandbox.sandbox import Sandbox
from tools.serve import ROOT

CORPUS = (ROOT / "tests/corpus/benign.jsonl").read_text("utf-8")
ROWS = [json.loads(line) for line in CORPUS.strip().split("\n")]
NATURAL = [row for row in ROWS if row["category"] == "natural-input"]
SUGGESTED = [row for row in NATURAL if "suggest" in row["expect"]]
ORDINARY = [
    row
    for row in ROWS
    if row["category"] != "natural-input"
    and "expect_error" not in row
    and "expect_reject" not in row
]
SURPRISES = {"0.1+0.2==0.3", "5 ^ 3"}


def told(source: str, sandbox: Sandbox, policy: Policy) -> tuple[Answer, str]:
    program = read_program(source, natural, policy)
    answer = calculate(program, sandbox, natural)
    return answer, text_of(reply(answer, policy).message)


def is_same(output: str, meant: str) -> bool:
    """Whether a value is the one that was meant, beside a unit and to twelve digits."""
    try:
        return math.isclose(float(output.split(" ", maxsplit=1)[0]), float(meant), rel_tol=1e-12)
    except ValueError:
        is_pair = output.startswith("(") and meant.startswith("(")
        return (
            ast.literal_eval(output) == ast.literal_eval(meant)
            if is_pair
            else output == meant != ""
        )


@pytest.mark.parametrize("row", NATURAL, ids=lambda row: row["id"])
def test_natural_input_is_run_or_told_in_python(
    row: dict[str, Any], sandbox: Sandbox, policy: Policy
) -> None:
    answer, text = told(row["source"], sandbox, policy)
    meant = row["expect"].get("suggest_stdout", "").strip()
    is_right = answer.outcome.kind == "ok" and is_same(answer.output, meant)
    is_told = answer.hint and row["expect"].get("suggest", "") in text
    assert is_right or is_told


@pytest.mark.parametrize("row", SUGGESTED, ids=lambda row: row["id"])
def test_a_suggestion_has_the_value_that_was_meant(row: dict[str, Any], sandbox: Sandbox) -> None:
    outcome = sandbox.run(row["expect"]["suggest"])
    assert outcome.output == row["expect"]["suggest_stdout"]


def test_ordinary_programs_are_answered_without_a_hint(sandbox: Sandbox, policy: Policy) -> None:
    hinted = {row["source"] for row in ORDINARY if told(row["source"], sandbox, policy)[0].hint}
    assert hinted == SURPRISES
