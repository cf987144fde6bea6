"""--diff: what a change of the policy means."""

import subprocess
from pathlib import Path

import pytest

from tests.tools.policy_lint.edits import POLICY, edited, subject
from tools.policy_lint import diff
from tools.policy_lint.main import main

# What replaces what, the kind of change, and words that its one line holds.
CHANGES = [
    ("  - math\n", "  - math\n  - pathlib\n", "weaker", "gains pathlib", "gives them files"),
    ("  - cmath\n", "", "stronger", "loses cmath", "no more: programs may import it"),
    ("warm_up: []", "warm_up: [2+2]", "changed", "warm_up", "other programs"),
    ("dt: datetime", "dt: datetime\n  st: statistics", "changed", "preloaded.st", "is statistics"),
    ("  - open\n", "", "weaker", "dangerous_names loses open", "may use the name"),
    ("  - open\n", "  - open\n  - super\n", "stronger", "dangerous_names gains super", ""),
    ("  - f_back\n", "", "weaker", "dangerous_attrs loses f_back", "may read the attribute"),
    ("  - __init__\n", "  - __init__\n  - __del__\n", "weaker", "gains __del__", "define"),
    ("cpu_seconds: 2", "cpu_seconds: 7", "weaker", "cpu_seconds grows", "to 7: Seconds"),
    ("cpu_seconds: 2", "cpu_seconds: 1", "stronger", "cpu_seconds shrinks", "to 1: Seconds"),
    ("stack_mib: 8", "stack_mib: 9", "weaker", "stack_mib grows", ""),
    ("sender_per_minute: 1", "sender_per_minute: 599", "weaker", "sender_per_minute grows", ""),
    ("prepared_guests: 4", "prepared_guests: 1", "changed", "prepared_guests shrinks", ""),
    ("first_uid: 5000", "first_uid: 6000", "changed", "first_uid grows", ""),
    ("  - uid or landlock\n", "", "weaker", "loses uid or landlock", "without the layer"),
    ("  - uid or landlock\n", "  - uid\n", "stronger", "required_layers gains uid", ""),
    ("/usr/share/zoneinfo", "/usr/share/zoneinfo\n  - /etc", "weaker", "gains /etc", "Landlock"),
    ("  - '@network-io'\n", "", "weaker", "no longer denies accept", "reach the network"),
    ("  - '@keyring'\n", "  - add_key\n", "weaker", "keyctl, request_key", "keyrings"),
    ("  - fcntl(unsafe)\n", "  - fcntl\n", "stronger", "denies fcntl wholly", ""),
    (
        "  - prctl(unsafe)\n",
        "  - prctl(unsafe)\n  - sched_yield\n",
        "stronger",
        "denies sched_yield",
        "",
    ),
    ("  - math\n", "  - math: [pi, sin]\n", "stronger", "gives no more than what is named", ""),
    ("/zoneinfo", "/zoneinfo/Europe", "stronger", "loses /usr/share/zoneinfo", "no more"),
]

SAME = {
    "comments": ("version: 1", "version: 1  # first"),
    "order": ("  - fractions\n  - functools\n", "  - functools\n  - fractions\n"),
    "quotes": ("  - math\n", "  - 'math'\n"),
    "a group by its members": ("  - '@keyring'\n", "  - add_key\n  - keyctl\n  - request_key\n"),
    "a path inside another": ("/zoneinfo", "/zoneinfo\n  - /usr/share/zoneinfo/Europe"),
    "a denial said twice": ("  - '@debug'\n", "  - '@debug'\n  - ptrace\n"),
}


def changes(old: str, new: str) -> list[tuple[str, int, str]]:
    found = diff.compare(subject(old), subject(new))
    return [(one.rule, one.line, one.message) for one in found]


@pytest.mark.parametrize(("old", "new", "kind", "what", "why"), CHANGES)
def test_a_change_is_one_line_that_says_what_and_why(
    old: str, new: str, kind: str, what: str, why: str
) -> None:
    [(rule, _, message)] = changes(POLICY, edited(old, new))
    assert rule == kind
    assert what in message
    assert why in message


def test_turned_round_a_weakening_is_a_strengthening() -> None:
    turned = {"weaker": "stronger", "stronger": "weaker", "changed": "changed"}
    for old, new, kind, _, _ in CHANGES:
        [(rule, _, _)] = changes(edited(old, new), POLICY)
        assert rule == turned[kind]


def test_a_change_is_told_at_its_line() -> None:
    text = edited("cpu_seconds: 2", "cpu_seconds: 7")
    [(_, line, _)] = changes(POLICY, text)
    assert text.split("\n")[line - 1] == "  cpu_seconds: 7"


@pytest.mark.parametrize("edit", SAME.values(), ids=SAME)
def test_an_edit_without_meaning_makes_no_difference(edit: tuple[str, str]) -> None:
    assert changes(POLICY, edited(*edit)) == []


def test_a_word_says_which_programs_change_sides() -> None:
    word = r"  - '\bsocket\.socket\b'" + "\n"
    [(kind, _, message)] = changes(POLICY, edited("blocked_words:\n", "blocked_words:\n" + word))
    assert kind == "stronger"
    assert message.endswith("example programs that change sides: open a socket")


def test_a_word_that_nothing_hangs_on_says_so() -> None:
    word = r"  - '\bopen\('" + "\n"
    [(_, _, message)] = changes(POLICY, edited("blocked_words:\n", "blocked_words:\n" + word))
    assert message.endswith("no example program changes sides, the other fields decide")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository whose last commit holds policy.yaml as it is."""
    file = tmp_path / "conf/policy.yaml"
    file.parent.mkdir()
    file.write_text(POLICY)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "policy"]):
        subprocess.run([*git, *command], check=True)
    return file


def test_a_revision_of_git_can_be_compared_with(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--diff", "git:HEAD", str(repository)]) == 0
    assert capsys.readouterr().out == "no difference in meaning\n"
    repository.write_text(edited("  - open\n", ""))
    assert main(["--diff", "git:HEAD", str(repository)]) == 1
    assert capsys.readouterr().out.startswith("weaker ")
    assert main(["--diff", "git:HEAD", "--allow-weaker", str(repository)]) == 0


def test_what_cannot_be_compared_is_told(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--diff", "git:nosuch", str(repository)]) == 2
    assert "nosuch" in capsys.readouterr().err
    assert main(["--diff", "nosuch.yaml", str(repository)]) == 2
    assert "cannot be read" in capsys.readouterr().err
    repository.write_text("version: 2")
    assert main(["--diff", "git:HEAD", str(repository)]) == 2
    assert "version 2 is unknown" in capsys.readouterr().err
