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
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

from sandbox.check.checker import check
from sandbox.kernel.syscalls import expand
from sandbox.policy.document import PROGRAMS, At, Finding
from sandbox.policy.extends import parse_document, read_document
from sandbox.policy.mistakes import schema
from tools.policy_lint import Unusable
from tools.policy_lint.known import BENIGN, HOSTILE, NEEDS
from tools.policy_lint.modules import gives
from tools.policy_lint.subject import Findings, Policy, Subject, subject_of

# Lists: whether one entry more is weaker, and what the weaker side allows.
_LISTS = {
    "allowed_imports": (True, "programs may import it"),
    "dangerous_names": (False, "programs may use the name"),
    "dangerous_attrs": (False, "programs may read the attribute"),
    "allowed_dunders": (True, "classes may define the method"),
    "required_layers": (False, "the bot serves without the layer"),
    "readable_paths": (True, "Landlock lets programs read it"),
}
# Numbers that bound no program: how the sandbox goes about it.
_NEUTRAL = ("prepared_guests", "queue_seconds", "first_uid", "uid_count")
_PUBLIC = "its public names"


def compare(old: Subject, new: Subject) -> Findings:
    """One finding for each change of meaning, at its line of the new file. Raises Unusable."""
    if old.policy is None or new.policy is None:
        broken = old if old.policy is None else new
        raise Unusable("\n".join(map(str, broken.document.findings)))
    before, after = _facts(old.policy), _facts(new.policy)
    for at in sorted(before.keys() | after.keys()):
        was, now = before.get(at), after.get(at)
        if was != now:
            weaker, message = _meaning(at, was, now, (old.policy, new.policy))
            if message:
                yield _change(new, at if at[1] else at[:1], weaker, message)
    yield from _syscalls(old.policy.denied_syscalls, new.policy.denied_syscalls, new)


def read_old(name: str, path: Path) -> Subject:
    """The policy to compare with: a file, or `git:REV` for `path` at that revision."""
    if not name.startswith("git:"):
        return subject_of(read_document(Path(name)))
    revision = name.removeprefix("git:")

    def show(file: Path) -> bytes:
        """The file's bytes at the revision; also of a file that it extends."""
        command = ["git", "-C", str(path.resolve().parent), "show", "--end-of-options"]
        command.append(f"{revision}:./{os.path.relpath(file, path.parent)}")
        try:
            done = subprocess.run(command, capture_output=True, check=False)  # nosec B603
        except OSError as error:
            raise Unusable(f"git cannot be run: {error}") from error
        if done.returncode:
            raise Unusable(done.stderr.decode("utf-8", "replace").strip())
        return done.stdout

    return subject_of(parse_document(path, show(path), show))


def _facts(policy: Policy) -> dict[tuple[str, str], Any]:
    """What a policy says but for calls: of a field and an entry, the value, or that it is there."""
    facts: dict[tuple[str, str], Any] = {
        (field, entry): True for field in _LISTS for entry in getattr(policy, field)
    }
    for module, names in policy.allowed_imports.items():
        facts["allowed_imports", module] = {_PUBLIC} if names is None else {*names}
    facts |= {("blocked_words", word.pattern): word for word in policy.blocked_words}
    facts |= {("preloaded", name): module for name, module in policy.preloaded.items()}
    facts |= {(field, ""): getattr(policy, field) for field in PROGRAMS}
    for group in ("rlimits", "limits", "identity"):
        numbers = asdict(getattr(policy, group))
        facts |= {(group, name): number for name, number in numbers.items()}
    return facts


