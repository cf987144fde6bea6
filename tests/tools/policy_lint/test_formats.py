"""Findings as text, JSON, SARIF and workflow commands."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import jsonschema
import pytest

from sandbox.policy.document import Finding
from tests.tools.policy_lint.edits import QUICK, edited, subject
from tools.policy_lint import formats, lint
from tools.policy_lint.rules import every_rule

SCHEMA = json.loads(Path(__file__).with_name("sarif-2.1.0.json").read_text())


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """An error, a warning and an accepted finding of a policy.yaml in the current folder."""
    monkeypatch.chdir(tmp_path)
    text = edited("  - math\n", "  - math\n  - os.path  # accept import-impure: 100 %, tried\n")
    text = text.replace("cpu_seconds: 2", "cpu_seconds: 2  # é\n  # kept", 1)
    text = text.replace("core_bytes: 0", "core_bytes: 7", 1)
    text = text.replace("/usr/share/zoneinfo", "/usr/share/zonefino", 1)
    Path("policy.yaml").write_text(text)
    findings = lint.lint(subject(text), QUICK)
    assert [(one.severity, bool(one.accepted)) for one in findings] == [
        ("error", True),
        ("error", False),
        ("warning", False),
    ]
    return findings


def shown(found: list[Finding]) -> str:
    path = Path("policy.yaml")
    return formats.text(found, {path: path.read_bytes()})


def test_text_shows_the_line_with_a_caret_and_the_cure(found: list[Finding]) -> None:
    lines = shown(found).split("\n")
    assert lines[0].endswith("os.path gives programs files [import-impure]")
    assert lines[0].partition(": ")[2].startswith("accepted: ")
    assert lines[1] == "    100 %, tried"
    assert lines[3].endswith("[limit-loose]")
    assert lines[4] == "      core_bytes: 7"
    assert lines[5].index("^") == lines[4].index("7")
    assert lines[6] == "    write at most 0"
    assert lines[-2] == "1 error, 1 warning, 1 accepted"


def test_text_of_a_file_is_shown_without_what_a_terminal_would_obey() -> None:
    path = Path("policy.yaml")
    raw = ("x" * 300 + "\x1b]0;title\x07\u202e here" + "y" * 10_000).encode()
    found = Finding(path, 1, 302, "", "", "a\x1bb", "c\nd", "file")
    text = formats.text([found], {path: raw})
    assert "\\x1b]0;title\\x07\\u202e here" in text
    assert all(line.isprintable() and len(line) < 400 for line in text.split("\n"))
    first, second = text.split("\n")[1:3]
    assert first[second.index("^") :].startswith("]0;title")


def test_colour_is_only_where_it_is_asked_for(found: list[Finding]) -> None:
    assert "\033[31merror\033[0m" in formats.text(found, {}, colour=True)
    assert "\033" not in shown(found)


def test_json_has_every_field_and_the_reason_of_what_is_accepted(found: list[Finding]) -> None:
    accepted, loose, _ = json.loads(formats.as_json(found))["findings"]
    assert accepted["accepted"] == "100 %, tried"
    assert loose == {
        "rule": "limit-loose",
        "severity": "error",
        "file": "policy.yaml",
        "line": found[1].line,
        "column": 15,
        "value": "7",
        "message": "rlimits.core_bytes is 7, and no program needs to leave a memory dump",
        "cure": "write at most 0",
    }


def test_sarif_validates_and_accepted_findings_are_suppressed(found: list[Finding]) -> None:
    log = json.loads(formats.sarif(found))
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    run = log["runs"][0]
    assert [result.get("suppressions") for result in run["results"]] == [
        [{"kind": "inSource", "justification": "100 %, tried"}],
        None,
        None,
    ]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "policy.yaml"
        assert result["partialFingerprints"]
    assert run["tool"]["driver"]["version"]


def test_a_sarif_address_is_percent_encoded() -> None:
    found = Finding(Path("my policy #1.yaml"), 1, 1, "", "", "m", "c", "file")
    log = json.loads(formats.sarif([found]))
    [place] = log["runs"][0]["results"][0]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "my%20policy%20%231.yaml"


def test_a_fingerprint_stays_while_other_lines_change() -> None:
    prints = [
        json.loads(formats.sarif([Finding(Path("p.yaml"), line, 1, field, "v", "m", "c", "file")]))
        for line, field in ((1, "a"), (9, "a"), (1, "b"))
    ]
    first, moved, other = (
        log["runs"][0]["results"][0]["partialFingerprints"]["ruleFieldValue/v1"] for log in prints
    )
    assert first == moved != other


def test_sarif_of_every_rule_and_of_none_validates() -> None:
    found = [
        Finding(Path("/elsewhere/policy.yaml"), 1, 1, "", "", "m", "c", rule.id, rule.severity)
        for rule in every_rule().values()
    ]
    for findings in (found, []):
        log = json.loads(formats.sarif(findings))
        jsonschema.Draft4Validator(SCHEMA).validate(log)
        for rule in log["runs"][0]["tool"]["driver"]["rules"]:
            described = Path(urlsplit(rule["helpUri"]).path).read_text()
            assert f"\n{rule['id']} ({rule['defaultConfiguration']['level']}): " in described


def test_sarif_has_no_empty_text() -> None:
    found = [Finding(Path("policy.yaml"), 1, 1, "", "", "m", "c", rule) for rule in every_rule()]
    assert '""' not in formats.sarif(found)


def test_workflow_commands_are_escaped(found: list[Finding]) -> None:
    strange = Finding(Path("a:b,c%.yaml"), 3, 5, "", "", "50 %\nmore: x, y", "c", "limit-loose")
    first, second = formats.github([strange]).splitlines()
    assert first == (
        "::error file=a%3Ab%2Cc%25.yaml,line=3,col=5,title=limit-loose::50 %25%0Amore: x, y; c"
    )
    assert second == "1 error"


def test_accepted_findings_annotate_nothing(found: list[Finding]) -> None:
    commands = formats.github(found).splitlines()
    assert [command.partition(" ")[0] for command in commands] == ["::error", "::warning", "1"]


def test_no_findings_is_said_in_words() -> None:
    assert formats.text([], {}) == "no findings\n"
