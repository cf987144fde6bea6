"""What guests of the real sandbox say of a policy; nothing of a policy runs anywhere else.

The zygote here imports none but modules that are known to do nothing but compute, and the libraries
of function/maths.txt. Others, and the programs of prelude and warm_up, run in guests whose layers
do not depend on what the file says.
"""

import ast
import bisect
import builtins
import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.fork_server.outcome import Outcome
from sandbox.fork_server.program import encode
from sandbox.fork_server.zygote_process import (
    KilledFromOutside,
    SandboxUnavailable,
    ZygoteGone,
    ZygoteProcess,
    warm_up_denials,
)
from sandbox.kernel import layers, seccomp, syscalls
from sandbox.policy.loader import Policy, Rlimits
from tools.policy_lint.known import HARMLESS, KNOWN
from tools.policy_lint.modules import OUTSIDE, exists, gives_beyond, is_library, is_trusted

if TYPE_CHECKING:
    from sandbox.self_test import ProbeResult

_IN_GUEST = Path(__file__).with_name("in_guest.py")
_Encode = Callable[[], bytes]  # what a guest is sent
Given = dict[str, Any]  # modules, and the names that each gives
_TIMEOUT = 120.0  # seconds that a program may wait for its guest
_IMPORT_SECONDS = 10  # that a guest may take more, where it imports what the zygote does not

ROOMY_RLIMITS = Rlimits(**KNOWN["roomy"]["rlimits"])
# What no policy can take from the guests that run something of a file that is linted.
_REQUIRED = syscalls.expand([*syscalls.GROUPS, *seccomp.CONDITIONS])

# A preloaded name may hide a builtin.
_OWN_NAMES = "__builtins__.globals().update(__builtins__.vars(__builtins__))"


@dataclass(frozen=True)
class Trial:
    """How programs went in guests of one zygote, and the probes that got through there."""

    outcomes: tuple[Outcome, ...]
    failed: "tuple[ProbeResult, ...]" = ()

    @property
    def reason(self) -> str:
        """Why the first program, or else a probe, failed; empty if all is well."""
        probes = (f"the probe {probe.name!r} got through" for probe in self.failed)
        return reason(self.outcomes[0]) or next(probes, "")


def reason(outcome: Outcome) -> str:
    """Why a program failed; empty if it did not."""
    if outcome.kind in ("ok", "unavailable"):
        return outcome.error if outcome.kind == "unavailable" else ""
    return f"{outcome.kind.replace('_', ' ')}: {outcome.error}".rstrip(": ")


def tried(what: str, policy: Policy, programs: Sequence[_Encode], *, probed: bool = False) -> Trial:
    """Start a zygote under a policy, run programs in guests of it, all at once, and end it."""
    _show(f"trying {what} ...")
    try:
        for _ in range(2):  # a busy machine may lose a guest
            with contextlib.closing(ZygoteProcess(policy)) as process:
                trial = _run(process, programs, probed=probed)
            if "unavailable" not in [outcome.kind for outcome in trial.outcomes]:
                break
        return trial
    except SandboxUnavailable as error:
        return Trial((Outcome("unavailable", error=str(error)),) * len(programs))
    finally:
        _show()


def _run(process: ZygoteProcess, programs: Sequence[_Encode], *, probed: bool) -> Trial:
    def run(encode: _Encode) -> Outcome:
        try:
            return process.run(encode(), _TIMEOUT)
        except (ZygoteGone, KilledFromOutside, OSError) as error:
            return Outcome("unavailable", error=str(error))

    with ThreadPoolExecutor(len(programs)) as pool:
        outcomes = pool.map(run, programs)
        failed: list[ProbeResult] = []
        if probed:
            from sandbox.sandbox import probe_zygote  # 30 ms, in which guests run

            probes = probe_zygote(process, ())
            failed = [probe for probe in probes if probe.required and not probe.passed]
        return Trial(tuple(outcomes), tuple(failed))


def _show(text: str = "") -> None:
    """Replace a terminal's last line; nothing at all elsewhere."""
    if sys.stderr and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")  # ECMA-48: erase to the end of the line
        sys.stderr.flush()


