"""The command itself: its arguments, exit statuses and what it prints."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.tools.policy_lint.edits import POLICY, edited
from tools.policy_lint.main import RULES, main

ROOT = Path(__file__).resolve().parents[3]
Captured = pytest.CaptureFixture[str]
SLOW = "import-exposes,import-fails,*-unknown,limit-too-small,syscall-needed,word-*"


def write(folder: Path, text: str, name: str = "policy.yaml") -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def test_the_shipped_policy_is_clean_from_any_folder(tmp_path: Path) -> None:
    tool = str(ROOT / "tools/policy-lint")
    done = subprocess.run(
        [tool, "--strict"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "no findings\n"), done.stderr


def test_the_policy_of_the_current_folder_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "version: 2")
    assert main([]) == 1
    assert capsys.readouterr().out.startswith("policy.yaml:1:")


def test_several_files_are_taken(tmp_path: Path, capsys: Captured) -> None:
    files = [write(tmp_path, "version: 2", name) for name in ("a.yaml", "b.yaml")]
    assert main([*files, "--select", "unknown-version"]) == 1
    assert capsys.readouterr().out.endswith("2 errors\n")


def test_warnings_fail_only_when_strict(tmp_path: Path) -> None:
    file = write(tmp_path, edited("/usr/share/zoneinfo", "/usr/share/zonefino"))
    assert main([file, "--ignore", SLOW]) == 0
    assert main([file, "--ignore", SLOW, "--strict"]) == 1


def test_accepted_findings_do_not_fail(tmp_path: Path) -> None:
    line = "  - math\n  - os.path  # accept import-impure: tried\n"
    assert main([write(tmp_path, edited("  - math\n", line)), "--ignore", SLOW, "--strict"]) == 0


def test_rules_can_be_chosen(tmp_path: Path, capsys: Captured) -> None:
    text = edited("  - math\n", "  - math\n  - os\n").replace("core_bytes: 0", "core_bytes: 1")
    file = write(tmp_path, text)
    for arguments, rules in [
        (["--select", "import-impure"], {"import-impure"}),
        (["--select", "import-impure,limit-loose"], {"import-impure", "limit-loose"}),
        (["--select", "limit-*"], {"limit-loose"}),
        (["--ignore", f"limit-*,{SLOW}"], {"import-impure"}),
    ]:
        assert main([file, "--format", "json", *arguments]) == 1
        found = json.loads(capsys.readouterr().out)["findings"]
        assert {one["rule"] for one in found} == rules


def test_an_unknown_rule_is_told_with_a_suggestion(capsys: Captured) -> None:
    for arguments in (
        ["--select", "word-slwo"],
        ["--ignore", "word-slwo"],
        ["--explain", "word-slwo"],
    ):
        assert main(arguments) == 2
        assert (
            capsys.readouterr().err == "policy-lint: no rule word-slwo; did you mean word-slow?\n"
        )


def test_a_file_that_is_not_there_is_no_finding(tmp_path: Path, capsys: Captured) -> None:
    assert main([str(tmp_path / "none.yaml")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 2


def test_every_rule_is_listed_and_explained(capsys: Captured) -> None:
    assert main(["--list-rules"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(RULES)
    for name, rule in RULES.items():
        assert main(["--explain", name]) == 0
        shown = capsys.readouterr().out
        assert rule.why in shown
        assert f"Example: {rule.example}" in shown
        assert f"Cure:    {rule.cure}" in shown


def test_a_program_is_judged_with_the_line_that_each_violation_comes_from(
    tmp_path: Path, capsys: Captured
) -> None:
    file = write(tmp_path, POLICY)
    program = write(tmp_path, "x = 1\nprint(x, eval('x'))\n'os.system'\n", "program.py")
    assert main(["--program", program, file]) == 1
    shown = capsys.readouterr().out.split("\n")
    assert shown[0].startswith(f"{program}:2:10: ")
    assert shown[1] == "    print(x, eval('x'))"
    assert shown[2].index("^") == shown[1].index("eval")
    line = POLICY.split("\n").index("  - eval") + 1
    assert shown[3] == f"    from {file}:{line}:5: dangerous_names eval"
    assert shown[-2] == f"{program}: 2 violations"


@pytest.mark.parametrize(
    ("source", "field", "entry"),
    [
        ("import os", "allowed_imports", ""),
        ("open('x')", "dangerous_names", "open"),
        ("(i for i in ()).gi_frame", "dangerous_attrs", "gi_frame"),
        ("'f_globals'", "dangerous_attrs", "f_globals"),
        ("from string import Formatter", "dangerous_attrs", "Formatter"),
        ("class A:\n    def __del__(self): pass", "allowed_dunders", ""),
        ("'/etc/passwd'", "blocked_words", r"(?<![\w)\]])/etc/(group|hosts|passwd|shadow)\b"),
        ("1" * 20_000, "limits.source_bytes", ""),
    ],
)
def test_each_kind_of_violation_is_traced_to_its_field(
    tmp_path: Path, capsys: Captured, source: str, field: str, entry: str
) -> None:
    program = write(tmp_path, source, "program.py")
    assert main(["--program", program, "--format", "json", write(tmp_path, POLICY)]) == 1
    origin = json.loads(capsys.readouterr().out)["violations"][0]["policy"]
    assert (origin["field"], origin["entry"]) == (field, entry)
    key = entry or f"{field.rpartition('.')[2]}:"
    assert key in POLICY.split("\n")[origin["line"] - 1]


def test_what_the_checker_itself_refuses_has_no_line(tmp_path: Path, capsys: Captured) -> None:
    program = write(tmp_path, "1 +", "program.py")
    assert main(["--program", program, write(tmp_path, POLICY)]) == 1
    assert "no field of the policy changes it" in capsys.readouterr().out


def test_an_honest_program_is_allowed(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = write(tmp_path, "2+2", "program.py")
    assert main(["--program", program, write(tmp_path, POLICY)]) == 0
    assert capsys.readouterr().out == f"{program}: allowed\n"


def test_a_program_cannot_be_judged_by_a_bad_policy(tmp_path: Path, capsys: Captured) -> None:
    program = write(tmp_path, "2+2", "program.py")
    assert main(["--program", program, write(tmp_path, "version: 2")]) == 2
    assert "version 2 is unknown" in capsys.readouterr().err
    assert main(["--program", str(tmp_path / "none"), write(tmp_path, POLICY)]) == 2
    assert main(["--program", program, "--format", "sarif", write(tmp_path, POLICY)]) == 2


def test_probes_that_get_through_are_findings(tmp_path: Path, capsys: Captured) -> None:
    only = ["--select", "probe-*", "--probe", "--format", "json"]
    assert main([write(tmp_path, POLICY), *only]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []
    assert main([write(tmp_path, edited("  - '@keyring'\n", "")), *only]) == 1
    [found] = json.loads(capsys.readouterr().out)["findings"]
    assert (found["rule"], found["value"]) == ("probe-failed", "keyring")


def test_the_hook_and_the_workflow_call_what_is_there() -> None:
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert "entry: tools/policy-lint\n" in hook
    workflow = (ROOT / ".github/workflows/test.yml").read_text()
    assert "run: tools/test\n" in workflow
    assert "tools/policy-lint --format sarif" in workflow
    assert os.access(ROOT / "tools/policy-lint", os.X_OK)
