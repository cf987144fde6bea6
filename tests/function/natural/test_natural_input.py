"""The honest corpus through the real sandbox: what people type, and what they are told."""

import json
from typing import Any

import pytest

from function.answers.replies import reply
from function.calculator import Answer, calculate
from function.parts import text_of
from sandbox.policy.loader import Policy
from sandbox.sandbox import Sandbox
from tools.serve import ROOT

CORPUS = (ROOT / "tests/corpus/benign.jsonl").read_text("utf-8")
ROWS = [json.loads(line) for line in CORPUS.strip().split("\n")]
NATURAL = [row for row in ROWS if row["category"] == "natural-input"]
ORDINARY = [
    row
    for row in ROWS
    if row["category"] != "natural-input"
    and "expect_error" not in row
    and "expect_reject" not in row
]
SURPRISES = {"0.1+0.2==0.3", "5 ^ 3"}


def told(source: str, sandbox: Sandbox, policy: Policy) -> tuple[Answer, str]:
    answer = calculate(source, sandbox)
    return answer, reply(answer, policy).message.text


@pytest.mark.parametrize("row", NATURAL, ids=lambda row: row["id"])
def test_natural_input_is_run_or_told_in_python(
    row: dict[str, Any], sandbox: Sandbox, policy: Policy
) -> None:
    answer, text = told(row["source"], sandbox, policy)
    suggestion = row["expect"].get("suggest")
    if answer.outcome.kind == "ok" and not answer.hint:
        assert text.startswith(row["expect"]["suggest_stdout"].strip())
    elif suggestion is None:
        assert answer.hint
    elif "was read as" not in text_of(answer.hint):
        assert suggestion in text


@pytest.mark.parametrize("row", NATURAL, ids=lambda row: row["id"])
def test_a_suggestion_has_the_value_that_was_meant(row: dict[str, Any], sandbox: Sandbox) -> None:
    if "suggest" in row["expect"]:
        outcome = sandbox.run(row["expect"]["suggest"])
        assert outcome.output == row["expect"]["suggest_stdout"]


def test_ordinary_programs_are_answered_without_a_hint(sandbox: Sandbox, policy: Policy) -> None:
    hinted = {row["source"] for row in ORDINARY if told(row["source"], sandbox, policy)[0].hint}
    assert hinted == SURPRISES
