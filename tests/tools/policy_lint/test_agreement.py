"""Lint and bot agree on edits that nobody has thought of: EXAMPLES=500 tries as many new ones."""

import os
import re

from hypothesis import HealthCheck, Phase, given, settings

from sandbox.policy.document import Finding
from sandbox.policy.extends import parse_document
from sandbox.sandbox import Sandbox, SandboxUnavailable
from tests.tools.policy_lint.generated import Edit, edits
from tools.policy_lint.lint import lint
from tools.policy_lint.rules import rules
from tools.policy_lint.subject import Subject, subject_of

EXAMPLES = os.environ.get("EXAMPLES")
# What an error of these says is that the bot will not start.
REFUSALS = {name for name, rule in rules().items() if rule.file.stem in {"loading", "boundary"}}
REFUSALS |= {"import-missing", "warm-up-refused", "warm-up-fails"}


def subject(edit: Edit) -> Subject:
    return subject_of(parse_document(edit.path, edit.text.encode()))


def refusal(edit: Edit) -> str:
    """Why the bot would not start, or not serve whole; empty if it does."""
    policy = (read := subject(edit)).policy
    if policy is None:
        return str(read.document.findings[0])
    sandbox = Sandbox(policy)
    try:
        sandbox.start()
        outcome = sandbox.run("1+1")
        libraries = sandbox.status().get("libraries", {})
        return libraries.get("reason", "") if outcome.output == "2\n" else str(outcome)
    except SandboxUnavailable as error:
        return str(error)
    finally:
        sandbox.close()


def says_that_it_will_not_start(found: Finding) -> bool:
    needed_later = found.rule == "syscall-needed" and "the interpreter needs" in found.message
    return found.rule in REFUSALS | {"syscall-needed"} and not needed_later


def is_about(found: Finding, edit: Edit) -> bool:
    """Whether a finding is at what was changed.

    That is from the beginning of its entry to the next line that says something, or the heading
    above; else it is elsewhere and names what was changed, or its line; or says what is
    missing, or which later program lacks it.
    """
    lines = edit.text.splitlines()
    begins = [n for n, line in enumerate(lines, 1) if re.match("  - ", line)]
    heads = [n for n, line in enumerate(lines, 1) if re.match(r"\w", line)]
    said = [n for n, line in enumerate(lines, 1) if not re.match(r"\s*(#|$)", line)]
    first, last = edit.lines.start, edit.lines.stop - 1
    start = max((n for n in (*begins, *heads) if n < first), default=1)
    end = min((n for n in said if n > last), default=last)
    heading = max((n for n in heads if n <= first), default=1)
    names = set(re.findall(r"\w{2,}", edit.changed))
    words = {*re.findall(r"\w{2,}", found.message), found.value}
    is_named = not names.isdisjoint(words) or f"line {first} " in found.message
    return (
        start <= found.line <= end
        or found.line == heading
        or is_named
        or found.rule in {"missing-key", "warm-up-fails"}
    )


@settings(
    max_examples=int(EXAMPLES or 24),
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink] if EXAMPLES else [Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(edits())
def test_lint_and_bot_agree(edit: Edit) -> None:
    found = [one for one in lint(subject(edit), rules()) if one.severity == "error"]
    reason = refusal(edit)
    if reason:
        assert any(is_about(one, edit) for one in found), (edit.changed, reason, found)
    else:
        assert not [one for one in found if says_that_it_will_not_start(one)], edit.changed
