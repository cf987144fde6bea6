"""Hostile programs are refused and benign ones are not, by the repository's own policy."""

import ast
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from sandbox.check.checker import check
from sandbox.policy.loader import Policy

CORPUS = Path(__file__).parents[2] / "corpus"

# A table of names such as `__init__` cannot be told from the text that attribute access by text is
# made of; an attack of the corpus has the same form.
KNOWN_FALSE_REJECTIONS = {"b0455"}


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


ATTACKS = [row for row in read("attacks.jsonl") if row["expect"].get("checker") == "reject"]
BENIGN = [row for row in read("benign.jsonl") if parses(row["source"])]
ON_PURPOSE = [row for row in BENIGN if row.get("expect_reject")]
BENIGN_ROWS = [
    row for row in BENIGN if row not in ON_PURPOSE and row["id"] not in KNOWN_FALSE_REJECTIONS
]


@pytest.mark.parametrize("row", ATTACKS, ids=lambda row: row["id"])
def test_an_attack_is_refused(row: dict[str, Any], policy: Policy) -> None:
    found = {one.rule for one in check(row["source"], policy)}
    assert found
    assert "syntax" not in found or not parses(row["source"])


@pytest.mark.parametrize("row", BENIGN_ROWS, ids=lambda row: row["id"])
def test_a_benign_program_passes(row: dict[str, Any], policy: Policy) -> None:
    assert check(row["source"], policy) == []


@pytest.mark.parametrize("row", ON_PURPOSE, ids=lambda row: row["id"])
def test_a_program_is_refused_on_purpose(row: dict[str, Any], policy: Policy) -> None:
    rule = {"dunder": "dunder", "import": "import", "builtin": "dangerous-name"}
    assert rule[row["expect_reject"]] in {one.rule for one in check(row["source"], policy)}


def test_known_false_rejections_are_still_needed(policy: Policy) -> None:
    for row in BENIGN:
        if row["id"] in KNOWN_FALSE_REJECTIONS:
            assert check(row["source"], policy)
