"""What a change of the policy means: what it makes weaker, what stronger, and what is neither."""

import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from sandbox.check.checker import check
from sandbox.kernel.syscalls import expand
from sandbox.policy.document import At, Place, parse_document
from sandbox.policy.loader import Policy, PolicyError, parse_policy, schema
from tools.policy_lint.denials import NEEDS
from tools.policy_lint.examples import EXAMPLES
from tools.policy_lint.finding import Finding, Rule, finding
from tools.policy_lint.modules import gives
from tools.policy_lint.subject import Subject, read
from tools.policy_lint.words import search

WEAKER = Rule(
    "weaker",
    "error",
    "The change lets programs do more",
    "A weakening should be seen and meant; --allow-weaker lets it pass.",
    "allowed_imports gains pathlib",
    "Undo it, or say why it is meant when you pass --allow-weaker.",
)
STRONGER = Rule(
    "stronger",
    "note",
    "The change lets programs do less",
    "Programs that worked may be refused or end early.",
    "dangerous_names gains print",
    "Nothing is to be cured.",
)
OTHER = Rule(
    "changed",
    "note",
    "The change makes programs neither safer nor less safe",
    "It changes what programs find, or how quickly they start.",
    "preloaded gains st",
    "Nothing is to be cured.",
)
RULES = {rule.id: rule for rule in (WEAKER, STRONGER, OTHER)}

# Limits that bound no program: how the sandbox goes about it.
_NEUTRAL: frozenset[At] = frozenset({("limits", "prepared_guests"), ("limits", "queue_seconds")})
# Lists: whether one entry more is weaker, and what the weaker side allows.
_LISTS = {
    "allowed_imports": (True, "programs may import it"),
    "dangerous_names": (False, "programs may use the name"),
    "dangerous_attrs": (False, "programs may read the attribute"),
    "allowed_dunders": (True, "classes may define the method"),
    "required_layers": (False, "the bot serves without the layer"),
    "readable_paths": (True, "Landlock lets programs read it"),
}


class NotComparable(Exception):
    """The older policy cannot be had, or is none; the text says why."""


def compare(old: Subject, new: Subject) -> Iterator[Finding]:
    """One finding for each change of meaning, at its line of the new file."""
    if old.policy is None or new.policy is None:
        broken = old if old.policy is None else new
        raise NotComparable("\n".join(map(str, broken.document.problems)))
    before, after = old.policy, new.policy
    yield from _lists(before, after, new)
    yield from _preloaded(before, after, new)
    yield from _warm_up(before, after, new)
    yield from _words(before, after, new)
    yield from _numbers(before, after, new)
    yield from _syscalls(before, after, new)


def read_old(name: str, path: Path) -> Subject:
    """The policy to compare with: a file, or `git:REV` for `path` at that revision."""
    if not name.startswith("git:"):
        return read(Path(name))
    revision = name.removeprefix("git:")
    folder = str(path.resolve().parent)
    command = ["git", "-C", folder, "show", "--end-of-options", f"{revision}:./{path.name}"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)  # nosec B603
    except OSError as error:
        raise NotComparable(f"git cannot be run: {error}") from error
    if done.returncode:
        raise NotComparable(done.stderr.decode("utf-8", "replace").strip())
    document = parse_document(Path(f"{path}@{revision}"), done.stdout)
    try:
        return Subject(document.path, document, parse_policy(document))
    except PolicyError:
        return Subject(document.path, document, None)


def _change(
    new: Subject, weaker: bool | None, place: Place, message: str, value: str = ""
) -> Finding:
    rule = OTHER if weaker is None else WEAKER if weaker else STRONGER
    cure = "pass --allow-weaker if it is meant" if weaker else "no cure is needed"
    return finding(rule, new.path, place, message, cure, value)


def _lists(before: Policy, after: Policy, new: Subject) -> Iterator[Finding]:
    for field, (more_is_weaker, allows) in _LISTS.items():
        old_entries, new_entries = set(getattr(before, field)), set(getattr(after, field))
        for entry in sorted(old_entries ^ new_entries):
            gained = entry in new_entries
            # "uid or landlock" says nothing more where one of the two is required by itself.
            if set(entry.split(" or ")) & (old_entries if gained else new_entries):
                continue
            weaker = gained == more_is_weaker
            why = allows if weaker else f"no more: {allows}"
            if field == "allowed_imports" and (what := gives(entry)):
                why += f", which gives them {what}"
            message = f"{field} {'gains' if gained else 'loses'} {entry}: {why}"
            yield _change(new, weaker, new.place_of(field, entry), message, entry)


