import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.self_test import PROBES, ProbeResult
from tools.calc import show_probes
from tools.serve import ROOT


def calc(cwd: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.calc", *arguments],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_an_expression_is_answered_as_in_a_chat(tmp_path: Path) -> None:
    result = calc(tmp_path, "2+2")
    assert (result.returncode, result.stdout, result.stderr) == (0, "4 = 2+2\n", "")


def test_a_program_comes_from_standard_input(tmp_path: Path) -> None:
    result = calc(tmp_path, "-", given="for i in range(3):\n    print(i)\ni * 10\n")
    assert (result.returncode, result.stdout) == (0, "0\n1\n2\n20\n")


def test_a_program_may_begin_with_a_minus_sign_after_two_dashes(tmp_path: Path) -> None:
    assert calc(tmp_path, "--", "-5+2").stdout == "-3 = -5+2\n"


@pytest.mark.parametrize("program", ["1/0", "import os", "2+", "while True: pass"])
def test_a_program_that_does_not_end_well_gives_status_1(tmp_path: Path, program: str) -> None:
    result = calc(tmp_path, program)
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.strip()


def test_inline_has_three_answers_and_the_helpers(tmp_path: Path) -> None:
    result = calc(tmp_path, "--inline", "fact(5)")
    assert result.stdout == "120 = fact(5)\nfact(5) = 120\n120\n"


def test_json_is_the_whole_outcome(tmp_path: Path) -> None:
    outcome = json.loads(calc(tmp_path, "--json", "import os\nx = __name__").stdout)
    assert outcome["kind"] == "rejected"
    assert [violation["line"] for violation in outcome["violations"]] == [1, 2]
    assert {"output", "error", "cpu_seconds", "wall_seconds", "max_rss_kib"} <= outcome.keys()


def test_unchecked_says_so_and_leaves_the_operating_systems_layers(tmp_path: Path) -> None:
    program = "import os\ntry:\n    os.fork()\nexcept PermissionError:\n    print('denied')"
    assert "Not run" in calc(tmp_path, program).stdout
    result = calc(tmp_path, "--unchecked", program)
    assert (result.returncode, result.stdout) == (0, "denied\n")
    assert "UNCHECKED" in result.stderr


def test_another_policy_is_obeyed(tmp_path: Path) -> None:
    mine = (ROOT / "policy.yaml").read_text().replace("  - statistics\n", "")
    (tmp_path / "mine.yaml").write_text(mine)
    program = "import statistics\nstatistics.mean([1, 3])"
    assert calc(tmp_path, program).returncode == 0
    assert "statistics may not" in calc(tmp_path, "--policy", "mine.yaml", program).stdout


@pytest.mark.parametrize(
    "arguments", [["--policy", "none.yaml", "2"], ["--polcy", "2"], [], ["--probe", "2"]]
)
def test_what_cannot_be_tried_gives_status_2(tmp_path: Path, arguments: list[str]) -> None:
    result = calc(tmp_path, *arguments)
    assert (result.returncode, result.stdout, "Traceback" in result.stderr) == (2, "", False)
    assert result.stderr.strip()


def test_probe_shows_what_refuses_each_forbidden_thing(tmp_path: Path) -> None:
    result = calc(tmp_path, "--probe")
    assert result.returncode == 0, result.stdout
    assert len(result.stdout.splitlines()) == len(PROBES)
    assert "FAIL" not in result.stdout
    assert "PASS" in result.stdout
    results = json.loads(calc(tmp_path, "--probe", "--json").stdout)
    assert {"name", "passed", "detail", "required"} <= results[0].keys()


def test_a_required_probe_that_fails_gives_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    failed = ProbeResult("fork", "fork", passed=False, detail="allowed", required=True)
    optional = dataclasses.replace(failed, required=False)
    assert (show_probes([failed], as_json=False), show_probes([optional], as_json=False)) == (1, 0)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["FAIL", "open"]


def test_what_is_drawn_is_written_to_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the packages of function/maths.txt are not installed")
    policy = str(ROOT / "sandbox/policies/maths.yaml")
    program = "plt.plot([1])\nplt.figure()\nplt.plot([2])\nsqrt(8)"
    result = calc(tmp_path, "--policy", policy, "--picture", "plot.png", program)
    assert (result.returncode, result.stdout) == (0, "2*sqrt(2) ≈ 2.8284271247\n"), result.stderr
    for name in ("plot.png", "plot-2.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
