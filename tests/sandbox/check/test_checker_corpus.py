"""Hostile programs are refused or fail, and benign ones pass, by the repository's own policy."""

import ast
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from sandbox.check.checker import check
from sandbox.policy.loader import Policy
from sandbox.sandbox import Sandbox

CORPUS = Path(__file__).parents[2] / "corpus"

# Text that says `__x__` is no way to an attribute; programs print tables of such names.
HARMLESS = {"AB-146"}
# Benign programs that stay refused, and by which rule.
ON_PURPOSE = {
    "b0418": "import",
    "b0479": "dunder",
    "b0503": "import",
    "b0512": "dangerous-name",
}


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CORPUS / name).read_text("utf-8").splitlines()]


def parses(source: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(source)
        except (SyntaxError, ValueError):
            return False
    return True


ATTACKS = [
    row
    for row in read("attacks.jsonl") + read("attacks-2.jsonl")
    if row["expect"].get("checker") == "reject" or row["expect"].get("reject_or_fail")
]
BENIGN = [row for row in read("benign.jsonl") if parses(row["source"])]


@pytest.mark.parametrize("row", ATTACKS, ids=lambda row: row["id"])
def test_an_attack_is_refused_or_fails(
    row: dict[str, Any], policy: Policy, sandbox: Sandbox
) -> None:
    found = {one.rule for one in check(row["source"], policy)}
    assert "syntax" not in found or not parses(row["source"])
    if not found:
        outcome = sandbox.run(row["source"])
        assert ("REACHED" not in outcome.output) == (row["id"] not in HARMLESS)


@pytest.mark.parametrize("row", BENIGN, ids=lambda row: row["id"])
def test_a_benign_program_passes_unless_refused_on_purpose(
    row: dict[str, Any], policy: Policy
) -> None:
    wanted = {ON_PURPOSE[row["id"]]} if row["id"] in ON_PURPOSE else set()
    assert {one.rule for one in check(row["source"], policy)} == wanted
