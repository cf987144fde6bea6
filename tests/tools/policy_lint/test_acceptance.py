"""Comments that accept a finding in place."""

import pytest

from tests.tools.policy_lint.edits import edited, subject
from tools.policy_lint import lint
from tools.policy_lint.rules import rules


def found(new: str, *rules: str) -> list[tuple[str, str]]:
    """Rules and reasons of what is found after `  - math` became `new`."""
    wanted = rules or ("import-impure", "acceptance-unused", "acceptance-unreasoned")
    findings = lint.lint(subject(edited("  - math\n", new)), wanted)
    return [(one.rule, one.accepted) for one in findings]


@pytest.mark.parametrize(
    "lines",
    [
        "  - math\n  - os.path  # accept import-impure: tried\n",
        "  - math\n  - os.path  # names alone # accept import-impure: tried\n",
        "  - math\n  # accept import-impure: tried\n  - os.path\n",
        "  - math\n  # accept import-impure: tried\n  # and this is why\n  - os.path\n",
    ],
)
def test_a_reason_on_the_line_or_above_accepts(lines: str) -> None:
    assert found(lines) == [("import-impure", "tried")]


def test_an_acceptance_holds_for_its_own_line_and_rule_alone() -> None:
    lines = "  - math\n  - os.path  # accept import-impure: tried\n  - os\n"
    assert found(lines) == [("import-impure", "tried"), ("import-impure", "")]
    lines = "  - math\n  - os.path  # accept import-missing: tried\n"
    assert found(lines) == [("import-impure", "")]  # import-missing was not looked for
    wanted = ("import-impure", "import-missing", "acceptance-unused")
    assert found(lines, *wanted) == [("import-impure", ""), ("acceptance-unused", "")]


@pytest.mark.parametrize("rule", ["not-tried", "path-missing"])
def test_what_is_so_on_some_machines_alone_may_be_accepted_on_all(rule: str) -> None:
    assert found(f"  - math  # accept {rule}: elsewhere\n", rule, "acceptance-unused") == []


def test_without_a_reason_nothing_is_accepted() -> None:
    for comment in ("# accept import-impure", "# accept import-impure:", "# accept: tried"):
        lines = f"  - math\n  - os.path  {comment}\n"
        assert found(lines) == [("import-impure", ""), ("acceptance-unreasoned", "")]


def test_what_the_loader_refuses_cannot_be_accepted() -> None:
    lines = "  - math\n  - math  # accept duplicate-entry: twice is better\n"
    findings = lint.lint(subject(edited("  - math\n", lines)), rules())
    assert [(one.rule, one.accepted) for one in findings] == [("duplicate-entry", "")]
    lines = "  - math  # accept duplicate-entry: twice is better\n"
    assert found(lines) == [("acceptance-unreasoned", "")]


def test_words_that_only_look_like_an_acceptance_are_comments() -> None:
    assert found("  - math  # accept what people type\n") == []
    assert found("  - math  # people accept it\n") == []


def at_heading(comment: str, *gone: str) -> list[tuple[str, str, str]]:
    text = edited("dangerous_names:\n", f"dangerous_names:  # {comment}\n")
    for name in gone:
        text = text.replace(f"  - {name}\n", "", 1)
    found = lint.lint(subject(text), ["name-missing", "acceptance-unused", "acceptance-unreasoned"])
    return [(one.rule, one.value, one.accepted) for one in found]


def test_at_a_heading_an_acceptance_excuses_the_value_that_it_names_alone() -> None:
    comment = "accept name-missing quit: it ends no more than the program"
    reason = comment.partition(": ")[2]
    assert at_heading(comment, "quit") == [("name-missing", "quit", reason)]
    assert at_heading(comment, "quit", "eval") == [
        ("name-missing", "eval", ""),
        ("name-missing", "quit", reason),
    ]
    assert at_heading(comment) == [("acceptance-unused", "name-missing", "")]


def test_without_a_value_nothing_is_accepted_at_a_heading() -> None:
    assert at_heading("accept name-missing: quit is harmless", "quit") == [
        ("name-missing", "quit", ""),
        ("acceptance-unreasoned", "name-missing", ""),
    ]
