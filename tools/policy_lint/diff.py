"""What a change of the policy means: what it makes weaker, what stronger, and what is neither.

weaker (error): The change lets programs do more
    A weakening should be seen and meant; --allow-weaker lets it pass.
    Example: allowed_imports gains pathlib
    Cure: Undo it, or say why it is meant when you pass --allow-weaker.

stronger (note): The change lets programs do less
    Programs that worked may be refused or end early.
    Example: dangerous_names gains print
    Cure: Nothing is to be cured.

changed (note): The change makes programs neither safer nor less safe
    It changes what programs find, or how quickly they start.
    Example: preloaded gains st
    Cure: Nothing is to be cured.
"""

import os
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from sandbox.check.checker import check
from sandbox.kernel.syscalls import expand
from sandbox.policy.document import At, Finding, Place, dotted
from sandbox.policy.extends import parse_document
from sandbox.policy.loader import Policy, schema
from tools.policy_lint.examples import EXAMPLES
from tools.policy_lint.modules import gives
from tools.policy_lint.rules import described
from tools.policy_lint.rules.syscalls import NEEDS
from tools.policy_lint.subject import Subject, read, subject_of

RULES = {rule.id: rule for rule in described(Path(__file__), "diff")}

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
        raise NotComparable("\n".join(map(str, broken.document.findings)))
    before, after = old.policy, new.policy
    yield from _lists(before, after, new)
    yield from _given(before, after, new)
    yield from _preloaded(before, after, new)
    yield from _programs(before, after, new)
    yield from _words(before, after, new)
    yield from _numbers(before, after, new)
    yield from _syscalls(before, after, new)


def read_old(name: str, path: Path) -> Subject:
    """The policy to compare with: a file, or `git:REV` for `path` at that revision."""
    if not name.startswith("git:"):
        return read(Path(name))
    revision = name.removeprefix("git:")

    def show(file: Path) -> bytes:
        """The file's bytes at the revision; also of a file that it extends."""
        command = ["git", "-C", str(path.resolve().parent), "show", "--end-of-options"]
        beside = os.path.relpath(file, path.parent)
        command.append(f"{revision}:./{beside}")
        try:
            done = subprocess.run(command, capture_output=True, check=False)  # nosec B603
        except OSError as error:
            raise NotComparable(f"git cannot be run: {error}") from error
        if done.returncode:
            raise NotComparable(done.stderr.decode("utf-8", "replace").strip())
        return done.stdout

    return subject_of(parse_document(path, show(path), show))


def _change(
    weaker: bool | None, place: Place, message: str, value: str = "", at: At = ()
) -> Finding:
    rule = "changed" if weaker is None else "weaker" if weaker else "stronger"
    cure = "pass --allow-weaker if it is meant" if weaker else "no cure is needed"
    return Finding(*place, dotted(at), value, message, cure, rule, RULES[rule].severity)


def _lists(before: Policy, after: Policy, new: Subject) -> Iterator[Finding]:
    for field, (more_is_weaker, allows) in _LISTS.items():
        old_entries, new_entries = set(getattr(before, field)), set(getattr(after, field))
        for entry in sorted(old_entries ^ new_entries):
            gained = entry in new_entries
            if _covered(field, entry, old_entries if gained else new_entries):
                continue
            weaker = gained == more_is_weaker
            why = allows if weaker else f"no more: {allows}"
            if field == "allowed_imports" and (what := gives(entry)):
                why += f", which gives them {what}"
            message = f"{field} {'gains' if gained else 'loses'} {entry}: {why}"
            yield _change(weaker, new.place_of(field, entry), message, entry, (field,))


def _covered(field: str, entry: str, others: Collection[str]) -> bool:
    """Whether the other policy's entries say already what an entry says."""
    if field == "readable_paths":
        return any(PurePosixPath(entry).is_relative_to(other) for other in others)
    if field == "dangerous_attrs":
        return entry.rpartition(".")[2] in others
    # "uid or landlock" says nothing more where one of the two is required by itself.
    return field == "required_layers" and not set(entry.split(" or ")).isdisjoint(others)


def _given(before: Policy, after: Policy, new: Subject) -> Iterator[Finding]:
    """Names that a module gives programs in one policy alone."""
    for module in sorted(before.allowed_imports.keys() & after.allowed_imports.keys()):
        old, now = before.allowed_imports[module], after.allowed_imports[module]
        if old == now or (old and now and set(old) == set(now)):
            continue
        more = "its public names" if now is None else ", ".join(sorted({*now} - {*(old or now)}))
        less = "" if now is None else ", ".join(sorted({*(old or ())} - {*now}))
        parts = [f"gives {more}"] * bool(more) + [f"no longer gives {less}"] * bool(less)
        message = f"{module} {' and '.join(parts) or 'gives no more than what is named'}"
        place = new.place_of("allowed_imports", module)
        yield _change(bool(more), place, message, module, ("allowed_imports",))


def _preloaded(before: Policy, after: Policy, new: Subject) -> Iterator[Finding]:
    for name in sorted(before.preloaded.keys() | after.preloaded.keys()):
        old, now = before.preloaded.get(name), after.preloaded.get(name)
        if old != now:
            place = new.document.place(("preloaded", name), key=True)
            message = f"preloaded.{name} was {old or 'not there'} and is {now or 'gone'}"
            yield _change(None, place, message, name)


def _programs(before: Policy, after: Policy, new: Subject) -> Iterator[Finding]:
    for field, what in (
        ("prelude", "which names guests find changes"),
        ("warm_up", "what guests find warm changes"),
    ):
        if getattr(before, field) != getattr(after, field):
            message = f"{field} has other programs: {what}, not what they may do"
            yield _change(None, new.document.place((field,), key=True), message)


def _words(before: Policy, after: Policy, new: Subject) -> Iterator[Finding]:
    old = {word.pattern for word in before.blocked_words}
    now = {word.pattern for word in after.blocked_words}
    for word in sorted(old ^ now):
        gained = word in now
        sides = _sides(re.compile(word), before if gained else after)
        message = f"blocked_words {'gains' if gained else 'loses'} {word}: {sides}"
        yield _change(not gained, new.place_of("blocked_words", word), message, word)


def _sides(word: re.Pattern[str], without: Policy) -> str:
    """Which example programs the word alone decides about, under the policy without it."""
    decided = [
        name
        for name, source in EXAMPLES.items()
        if word.search(source) and not check(source, without)
    ]
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
            yield _change(weaker, new.document.place(at), message, str(value))


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
            yield _change(weaker, new.place_of("denied_syscalls", entry), message, entry)


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
