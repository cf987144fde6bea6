"""The file that is linted: its document and policy, where each entry stands, and its guests."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sandbox.policy.document import At, Document, Finding, Place, dotted
from sandbox.policy.loader import Policy, PolicyError, parse_policy
from tools.policy_lint.rules import every_rule

__all__ = ["Findings", "Policy", "Subject", "subject_of"]

Findings = Iterator[Finding]

if TYPE_CHECKING:
    from tools.policy_lint.guests import Guests


@dataclass(frozen=True)
class Subject:
    """One policy file; `policy` is None where the loader refuses it."""

    document: Document
    policy: Policy | None

    @cached_property
    def guests(self) -> "Guests":
        """What guests of the sandbox say of the policy."""
        from tools.policy_lint.guests import Guests

        assert self.policy
        return Guests(self.policy)

    def entries(self, field: str) -> Iterator[str]:
        """Each entry of a list, in the order of the file."""
        return (text for _, text in self.document.strings(field))

    def place(self, at: At) -> Place:
        """The place of a field's name, of an entry of its list, or of a number.

        `at` has an entry by its text or its index; of one that is not there, it is the list's name.
        """
        if isinstance(self.document.value.get(str(at[0])), list):
            at = next((where for where, text in self.document.strings(at[0]) if text == at[-1]), at)
        return self.document.place(at, key=self.document.number(at) is None)

    def finding(self, rule: str, at: At, message: str, cure: str, value: str = "") -> Finding:
        """A finding at a place; `value` is by default the entry or the number that stands there."""
        number = self.document.number(at)
        value = value or (str(at[-1] if number is None else number) if at[1:] else "")
        field = dotted(at if number is not None else at[:1])
        severity = every_rule()[rule].severity
        return Finding(*self.place(at), field, value, message, cure, rule, severity)

    def at_most(self, rule: str, message: str, most: Mapping[At, float]) -> Findings:
        """A finding at each of several numbers: to lower one of them so far is enough."""
        for at, number in most.items():
            if number >= 1:
                yield self.finding(rule, at, message, f"write at most {int(number)}")


def subject_of(document: Document) -> Subject:
    """A document as what is linted."""
    try:
        return Subject(document, parse_policy(document))
    except PolicyError:
        return Subject(document, None)
