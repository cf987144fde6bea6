"""Edits of the repository's policy.yaml, linted in this process, and their cures followed."""

import re
from pathlib import Path

from sandbox.policy.document import Finding
from sandbox.policy.extends import parse_document
from tools.policy_lint.rules import BY_GUESTS, families, rules
from tools.policy_lint.subject import Subject, subject_of

POLICY = (Path(__file__).resolve().parents[3] / "policy.yaml").read_text()
# Rules that need no guest, so that a lint takes a tenth of a second.
QUICK = frozenset(rule for rule in rules() if families([rule]).isdisjoint(BY_GUESTS))


def subject(text: str) -> Subject:
    """The text as a policy file called policy.yaml."""
    return subject_of(parse_document(Path("policy.yaml"), text.encode()))


def edited(old: str, new: str) -> str:
    """policy.yaml with the first `old` replaced; a number that was tuned since is found as well."""
    if re.fullmatch(r"\w+: \d+", old):
        name = old.partition(" ")[0]
        return re.sub(rf"\b{name} \d+", lambda _: new, POLICY, count=1)
    assert old in POLICY, old
    return POLICY.replace(old, new, 1)


def follow(text: str, found: Finding) -> str:
    """The text after somebody did what the cure says."""
    lines = text.split("\n")
    line, column, cure = found.line - 1, found.column - 1, found.cure
    if match := re.match(r"did you mean (.+)\?$", cure):
        rest = lines[line][column:].replace(found.value, match[1], 1)
        lines[line] = lines[line][:column] + rest
    elif match := re.match(r"write (?:at least |at most )?(\d+)", cure):
        lines[line] = re.sub(r": *\S*", f": {match[1]}", lines[line], count=1)
    elif match := re.match(r"add (\w+) to dangerous_attrs", cure):
        lines.insert(lines.index("dangerous_attrs:") + 1, f"  - {match[1]}")
    elif re.match(r"add `- ", cure):
        lines[line + 1 : line + 1] = [f"  {entry}" for entry in re.findall("`(- [^`]+)`", cure)]
    elif "delete the comment" in cure:
        lines[line] = lines[line][:column].rstrip()
    elif re.search(r"\bdelete (it|the entry|one)", cure):
        del lines[line]
    elif match := re.search(r"(# accept [\w-]+: )REASON", cure):
        lines[line] += f"  {match[1]}it was read"
    elif match := re.match(r"move \w+ under (\w+)", cure):
        moved = lines.pop(line)
        lines.insert(lines.index(f"{match[1]}:") + 1, moved)
    else:
        raise AssertionError(f"nobody could follow: {cure}")
    return "\n".join(lines)
