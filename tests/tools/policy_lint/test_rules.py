"""What single edits cannot show: other machines, other interpreters, the tables' own soundness."""

import builtins
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.fork_server.zygote_process import SandboxUnavailable
from sandbox.kernel.syscalls import GROUPS, expand
from sandbox.policy.loader import Policy
from sandbox.sandbox import Sandbox
from tests.tools.policy_lint.edits import POLICY, QUICK, subject
from tools.policy_lint import interpreter, limits, lint, modules, names, words
from tools.policy_lint.denials import NEEDS
from tools.policy_lint.honest import HONEST


@pytest.fixture(scope="module")
def shipped() -> Policy:
    policy = subject(POLICY).policy
    assert policy
    return policy


def test_no_entry_of_the_dangerous_lists_can_go_unseen(shipped: Policy) -> None:
    for field in ("dangerous_names", "dangerous_attrs"):
        entries = getattr(shipped, field)
        for entry in entries:
            changed: dict[str, Any] = {field: entries - {entry}}
            found = names.find(subject(POLICY), replace(shipped, **changed))
            assert [one.value for one in found] == [entry]


def test_every_group_and_every_denied_call_belongs_to_a_need(shipped: Policy) -> None:
    needed = expand(" ".join(NEEDS.values()).split())
    assert expand(GROUPS) <= needed
    assert shipped.denied_syscalls <= needed


def test_every_honest_program_runs(sandbox: Sandbox) -> None:
    for program in HONEST:
        outcome = sandbox.run(program)
        assert outcome.kind == "ok", (program, outcome)


def test_a_builtin_that_nobody_judged_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "runcode", lambda text: text, raising=False)
    [found] = lint.lint(subject(POLICY), QUICK)
    assert (found.rule.id, found.value, found.cure) == (
        "name-unjudged",
        "runcode",
        "add `- runcode`",
    )


def test_where_no_guest_runs_it_is_told_what_was_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(policy: Policy) -> None:
        raise SandboxUnavailable("layer seccomp is not in force")

    monkeypatch.setattr(interpreter, "ZygoteProcess", refuse)
    found = lint.lint(subject(POLICY), lint.RULES)
    assert [one.rule.id for one in found] == ["not-tried"]
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


SAFE_WORDS = [
    r"\bos\.system\b",
    r"/proc/\d+/",
    r"a{3}b?",
    r"os(?:ab|cd)+;",
    r"=\s*7",
    r"#[^\W\d]+9",
]
SLOW_WORDS = [
    r"(\w+\s?)+;", r"(.*,){20}x", r"(?=(a|a?)+b)", r"\s+\s+;x", r"(?i:(xy?)+)+z", r"(a|b|ab)*#",
    r"(\w+)\s*;",
    r"\(.*\).*\(.*\).*;",
]  # fmt: skip


def slow_witness(word: str) -> str | None:
    """The first witness on which a word takes too long."""
    witnesses = words._witnesses(word, 16384)
    _, slow = words.search({word: witnesses})
    return witnesses[slow[word]] if slow else None


@pytest.mark.parametrize("word", SAFE_WORDS)
def test_a_word_without_ambiguity_is_quick_on_every_witness(word: str) -> None:
    assert slow_witness(word) is None


@pytest.mark.parametrize("word", SLOW_WORDS)
def test_a_slow_word_is_shown_by_a_witness_within_the_source_limit(word: str) -> None:
    witness = slow_witness(word)
    assert witness
    assert len(witness) <= 16384


def test_words_after_a_slow_one_are_searched_as_well() -> None:
    hits, slow = words.search({"(z+)+;": ["a", "z" * 40, "b"], "print": ["a", "x = print"]})
    assert (hits, slow) == ({"print": [(1, 4)]}, {"(z+)+;": 1})


def test_modules_that_are_there_and_cannot_be_imported_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interpreter, "_exists", lambda module: True)
    text = POLICY.replace("  - math\n", "  - math\n  - nosuchmodule\n", 1)
    found = lint.lint(subject(text), {"import-missing", "import-fails"})
    assert [one.rule.id for one in found] == ["import-fails"]
    assert "No module named 'nosuchmodule'" in found[0].message


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_word_that_python_warns_of_is_told() -> None:
    for word, found in (("[[q]zq]", ["word-doubtful"]), (r"[\[q]zq]", [])):
        text = POLICY.replace("blocked_words:\n", f"blocked_words:\n  - '{word}'\n", 1)
        assert [one.rule.id for one in lint.lint(subject(text), words.RULES)] == found
