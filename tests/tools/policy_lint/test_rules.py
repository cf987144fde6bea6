"""What single edits cannot show: other machines, other interpreters, the tables' own soundness."""

import builtins
import re
import types
from pathlib import Path

import pytest

from sandbox.fork_server.zygote_process import SandboxUnavailable
from sandbox.kernel.syscalls import GROUPS, expand
from sandbox.policy.loader import Policy
from sandbox.sandbox import Sandbox
from tests.tools.policy_lint.edits import POLICY, QUICK, subject
from tools.policy_lint import guests, lint, modules
from tools.policy_lint.known import BENIGN, NEEDS
from tools.policy_lint.rules import imports, limits, rules

PREFIXES = ("f_", "gi_", "cr_", "ag_", "tb_", "co_")
KINDS = (types.FrameType, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
INSIDES = {name for kind in (*KINDS, types.TracebackType, types.CodeType) for name in dir(kind)}


@pytest.fixture(scope="module")
def shipped() -> Policy:
    policy = subject(POLICY).policy
    assert policy
    return policy


def test_no_entry_that_opens_something_here_can_go_unseen(shipped: Policy) -> None:
    """Of the builtins and of what shows the inside of values; modules' own are views."""
    opening = {*dir(builtins), "builtins"} & shipped.dangerous_names
    opening |= {name for name in shipped.dangerous_attrs if name.startswith(PREFIXES)}
    for name in opening & {*dir(builtins), "builtins", *INSIDES}:
        lines = [line for line in POLICY.splitlines() if line != f"  - {name}"]
        told = lint.lint(subject("\n".join(lines)), ["name-missing", "attr-missing"])
        assert [one.value for one in told] == [name]


def test_a_way_by_text_is_told_at_the_module_and_where_it_can_be_refused() -> None:
    text = POLICY.replace("  - attrgetter\n", "")
    told = lint.lint(subject(text), ["import-exposes"])
    lines = text.splitlines()
    assert [lines[one.line - 1] for one in told] == ["  - operator", "dangerous_attrs:"]
    assert {one.value for one in told} == {"attrgetter"}


def test_a_policy_without_words_is_told() -> None:
    text = re.sub(r"blocked_words:\n( .*\n)+", "blocked_words: []\n", POLICY)
    assert [one.rule for one in lint.lint(subject(text), ["words-missing"])] == ["words-missing"]


def test_every_group_and_every_denied_call_belongs_to_a_need(shipped: Policy) -> None:
    needed = expand(" ".join(NEEDS.values()).split())
    assert expand(GROUPS) <= needed
    assert shipped.denied_syscalls <= needed


def test_every_benign_program_runs(sandbox: Sandbox) -> None:
    for program in BENIGN:
        outcome = sandbox.run(program)
        assert outcome.kind == "ok", (program, outcome)


def test_a_builtin_that_nobody_has_judged_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "runcode", lambda text: text, raising=False)
    [found] = lint.lint(subject(POLICY), QUICK)
    assert (found.rule, found.value, found.cure) == (
        "name-missing",
        "runcode",
        "add `- runcode`",
    )


def test_where_no_guest_runs_it_is_told_what_was_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise SandboxUnavailable("layer seccomp is not in force")

    monkeypatch.setattr(guests, "ZygoteProcess", refuse)
    monkeypatch.setattr("sandbox.sandbox.ZygoteProcess", refuse)
    found = lint.lint(subject(POLICY), rules())
    assert [one.rule for one in found] == ["not-tried"]
    assert "layer seccomp" in found[0].message


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_container_may_have_less_memory_than_its_machine(tmp_path: Path, name: str) -> None:
    machine = limits.memory_mib(tmp_path)
    assert machine > 256
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("max\n")
    assert limits.memory_mib(tmp_path) == machine
    file.write_text(f"{256 << 20}\n")
    assert limits.memory_mib(tmp_path) == 256
    file.write_text(f"{1 << 62}\n")
    assert limits.memory_mib(tmp_path) == machine


@pytest.mark.parametrize(
    ("module", "what"),
    [
        ("os.path", "files"),
        ("_socket", "the network"),
        ("subprocess", "processes, threads and signals"),
        ("importlib.resources", "the interpreter's insides"),
        ("json.tool", "files"),
        ("sandbox.fork_server.guest", "the bot itself"),
        ("_abc", "the interpreter's insides"),
        ("json", None),
        ("collections.abc", None),
        ("math", None),
    ],
)
def test_modules_are_known_by_what_they_give(module: str, what: str | None) -> None:
    assert modules.gives(module) == what


def test_modules_that_are_there_and_cannot_be_imported_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(imports, "exists", lambda module: True)
    monkeypatch.setattr(guests, "exists", lambda module: True)
    monkeypatch.setattr(guests, "is_trusted", lambda module, names: True)
    text = POLICY.replace("  - math\n", "  - math\n  - winreg\n", 1)
    found = lint.lint(subject(text), {"import-missing", "import-fails"})
    assert [one.rule for one in found] == ["import-fails"]
    assert "No module named 'winreg'" in found[0].message


def test_a_library_that_is_there_and_cannot_be_imported_is_told_with_the_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(imports, "exists", lambda module: True)
    monkeypatch.setattr(guests, "exists", lambda module: True)
    monkeypatch.setattr(guests, "is_library", lambda module: module == "winreg")
    text = POLICY.replace("  - math\n", "  - math\n  - winreg\n", 1)
    found = lint.lint(subject(text), {"import-missing", "import-fails"})
    assert [(one.rule, one.value, one.message) for one in found] == [
        (
            "import-fails",
            "winreg",
            "winreg cannot be imported: ModuleNotFoundError: No module named 'winreg'",
        )
    ]


def test_a_program_that_needs_a_library_is_tried_where_that_is() -> None:
    text = POLICY.replace("  - math\n", "  - math\n  - sympy\n", 1)
    text = text.replace("prelude: []", "prelude: [import sympy]", 1)
    told = lint.lint(subject(text), {"warm-up-fails", "not-tried"})
    if modules.exists("sympy"):
        assert told == []
    else:
        [found] = told
        assert found.rule == "not-tried"
        assert found.message.endswith("this interpreter has no module sympy")


def test_a_policy_that_allows_next_to_nothing_is_judged_as_well() -> None:
    text = re.sub(r"allowed_imports:\n( .*\n)+", "allowed_imports:\n  - math\n", POLICY)
    text = re.sub(r"preloaded:\n( .*\n)+", "preloaded: {m: math}\n", text)
    told = lint.lint(subject(text), ["not-tried", "layer-absent", "import-exposes", "probe-failed"])
    assert told == []


def test_a_program_whose_end_was_not_tried_is_told() -> None:
    """The bot starts with it, as nothing bounds what the zygote prints."""
    text = POLICY.replace("warm_up: []", "warm_up: [\"print('x' * 10**6)\"]")
    told = lint.lint(subject(text), ["not-tried", "warm-up-fails"])
    assert [(one.rule, one.severity) for one in told] == [("not-tried", "warning")]


def test_a_module_that_no_file_has_may_be_there() -> None:
    text = POLICY.replace("  - math\n", "  - math\n  - __main__\n")
    assert lint.lint(subject(text), ["import-missing"]) == []