class Guests:
    """Answers about one policy on this interpreter; each is found at most once."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        given = {name: names for name, names in policy.allowed_imports.items() if exists(name)}
        self.trusted = {name: names for name, names in given.items() if is_trusted(name, names)}
        self.others = {name: given[name] for name in given.keys() - self.trusted}
        self.libraries = {name: names for name, names in self.others.items() if is_library(name)}
        self._trial: Future[Trial] | None = None

    def _served(self, imports: Given, **changes: Any) -> Policy:
        """The policy as the bot serves it, but for what anybody may have written."""
        preloaded = {n: m for n, m in self.policy.preloaded.items() if m in imports}
        nothing: dict[str, Any] = {"prelude": (), "warm_up": ()}
        changes |= nothing | {"allowed_imports": imports, "preloaded": preloaded}
        return replace(self.policy, **changes)

    def _anywhere(self, imports: Given, wall: int = 30, **changes: Any) -> Policy:
        """The same as any machine can try it."""
        return self._served(
            imports,
            required_layers=frozenset(layers.ESSENTIAL),
            limits=replace(self.policy.limits, **KNOWN["roomy"]["limits"], wall_seconds=wall),
            identity=replace(self.policy.identity, uid_count=3),
            **changes,
        )

    def _confined(self, libraries: Given, *, imports: bool = True) -> Policy:
        """The policy under all that there is to deny, whatever it says.

        Guests read files beneath the interpreter's own folders, and those of the system's libraries
        if they are to import others; else no more of these than the policy lets them.
        """
        rlimits = replace(self.policy.rlimits, file_size_bytes=0)
        wall = self.policy.limits.wall_seconds
        paths = tuple(path for path in self.policy.readable_paths if _is_public(path))
        if imports:
            seconds, wall = rlimits.cpu_seconds + _IMPORT_SECONDS, wall + _IMPORT_SECONDS
            rlimits = replace(rlimits, cpu_seconds=seconds, open_files=ROOMY_RLIMITS.open_files)
            paths = ("@python", *_system_libraries())
        return self._anywhere(
            self.trusted | libraries,
            rlimits=rlimits,
            denied_syscalls=warm_up_denials(self.policy),
            readable_paths=paths,
            wall=wall,
        )

    def begin(self) -> None:
        """Begin the trial that every policy needs, which takes longer than all else."""
        if self._trial is None:
            programs = [_exercise(self.trusted), self._explorer(self.trusted)]
            policy = self._served(self.trusted)
            pool = ThreadPoolExecutor(1)
            self._trial = pool.submit(tried, "the bot's start", policy, programs, probed=True)

    @property
    def start(self) -> Trial:
        """The bot's start, its self-test included, then what any program may do; and the explorer.

        All in guests as programs get them.
        """
        self.begin()
        assert self._trial
        return self._trial.result()

    @cached_property
    def explored(self) -> dict[str, Any]:
        """What programs can reach in the trusted modules; in_guest.py says what is in it.

        Raises SandboxUnavailable where no guest can be had.
        """
        outcome = self.start.outcomes[1]
        if outcome.kind == "ok":
            return _answer(outcome)
        known = self.policy.denied_syscalls & syscalls.expand(syscalls.GROUPS)
        policy = self._anywhere(self.trusted, rlimits=ROOMY_RLIMITS, denied_syscalls=known)
        return _answer(tried("modules", policy, [self._explorer(self.trusted)]).outcomes[0])

    @cached_property
    def explored_elsewhere(self) -> dict[str, Any]:
        """The same of all other modules: a guest imports those that are not our libraries.

        Raises SandboxUnavailable.
        """
        unknown = {  # what others give is known, and told
            name: names for name, names in self.others.items() if gives_beyond(name, names) is None
        }
        parts = ("open", "refused", "missing", "lacking", "seen")
        nothing: dict[str, Any] = {part: {} for part in parts}
        if not (unknown or self.libraries):
            return nothing
        policy = self._confined(self.libraries)
        [outcome] = tried("other modules", policy, [self._explorer(unknown)]).outcomes
        broken = {} if outcome.kind == "ok" else self._broken()
        return nothing | {"missing": broken} if broken else _answer(outcome)

    def _broken(self) -> dict[str, str]:
        """The libraries that cannot be imported, with the error that each raises."""
        broken = {}
        for name, names in self.libraries.items():
            policy = self._confined({name: names})
            if told := tried(name, policy, [_exercise(())]).reason:
                broken[name] = re.sub(r"^layer zygote .*? \((.*)\); cure.*", r"\1", told)
        return broken

    def rehearse(self, programs: Sequence[str]) -> dict[str, Outcome]:
        """How each program of prelude and, after all of these, of warm_up goes.

        It has the policy's limits and every layer, and imports what the zygote does not.
        """
        prelude = self.policy.prelude
        whole = {one: one if one in prelude else "\n".join((*prelude, one)) for one in programs}
        unknown = self.others.keys() - self.libraries
        names = {n: m for n, m in self.policy.preloaded.items() if m in unknown}
        head = "".join(f"import {module} as {name}\n" for name, module in names.items())
        called = {*names, *(module.partition(".")[0] for module in unknown)}
        outcomes: dict[str, Outcome] = {}
        for imports in (False, True):
            group = [one for one in programs if imports == _has_word(whole[one], called)]
            encoded = [
                partial(encode, head * imports + whole[one], unchecked=imports) for one in group
            ]
            if group:
                policy = self._confined(self.libraries, imports=imports)
                trial = tried("prelude and warm_up", policy, encoded)
                outcomes |= zip(group, trial.outcomes, strict=True)
        return outcomes

    def needed_syscalls(self, entries: Sequence[str]) -> tuple[str, str]:
        """The entry of denied_syscalls, and the call in it, that the bot cannot be without.

        Both empty where denials are not to blame.
        """
        entry = self._culprit(entries)
        call = self._culprit(sorted(syscalls.expand([entry]))) if entry else ""
        return entry, call

    def _culprit(self, entries: Sequence[str]) -> str:
        """The first entry with which the bot does not serve, other than without any."""

        def fails(count: int) -> bool:
            denied = _REQUIRED | syscalls.expand(entries[:count])
            policy = self._served(self.trusted, denied_syscalls=denied)
            return bool(tried("denied_syscalls", policy, [_exercise(())], probed=True).reason)

        if not fails(len(entries)):
            return ""
        count = bisect.bisect_left(range(len(entries)), True, key=fails)
        return entries[count - 1] if count else ""

    def exercise(self, *, modules_too: bool = True, **changes: Any) -> str:
        """Why what any program may do fails, under the policy's rlimits and denials or others."""
        imports = self.trusted if modules_too else {}
        policy = self._anywhere(imports, **changes)
        return tried("limits", policy, [_exercise(imports)]).reason

    def _explorer(self, given: Given) -> _Encode:
        question = {
            "given": given,
            "attrs": sorted(self.policy.dangerous_attrs),
            "names": sorted(self.policy.dangerous_names),
            "builtins": sorted(n for n in {*dir(builtins)} - HARMLESS if n[0].islower()),
            "by_text": KNOWN["by_text"],
            "outside": OUTSIDE,
        }
        return _in_guest(f"print(answer({question!r}))")


