"""The harm that a program past every check could do: each kind, with and without namespaces."""

import dataclasses
import json
import re

import pytest

from tests.conftest import ROOT
from tests.sandbox.guests import guests

CORPUS = ROOT / "tests/corpus/boundary.jsonl"
ROWS = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module", params=["namespaces", "no namespaces"])
def started(request, policy):
    rlimits = dataclasses.replace(policy.rlimits, cpu_seconds=1)
    limits = dataclasses.replace(policy.limits, wall_seconds=5)
    policy = dataclasses.replace(policy, rlimits=rlimits, limits=limits)
    with guests(policy, *["namespaces"] * (request.param != "namespaces")) as started:
        yield started


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in ROWS])
def test_a_program_past_every_check_does_no_harm(started, row):
    expect, before = row["expect"], started.served
    outcome = started.run_source(row["source"], unchecked=row.get("checker") != "on")
    assert expect.get("must_not_print", "\0") not in outcome.output
    assert outcome.kind not in {"busy", "unavailable", *expect.get("outcome_not", ())}
    assert outcome.kind in expect.get("outcome", [outcome.kind])
    assert expect.get("output", "") in outcome.output
    assert not re.search(expect.get("error_must_not_match", "(?!)"), outcome.error)
    assert started.served == before + 1
