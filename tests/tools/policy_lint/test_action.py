"""The action's steps, run as a workflow runs them: in a shell, from a repository of another."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.conftest import ROOT

FOLDER = ROOT / "tools/policy_lint"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text())
SCHEMA = json.loads(Path(__file__).with_name("sarif-2.1.0.json").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}


def run(step: dict[str, Any], repository: Path, **inputs: str) -> tuple[int, dict[str, str]]:
    """Run a step's script in a repository; return its exit status and its outputs."""
    given = {name: spec["default"] for name, spec in ACTION["inputs"].items()} | inputs
    contexts = {"github.action_path": str(FOLDER), "runner.temp": str(repository)}
    contexts |= {f"inputs.{name}": value for name, value in given.items()}

    def expanded(text: str) -> str:
        return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda match: contexts[match[1]], text)

    outputs = repository / "outputs"
    outputs.touch()
    environment = {name: expanded(value) for name, value in step.get("env", {}).items()}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", expanded(step["run"])],
        cwd=repository,
        env=os.environ | environment | {"GITHUB_OUTPUT": str(outputs)},
        capture_output=True,
        check=False,
    )
    return done.returncode, dict(line.split("=", 1) for line in outputs.read_text().splitlines())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/my.yaml").write_text((ROOT / "policy.yaml").read_text())
    return tmp_path


def test_a_clean_policy_passes_and_leaves_sarif(repository: Path) -> None:
    status, outputs = run(STEPS["Lint"], repository, policy="conf/my.yaml")
    assert (status, outputs["status"]) == (0, "0")
    jsonschema.Draft4Validator(SCHEMA).validate(json.loads(Path(outputs["sarif"]).read_text()))


def test_findings_are_uploaded_before_the_job_fails(repository: Path) -> None:
    file = repository / "conf/my.yaml"
    file.write_text(file.read_text().replace("allowed_imports:\n", "allowed_imports:\n  - os\n"))
    status, outputs = run(STEPS["Lint"], repository, policy="conf/my.yaml")
    assert (status, outputs["status"]) == (0, "1")
    [log] = json.loads(Path(outputs["sarif"]).read_text())["runs"]
    [found] = [one for one in log["results"] if one["ruleId"] == "import-impure"]
    location = found["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "conf/my.yaml"
    assert list(STEPS) == ["Lint", "Upload", "Fail on findings"]
    assert run(STEPS["Fail on findings"], repository)[0] == 1


def test_what_cannot_be_linted_fails_at_once_with_nothing_to_upload(repository: Path) -> None:
    status, outputs = run(STEPS["Lint"], repository, policy="nowhere.yaml")
    assert status == 2
    assert "sarif" not in outputs
