"""A bounded run of the coverage-guided fuzzing; see `tests/fuzz/fuzz.py --help` for longer ones."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "atheris", reason="atheris has wheels for x86-64 Linux and Python up to 3.14 alone"
)


@pytest.mark.parametrize("target", ["checker", "policy"])
def test_no_input_raises_or_hangs(target: str, tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), target]
    options = ["-max_total_time=4", "-rss_limit_mb=2048", "-print_final_stats=1"]
    ran = subprocess.run(
        [*command, *options], check=False, cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert "DONE" in ran.stderr
