"""The command itself: its arguments, exit statuses and what it prints."""

import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.tools.policy_lint.edits import POLICY, QUICK, edited
from tools.policy_lint.main import main
from tools.policy_lint.rules import every_rule, rules

ROOT = Path(__file__).resolve().parents[3]
Captured = pytest.CaptureFixture[str]
SLOW = ",".join({*rules()} - QUICK)


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


def test_the_strict_policy_is_clean_and_closes_methods_alone(capsys: Captured) -> None:
    strict = str(ROOT / "sandbox/policies/strict.yaml")
    assert main(["--strict", strict]) == 0
    assert main(["--format", "json", "--diff", str(ROOT / "policy.yaml"), strict]) == 0
    told = json.loads(capsys.readouterr().out.partition("\n")[2])["findings"]
    assert {(one["rule"], one["message"].partition(" ")[0]) for one in told} >= {
        ("stronger", "allowed_dunders")
    }
    assert "weaker" not in {one["rule"] for one in told}


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
    for arguments, expected in [
        (["--select", "import-impure"], {"import-impure"}),
        (["--select", "import-impure,limit-loose"], {"import-impure", "limit-loose"}),
        (["--select", "limit-l*"], {"limit-loose"}),
        (["--ignore", f"limit-*,{SLOW}"], {"import-impure"}),
    ]:
        assert main([file, "--format", "json", *arguments]) == 1
        found = json.loads(capsys.readouterr().out)["findings"]
        assert {one["rule"] for one in found} == expected


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


# What is not a policy, or not as it should be: the exit status, and a rule or a word of the reason.
ODD_FILES: dict[str, tuple[bytes, int, str]] = {
    "as it is": (POLICY.encode(), 0, ""),
    "lines of Windows": (POLICY.replace("\n", "\r\n").encode(), 0, ""),
    "a byte order mark": (b"\xef\xbb\xbf" + POLICY.encode(), 1, "file"),
    "Latin-1": (edited("# What", "# dürfte").encode("latin-1"), 1, "file"),
    "UTF-16": (POLICY.encode("utf-16"), 1, "file"),
    "nothing": (b"", 1, "file"),
    "a comment": (b"# nothing\n", 1, "file"),
    "zeros": (bytes(1000), 1, "yaml-syntax"),
    "noise": (bytes(range(256)) * 9, 1, "file"),
    "10 MB": (b"- x\n" * 2_500_000, 1, "file"),
    "a deep nest": (b"a: " + b"[" * 100_000, 1, "yaml-syntax"),
    "a nest of mappings": (b"".join(b" " * n + b"a:\n" for n in range(500)), 1, "yaml-syntax"),
    "aliases of aliases": (
        b"a: &a [x, x]\n"
        + b"".join(b"%c: &%c [*%c, *%c]\n" % (n, n, n - 1, n - 1) for n in range(98, 123)),
        1,
        "yaml-feature",
    ),
    "an alias of itself": (b"a: &a [*a]\n", 1, "yaml-feature"),
    "one field twice": (POLICY.encode() + b"version: 1\n", 1, "duplicate-key"),
    "a key that is a list": (b"? [a, b]\n: c\n", 1, "unknown-key"),
    "a long number": (b"version: " + b"9" * 100_000, 1, "unknown-version"),
}


@pytest.mark.parametrize("is_stdin", [False, True], ids=["a file", "standard input"])
@pytest.mark.parametrize(("raw", "status", "rule"), ODD_FILES.values(), ids=ODD_FILES)
def test_a_file_can_hold_anything(
    tmp_path: Path,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
    raw: bytes,
    status: int,
    rule: str,
    is_stdin: bool,
) -> None:
    (tmp_path / "policy.yaml").write_bytes(raw)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
    name = "-" if is_stdin else str(tmp_path / "policy.yaml")
    assert main([name, "--ignore", SLOW, "--format", "json"]) == status
    told = capsys.readouterr()
    assert told.err == ""
    assert rule in [one["rule"] for one in json.loads(told.out)["findings"]] or not rule


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "device", "none"])
def test_what_is_no_file_is_not_read(tmp_path: Path, capsys: Captured, kind: str) -> None:
    name = tmp_path / "policy.yaml"
    {
        "pipe": lambda: os.mkfifo(name),
        "folder": name.mkdir,
        "loop": lambda: name.symlink_to(name),
        "device": lambda: name.symlink_to("/dev/zero"),
        "none": lambda: None,
    }[kind]()
    assert main([str(name)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"policy-lint: {name}: ")


def test_every_rule_is_listed_and_explained(capsys: Captured) -> None:
    assert main(["--list-rules"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(every_rule())
    for name, rule in every_rule().items():
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
    assert main(["--program", write(tmp_path, "eval", "one.py"), file]) == 1
    assert capsys.readouterr().out.endswith("one.py: 1 violation\n")


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


def test_a_name_that_no_entry_opens_is_the_checkers_own(tmp_path: Path, capsys: Captured) -> None:
    program = write(tmp_path, "match 1:\n    case object(__class__=c): pass", "program.py")
    assert main(["--program", program, write(tmp_path, POLICY)]) == 1
    assert "no field of the policy changes it" in capsys.readouterr().out


def test_a_program_that_is_no_text_is_told(tmp_path: Path, capsys: Captured) -> None:
    program = tmp_path / "program.py"
    program.write_bytes(b"'\xe4'")
    assert main(["--program", str(program), write(tmp_path, POLICY)]) == 2
    assert "not UTF-8 from byte 1 on" in capsys.readouterr().err


def test_a_benign_program_is_allowed(
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
    only = ["--select", "probe-failed", "--format", "json"]
    assert main([write(tmp_path, edited("  - '@keyring'\n", "")), *only]) == 1
    [found] = json.loads(capsys.readouterr().out)["findings"]
    assert (found["rule"], found["value"]) == ("probe-failed", "keyring")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--select", ""],
        ["--select", ","],
        ["--select", "*", "--ignore", "*"],
        ["--diff", "old.yaml", "--select", "import-*"],
        ["--allow-weaker"],
        ["-", "-"],
    ],
)
def test_options_that_would_check_nothing_are_refused(
    arguments: list[str], capsys: Captured
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("policy-lint: ")


def test_one_bad_file_does_not_hide_the_findings_of_the_others(
    tmp_path: Path, capsys: Captured
) -> None:
    bad = write(tmp_path, "version: 2")
    assert main([str(tmp_path / "none.yaml"), bad, "--select", "unknown-version"]) == 2
    told = capsys.readouterr()
    assert "1 error" in told.out
    assert "none.yaml: no such file" in told.err


def test_a_policy_can_be_read_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"version: 2")))
    assert main(["-", "--select", "unknown-version"]) == 1
    assert capsys.readouterr().out.startswith("<stdin>:1:10: ")


