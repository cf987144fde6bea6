"""The file that is linted: its document and policy, and where each entry of it stands."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.policy.document import At, Document, Place, read_document
from sandbox.policy.loader import Policy, PolicyError, parse_policy
from tools.policy_lint.finding import Finding, Rule, finding


@dataclass(frozen=True)
class Subject:
    """One policy file; `policy` is None where the loader refuses it."""

    path: Path
    document: Document
    policy: Policy | None

    def entries(self, field: str) -> Iterator[tuple[str, Place]]:
        """Each entry of a list, with its place."""
        return ((text, self.document.place(at)) for at, text in self.document.strings(field))

    def place_of(self, field: str, entry: str) -> Place:
        """The place of an entry of a list, else of the list's name."""
        return next(
            (place for text, place in self.entries(field) if text == entry), self.heading(field)
        )

    def heading(self, field: str) -> Place:
        """The place of a field's name."""
        return self.document.place((field,), key=True)

    def at_entry(self, rule: Rule, field: str, entry: str, message: str, cure: str) -> Finding:
        """A finding at an entry of a list."""
        return finding(rule, self.path, self.place_of(field, entry), message, cure, entry)

    def at_heading(
        self, rule: Rule, field: str, message: str, cure: str, value: str = ""
    ) -> Finding:
        """A finding about what a field lacks."""
        return finding(rule, self.path, self.heading(field), message, cure, value)

    def at_value(self, rule: Rule, at: At, message: str, cure: str) -> Finding:
        """A finding at a number or name deeper in the file."""
        value = self.document.number(at)
        place = self.document.place(at)
        return finding(rule, self.path, place, message, cure, "" if value is None else str(value))


def read(path: Path) -> Subject:
    """Read a policy file, good or bad."""
    document = read_document(path)
    try:
        policy = parse_policy(document)
    except PolicyError:
        policy = None
    return Subject(path, document, policy)
