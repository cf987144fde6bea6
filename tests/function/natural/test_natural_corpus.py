"""What people type to a calculator, with the value that they mean: none is given wrongly."""

import ast
import cmath
import json
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from function import natural
from function.calculator import Answer, calculate, read_program
from function.natural.reader import read
from sandbox import Policy, Sandbox
from tools.serve import ROOT

CORPUS = (ROOT / "tests/corpus/natural.jsonl").read_text("utf-8")
ENDLESS = ("while True: pass", "10**1000000")  # are judged by their limits elsewhere
ROWS = [row for row in map(json.loads, CORPUS.splitlines()) if row["text"] not in ENDLESS]
SHARE_ANSWERED = 0.97  # of the rows with a value; the others are refused


@pytest.fixture(scope="module")
def answers(sandbox: Sandbox, policy: Policy) -> list[tuple[dict[str, Any], Answer]]:
    found = []
    for row in ROWS:
        program = read_program(row["text"], natural, policy)
        answer = calculate(program, sandbox, natural, inline=row["kind"] == "inline")
        found.append((row, answer))
    return found


def meaning(text: str) -> Any:
    """A number, a day, a number of seconds, or the text: what an output or a row's value says."""
    text = text.strip()
    today = datetime.now(UTC).date()
    if relative := re.fullmatch(r"'@(today|until|since):(.+)'", text):
        if relative[1] == "today":
            return today + timedelta(int(relative[2]))
        days = (date.fromisoformat(relative[2]) - today).days
        return days if relative[1] == "until" else -days
    text = text.strip("'")
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return date.fromisoformat(text)
    if time := re.fullmatch(r"(?:(-?\d+) days?, )?(-?)(\d+):(\d\d)(?::00)?", text):
        seconds = int(time[3]) * 3600 + int(time[4]) * 60
        return timedelta(days=int(time[1] or 0), seconds=-seconds if time[2] else seconds)
    if re.fullmatch(r"-?\d+/\d+", text):
        return text
    number = re.fullmatch(r"(-?[\d.]+(?:e[-+]?\d+)?j?)(?: [^\d\s]+)?", text)
    try:
        return ast.literal_eval(number[1] if number else text)
    except (ValueError, SyntaxError):
        return text.encode().decode("unicode_escape") if text.isascii() else text


def is_same(one: Any, other: Any) -> bool:
    if one == other:
        return True
    match one, other:
        case (int() | float() | complex(), int() | float() | complex()):
            return cmath.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
        case (tuple() | list(), tuple() | list()):
            return len(one) == len(other) and all(map(is_same, one, other))
    return False


def allowed(row: dict[str, Any]) -> list[Any]:
    given = [row["value"], row.get("python"), *row["also_ok"], *row.get("meant", [])]
    return [meaning(text) for text in given if text is not None]


def is_given(answer: Answer) -> bool:
    return answer.outcome.kind == "ok" and bool(answer.output)


def is_right(row: dict[str, Any], answer: Answer) -> bool:
    if row["value"] is None or not is_given(answer):
        return False
    value = row["value"].strip("'")
    if value.endswith("…"):
        return answer.output.startswith(value[:-1])
    values = [meaning(row["value"]), *map(meaning, row["also_ok"])]
    return any(is_same(each, meaning(answer.output)) for each in values)


def test_no_value_is_wrong(answers: list[tuple[dict[str, Any], Answer]]) -> None:
    wrong = []
    for row, answer in answers:
        is_python = row.get("python") and is_same(meaning(row["python"]), meaning(answer.output))
        if is_given(answer) and not is_right(row, answer) and not (is_python and answer.hint):
            wrong.append((row["id"], row["text"], answer.output[:40]))
    assert wrong == []


def test_no_reading_that_is_offered_is_wrong(sandbox: Sandbox) -> None:
    wrong = []
    for row in ROWS:
        expressions = read(row["text"]).expressions if row["kind"] != "paste" else ()
        outcomes = [sandbox.run(each.program) for each in expressions]
        values = [meaning(each.output) for each in outcomes if each.kind == "ok"]
        right = [any(is_same(each, value) for each in allowed(row)) for value in values]
        is_refusal = row.get("refusal_ok") and any(right)
        if not all(right) and not is_refusal and row["kind"] != "python-valid-no-hint":
            wrong.append((row["id"], row["text"], values))
    assert wrong == []


def test_nearly_all_values_are_given(answers: list[tuple[dict[str, Any], Answer]]) -> None:
    valued = [(row, answer) for row, answer in answers if row["value"] is not None]
    right = [row for row, answer in valued if is_right(row, answer)]
    optional = [
        row
        for row, answer in valued
        if row not in right
        and (row.get("refusal_ok") or row.get("error_ok"))
        and not is_given(answer)
    ]
    assert len(right) + len(optional) >= SHARE_ANSWERED * len(valued)


def test_what_misleads_has_a_hint_and_what_does_not_has_none(
    answers: list[tuple[dict[str, Any], Answer]],
) -> None:
    kinds = {"python-valid-misleading": True, "python-valid-no-hint": False}
    amiss = [
        row["text"]
        for row, answer in answers
        if row["kind"] in kinds
        and (row["warn"] or row["no_hint"])
        and bool(answer.hint) != kinds[row["kind"]]
    ]
    assert amiss == []


def test_no_hint_says_what_is_not_so(answers: list[tuple[dict[str, Any], Answer]]) -> None:
    said = [
        (row["text"], word)
        for row, answer in answers
        for word in row.get("not_said", ())
        if word in "".join(part.text for part in answer.hint)
    ]
    assert said == []