@pytest.mark.parametrize(
    ("variables", "arguments", "coloured"),
    [
        ({}, [], False),
        ({"FORCE_COLOR": "1"}, [], True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),
        ({"FORCE_COLOR": "1"}, ["--color", "never"], False),
    ],
)
def test_colour_can_be_chosen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    variables: dict[str, str],
    arguments: list[str],
    coloured: bool,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    main([write(tmp_path, "version: 2"), *arguments])
    assert ("\033[31m" in capsys.readouterr().out) is coloured


def test_quiet_prints_errors_alone(tmp_path: Path, capsys: Captured) -> None:
    text = edited("/usr/share/zoneinfo", "/usr/share/zonefino")
    assert main([write(tmp_path, text), "--ignore", SLOW, "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main([write(tmp_path, "version: 2"), "--quiet"]) == 1
    assert "unknown-version" in capsys.readouterr().out


def test_trials_are_shown_on_a_terminal_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    policy = str(ROOT / "policy.yaml")
    assert main([policy, "--select", "probe-failed"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main([policy, "--select", "probe-failed"]) == 0
    told = capsys.readouterr().err
    assert "\x1b[Ktrying the bot's start ..." in told
    assert told.endswith("\x1b[K")  # the line is left empty


def tool(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "tools/policy-lint"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_the_version_is_the_projects() -> None:
    assert tool("--version").stdout == "policy-lint 1.0.0\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{ROOT}/tools/policy-lint --list-rules | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.stdout.split()[0], done.stderr) == ("file", "")


@pytest.mark.parametrize(
    ("redirected", "status", "said"),
    [
        ("- <&-", 2, "policy-lint: standard input is closed\n"),
        ("--program - <&-", 2, "policy-lint: standard input is closed\n"),
        (">/dev/full", 2, "policy-lint: cannot write: No space left on device\n"),
        ("--list-rules >/dev/full", 2, "policy-lint: cannot write: No space left on device\n"),
        (">&-", 0, ""),
        ("none 2>&-", 2, ""),
    ],
)
def test_closed_and_full_streams_are_told(redirected: str, status: int, said: str) -> None:
    command = f"{ROOT}/tools/policy-lint --ignore '{SLOW}' {redirected}"
    done = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONUNBUFFERED": ""},
    )
    assert (done.returncode, done.stderr) == (status, said)


def test_an_encoding_that_lacks_a_character_is_no_error(tmp_path: Path) -> None:
    file = write(tmp_path, edited("  - json\n", "  - jsön\n"))
    done = tool(file, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (1, "")
    assert "js\\xf6n" in done.stdout


def test_a_list_of_rules_imports_nothing_heavy() -> None:
    program = (
        "import sys; from tools.policy_lint.main import main; main(['--list-rules']); "
        "print({'jsonschema', 'yaml', 'sandbox.check'} & {*sys.modules})"
    )
    command = [str(ROOT / "tools/python"), "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_hook_and_the_workflow_call_what_is_there() -> None:
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert "entry: tools/policy-lint\n" in hook
    workflow = (ROOT / ".github/workflows/test.yml").read_text()
    assert "run: tools/test\n" in workflow
    assert "tools/policy-lint --format sarif" in workflow
    assert os.access(ROOT / "tools/policy-lint", os.X_OK)