def _preloaded(before: Policy, after: Policy, new: Subject) -> Iterator[Finding]:
    for name in sorted(before.preloaded.keys() | after.preloaded.keys()):
        old, now = before.preloaded.get(name), after.preloaded.get(name)
        if old != now:
            place = new.document.place(("preloaded", name), key=True)
            message = f"preloaded.{name} was {old or 'not there'} and is {now or 'gone'}"
            yield _change(new, None, place, message, name)


def _warm_up(before: Policy, after: Policy, new: Subject) -> Iterator[Finding]:
    if before.warm_up != after.warm_up:
        message = "warm_up has other programs: what guests find warm changes, not what they may do"
        yield _change(new, None, new.document.place(("warm_up",), key=True), message)


def _words(before: Policy, after: Policy, new: Subject) -> Iterator[Finding]:
    old = {word.pattern for word in before.blocked_words}
    now = {word.pattern for word in after.blocked_words}
    for word in sorted(old ^ now):
        gained = word in now
        sides = _sides(word, before if gained else after)
        message = f"blocked_words {'gains' if gained else 'loses'} {word}: {sides}"
        yield _change(new, not gained, new.place_of("blocked_words", word), message, word)


def _sides(word: str, without: Policy) -> str:
    """Which example programs the word alone decides about, under the policy without it."""
    hits, _ = search({word: [*EXAMPLES.values()]})
    matched = [[*EXAMPLES.items()][index] for index, _ in hits.get(word, ())]
    decided = [name for name, source in matched if not check(source, without)]
    if decided:
        return f"example programs that change sides: {', '.join(decided)}"
    return "no example program changes sides, the other fields decide"


def _numbers(before: Policy, after: Policy, new: Subject) -> Iterator[Finding]:
    for group in ("rlimits", "limits", "identity"):
        old_values = asdict(getattr(before, group))
        for name, value in asdict(getattr(after, group)).items():
            old = old_values[name]
            if old == value:
                continue
            at = (group, name)
            weaker = None if group == "identity" or at in _NEUTRAL else value > old
            word = "grows" if value > old else "shrinks"
            about = schema()["properties"][group]["properties"][name]["description"].rstrip(".")
            message = f"{group}.{name} {word} from {old} to {value}: {about}"
            yield _change(new, weaker, new.document.place(at), message, str(value))


def _syscalls(before: Policy, after: Policy, new: Subject) -> Iterator[Finding]:
    """Calls by what they are good for; a whole denial is stronger than one under a condition."""
    old, now = before.denied_syscalls, after.denied_syscalls
    for weaker, calls in ((True, _lost(old, now)), (False, _lost(now, old))):
        for entry, members in _by_entry(calls, new, weaker):
            verb = "no longer denies" if weaker else "denies"
            needs = sorted({need for call in members if (need := _need(call))})
            why = f": programs could {'; '.join(needs)}" if weaker and needs else ""
            lesser = {entry.partition("(")[0] for entry in (now if weaker else old) if "(" in entry}
            shown = ", ".join(f"{call} wholly" if call in lesser else call for call in members)
            message = f"denied_syscalls {verb} {shown}{why}"
            yield _change(new, weaker, new.place_of("denied_syscalls", entry), message, entry)


def _lost(old: frozenset[str], now: frozenset[str]) -> list[str]:
    """What `old` denies and `now` does not, or only under a condition."""
    return sorted(call for call in old - now if call.partition("(")[0] not in now)


def _by_entry(calls: Iterable[str], new: Subject, weaker: bool) -> Iterator[tuple[str, list[str]]]:
    """The calls, put together by the entry of the new file or by the need that they belong to."""
    left = list(calls)
    entries = [] if weaker else [entry for entry, _ in new.entries("denied_syscalls")]
    for entry in entries:
        members = [call for call in left if call in expand([entry])]
        if members:
            yield entry, members
            left = [call for call in left if call not in members]
    needs: dict[str, list[str]] = {}
    for call in left:
        needs.setdefault(_need(call), []).append(call)
    for members in needs.values():
        yield members[0], members


def _need(call: str) -> str:
    """What a program could do with a call."""
    for need, entries in NEEDS.items():
        members = expand(entries.split())
        if call in members or any(m.partition("(")[0] == call for m in members):
            return need
    return ""
