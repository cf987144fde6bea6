import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tools import soak
from tools.serve import ROOT

REST = soak.Sample(seconds=1, processes=8, descriptors=40, memory_mib=70, median_ms=2)


@pytest.mark.timeout(300)
def test_a_few_seconds_of_all_kinds_of_traffic_leave_nothing_behind(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tools.soak", "--minutes", "0.1", "--json"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    seen = json.loads(result.stdout)
    assert (seen["problems"], result.returncode) == ([], 0), result.stderr
    assert {"honest", "hostile", "faulty"} <= seen["counts"].keys()


@pytest.mark.parametrize(
    ("after", "word"),
    [
        ({"processes": 9}, "processes"),
        ({"descriptors": 41}, "descriptors"),
        ({"memory_mib": 90}, "memory"),
        ({}, ""),
    ],
)
def test_what_is_left_behind_is_named(after: dict[str, float], word: str) -> None:
    found = soak.problems(REST, replace(REST, **after), [REST] * 8, tracebacks=0)
    assert [sentence.partition(":")[0] for sentence in found] == [word] * bool(word)


def test_slower_answers_and_tracebacks_are_problems() -> None:
    slower = [REST] * 4 + [replace(REST, median_ms=5)] * 4
    [drift] = soak.problems(REST, REST, slower, tracebacks=0)
    assert drift == "2+2: 2.0 ms in the first quarter, 5.0 ms in the last"
    assert soak.problems(REST, REST, [REST] * 8, tracebacks=1) == ["1 tracebacks in the log"]
