"""The file that is linted: its document and policy, where each entry stands, and its guests."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.policy.document import At, Document, Finding, Place, dotted
from sandbox.policy.extends import read_document
from sandbox.policy.loader import Policy, PolicyError, parse_policy
from tools.policy_lint.rules import rules

if TYPE_CHECKING:
    from tools.policy_lint.guests import Guests


@dataclass(frozen=True)
class Subject:
    """One policy file; `policy` is None where the loader refuses it."""

    document: Document
    policy: Policy | None

    @property
    def path(self) -> Path:
        """The file's name."""
        return self.document.path

    @cached_property
    def guests(self) -> "Guests":
        """What guests of the sandbox say of the policy."""
        from tools.policy_lint.guests import Guests

        assert self.policy
        return Guests(self.policy)

    def entries(self, field: str) -> Iterator[tuple[str, Place]]:
        """Each entry of a list, with its place."""
        return ((text, self.document.place(at)) for at, text in self.document.strings(field))

    def place_of(self, field: str, entry: str) -> Place:
        """The place of an entry of a list, else of the list's name."""
        places = (place for text, place in self.entries(field) if text == entry)
        return next(places, self.document.place((field,), key=True))

    def finding(
        self, rule: str, place: Place, message: str, cure: str, value: str = "", at: At = ()
    ) -> Finding:
        """A finding at a place."""
        severity = rules()[rule].severity
        return Finding(*place, dotted(at), value, message, cure, rule, severity)

    def at_entry(self, rule: str, field: str, entry: str, message: str, cure: str) -> Finding:
        """A finding at an entry of a list."""
        return self.finding(rule, self.place_of(field, entry), message, cure, entry, (field,))

    def at_heading(
        self, rule: str, field: str, message: str, cure: str, value: str = ""
    ) -> Finding:
        """A finding about what a field lacks, which is `value`."""
        place = self.document.place((field,), key=True)
        return self.finding(rule, place, message, cure, value, (field,))

    def at_number(self, rule: str, at: At, message: str, cure: str) -> Finding:
        """A finding at a number."""
        value = str(self.document.number(at))
        return self.finding(rule, self.document.place(at), message, cure, value, at)


def read(path: Path) -> Subject:
    """Read a policy file, good or bad."""
    return subject_of(read_document(path))


def subject_of(document: Document) -> Subject:
    """A document as what is linted."""
    try:
        return Subject(document, parse_policy(document))
    except PolicyError:
        return Subject(document, None)