def _meaning(
    at: tuple[str, str], was: Any, now: Any, policies: tuple[Policy, Policy]
) -> tuple[bool | None, str]:
    """Whether a change is weaker, None for neither, and what it means; "" where it means nothing.

    Of an entry that is not there, the value is None.
    """
    field, entry = at
    verb, without = ("loses", policies[1]) if now is None else ("gains", policies[0])
    if field == "preloaded":
        return None, f"preloaded.{entry} was {was or 'not there'} and is {now or 'gone'}"
    if field in PROGRAMS:
        return None, f"{field} has other programs: what guests find changes, not what they may do"
    if field == "blocked_words":
        return now is None, f"blocked_words {verb} {entry}: {_sides(now or was, without)}"
    if field not in _LISTS:
        return _number(field, entry, was, now)
    if was is not None and now is not None:
        return _given(entry, was, now)
    more_is_weaker, allows = _LISTS[field]
    weaker = (verb == "gains") == more_is_weaker
    what = gives(entry) if field == "allowed_imports" else None
    why = f"{'' if weaker else 'no more: '}{allows}{f', which gives them {what}' if what else ''}"
    is_said = _is_said(field, entry, getattr(without, field))
    return weaker, "" if is_said else f"{field} {verb} {entry}: {why}"


def _is_said(field: str, entry: str, others: Collection[str]) -> bool:
    """Whether the other policy's entries say already what an entry says."""
    if field == "readable_paths":
        return any(PurePosixPath(entry).is_relative_to(other) for other in others)
    if field == "dangerous_attrs":
        return entry.rpartition(".")[2] in others
    # "uid or landlock" says nothing more where one of the two is required by itself.
    return field == "required_layers" and not set(entry.split(" or ")).isdisjoint(others)


def _given(module: str, was: set[str], now: set[str]) -> tuple[bool, str]:
    """What it means that a module gives programs other names."""
    more, less = sorted(now - was), sorted(was - now - {_PUBLIC})
    if _PUBLIC in now:
        return True, f"{module} gives {_PUBLIC}"
    if _PUBLIC in was:
        return False, f"{module} gives no more than what is named"
    parts = [f"gives {', '.join(more)}"] * bool(more)
    parts += [f"no longer gives {', '.join(less)}"] * bool(less)
    return bool(more), f"{module} {' and '.join(parts)}"


def _number(group: str, name: str, was: int, now: int) -> tuple[bool | None, str]:
    about = schema()["properties"][group]["properties"][name]["description"].rstrip(".")
    verb = "grows" if now > was else "shrinks"
    message = f"{group}.{name} {verb} from {was} to {now}: {about}"
    return None if name in _NEUTRAL else now > was, message


def _sides(word: re.Pattern[str], without: Policy) -> str:
    """Which example programs the word alone decides about, under the policy without it."""
    benign = {f"the benign {source.splitlines()[0]!r}": source for source in BENIGN}
    decided = [
        name
        for name, source in (HOSTILE | benign).items()
        if word.search(source) and not check(source, without)
    ]
    if decided:
        return f"example programs that change sides: {', '.join(decided)}"
    return "no example program changes sides, the other fields decide"


def _syscalls(old: frozenset[str], now: frozenset[str], new: Subject) -> Findings:
    """Calls: those lost by what they are good for, those gained by the entry of the new file.

    A whole denial is stronger than one under a condition.
    """
    entries = list(new.entries("denied_syscalls"))
    for weaker, stricter, laxer in ((True, old, now), (False, now, old)):
        under_condition = {call.partition("(")[0] for call in laxer if "(" in call}
        together: dict[str, list[str]] = {}
        for call in sorted(stricter - laxer):
            if call.partition("(")[0] not in laxer:
                own = next((entry for entry in entries if call in expand([entry])), call)
                together.setdefault(_need(call) if weaker else own, []).append(call)
        for key, calls in together.items():
            shown = (f"{call} wholly" if call in under_condition else call for call in calls)
            verb = "no longer denies" if weaker else "denies"
            message = f"denied_syscalls {verb} {', '.join(shown)}"
            message += f": programs could {key}" if weaker and key else ""
            yield _change(new, ("denied_syscalls", calls[0] if weaker else key), weaker, message)


def _need(call: str) -> str:
    """What a program could do with a call."""
    for need, entries in NEEDS.items():
        members = expand(entries.split())
        if call in members or any(member.partition("(")[0] == call for member in members):
            return need
    return ""


def _change(new: Subject, at: At, weaker: bool | None, message: str) -> Finding:
    rule = "changed" if weaker is None else "weaker" if weaker else "stronger"
    cure = "pass --allow-weaker if it is meant" if weaker else "no cure is needed"
    return new.finding(rule, at, message, cure)
