"""What the policy refuses although it is plain Python.

honest-refused (error): A benign program is refused
    Names and attributes are tried on a list of programs as people write them, and on Python's own
    vocabulary: harmless builtins, methods of the builtin types, what allowed modules give.
    Example: dangerous_names with print
    Cure: Delete the entry.
"""

from collections.abc import Iterator
from dataclasses import replace

from sandbox.check.checker import check as violations
from sandbox.policy.document import Finding
from sandbox.policy.loader import Policy
from tools.policy_lint.examples import BENIGN
from tools.policy_lint.known import HARMLESS, REVEALING
from tools.policy_lint.program import origin
from tools.policy_lint.subject import Subject

_TYPES = (str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, range)


def check(subject: Subject, policy: Policy) -> Iterator[Finding]:
    """Entries that refuse a benign program or a part of the language."""
    methods = {name: kind for kind in _TYPES for name in dir(kind) if name[0] != "_"}
    ordinary = HARMLESS | {*policy.allowed_imports}
    if not policy.limits.input_bytes:
        ordinary -= {"input"}
    refused = {("dangerous_names", name): name for name in policy.dangerous_names & ordinary}
    for name in policy.dangerous_attrs & (methods.keys() - REVEALING.keys()):
        refused["dangerous_attrs", name] = f"{methods[name].__name__}.{name}"
    wordless = replace(policy, blocked_words=())  # these have a rule of their own
    for source in BENIGN:
        for violation in violations(source, wordless):
            field, entry = origin(violation, wordless)
            if field in {"dangerous_names", "dangerous_attrs"} and entry:
                line = source.split("\n")[violation.line - 1].strip()
                refused.setdefault((field, entry), line)
    for at, shown in refused.items():
        message = f"{at[1]} refuses honest programs, such as {shown}"
        yield subject.finding("honest-refused", at, message, "delete it")