def _exercise(imports: Iterable[str]) -> _Encode:
    return _in_guest(f"exercise({list(imports)!r})")


def _in_guest(call: str) -> _Encode:
    text = f"{_OWN_NAMES}\n{_IN_GUEST.read_text('utf-8')}\n{call}"
    # A tree of nothing, as no expression's value is wanted: to parse the text takes 2 ms.
    return partial(encode, text, ast.Module([], []), unchecked=True)


def _answer(outcome: Outcome) -> dict[str, Any]:
    if outcome.kind != "ok":
        raise SandboxUnavailable(reason(outcome))
    return dict(ast.literal_eval(outcome.output.splitlines()[-1]))


def _has_word(text: str, words: set[str]) -> bool:
    return not words.isdisjoint(re.findall(r"\w+", text))


def _is_public(path: str) -> bool:
    """Whether a readable path leads to what every user of the machine may read, and no secrets."""
    folders = (*_system_libraries(), "/usr/share")
    resolved = Path(path).resolve()
    return path == "@python" or any(resolved.is_relative_to(folder) for folder in folders)


def _system_libraries() -> list[str]:
    """The folders that modules in C load their libraries from."""
    folders = (Path(name) for name in ("/lib", "/lib64", "/usr/lib", "/usr/lib64"))
    return sorted({str(folder.resolve()) for folder in folders if folder.is_dir()})
