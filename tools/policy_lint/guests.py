"""What guests of the real sandbox say of a policy; nothing of a policy runs anywhere else.

The zygote here imports none but modules that are known to do nothing but compute, and the libraries
of function/maths.txt. Others, and the programs of prelude and warm_up, run in guests whose layers
do not depend on what the file says.
"""

import ast
import builtins
import contextlib
import re
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sandbox.check.source import parse
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
from sandbox.sandbox import probe_zygote
from sandbox.self_test import ProbeResult
from tools.policy_lint.known import HARMLESS, KNOWN
from tools.policy_lint.modules import OUTSIDE, exists, gives_beyond, is_library, is_trusted

_IN_GUEST = Path(__file__).with_name("in_guest.py")
_TIMEOUT = 120.0  # seconds that a program may wait for its guest
_IMPORT_SECONDS = 10  # that a guest may take more, where it imports what the zygote does not

# Bounds under which any question has room.
_ROOMY = {"wall_seconds": 30, "source_bytes": 1 << 20, "output_bytes": 4 << 17}
_ROOMY |= {"concurrent_guests": 2, "prepared_guests": 1, "queue_seconds": 30}
ROOMY_RLIMITS = Rlimits(
    cpu_seconds=20,
    address_space_mib=2048,
    stack_mib=8,
    file_size_bytes=0,
    core_bytes=0,
    open_files=64,
    processes=0,
)
# What no policy can take from the guests that run something of a file that is linted.
_REQUIRED = syscalls.expand([*syscalls.GROUPS, *seccomp.CONDITIONS])

# A preloaded name may hide a builtin.
_OWN_NAMES = "__builtins__.globals().update(__builtins__.vars(__builtins__))"


@dataclass(frozen=True)
class Trial:
    """How programs went in guests of one zygote, and the probes that got through there."""

    outcomes: tuple[Outcome, ...]
    failed: tuple[ProbeResult, ...] = ()

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


def tried(what: str, policy: Policy, programs: Iterable[bytes], *, probed: bool = False) -> Trial:
    """Start a zygote under a policy, run programs in guests of it, all at once, and end it."""
    programs = list(programs)
    _show(f"trying {what} ...")
    try:
        with contextlib.closing(ZygoteProcess(policy)) as process:
            return _run(process, programs, probed=probed)
    except SandboxUnavailable as error:
        return Trial((Outcome("unavailable", error=str(error)),) * len(programs))
    finally:
        _show()


def _run(process: ZygoteProcess, programs: list[bytes], *, probed: bool) -> Trial:
    def run(program: bytes) -> Outcome:
        try:
            return process.run(program, _TIMEOUT)
        except (ZygoteGone, KilledFromOutside, OSError) as error:
            return Outcome("unavailable", error=str(error))

    with ThreadPoolExecutor(len(programs)) as pool:
        outcomes = pool.map(run, programs)
        probes = probe_zygote(process, ()) if probed else ()
        failed = tuple(probe for probe in probes if probe.required and not probe.passed)
        return Trial(tuple(outcomes), failed)


def _show(text: str = "") -> None:
    """Replace a terminal's last line; nothing at all elsewhere."""
    if sys.stderr.isatty():
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
        self.served = self._with(self.trusted)

    def _with(self, imports: dict[str, Any], **changes: Any) -> Policy:
        """The policy as the bot serves it, but for what anybody may have written."""
        preloaded = {n: m for n, m in self.policy.preloaded.items() if m in imports}
        return replace(
            self.policy,
            prelude=(),
            warm_up=(),
            allowed_imports=imports,
            preloaded=preloaded,
            **changes,
        )

    def _anywhere(self, imports: dict[str, Any], wall: int = 30, **changes: Any) -> Policy:
        """The same as any machine can try it."""
        return self._with(
            imports,
            required_layers=frozenset(layers.ESSENTIAL),
            limits=replace(self.policy.limits, **_ROOMY | {"wall_seconds": wall}),
            identity=replace(self.policy.identity, uid_count=3),
            **changes,
        )

    @cached_property
    def start(self) -> Trial:
        """The bot's start, its self-test included, then what any program may do; and the explorer.

        All in guests as programs get them.
        """
        programs = [_exercise(self.trusted), self._explorer(self.trusted)]
        return tried("the bot's start", self.served, programs, probed=True)

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
        nothing: dict[str, Any] = {"open": [], "refused": {}, "missing": {}, "seen": [], "near": []}
        if not (unknown or self.libraries):
            return nothing
        seconds = ROOMY_RLIMITS.cpu_seconds
        policy = self._confined(seconds, self.libraries)
        [outcome] = tried("other modules", policy, [self._explorer(unknown)]).outcomes
        missing = {}
        for name in self.libraries if outcome.kind != "ok" else ():
            policy = self._confined(seconds, {name: self.libraries[name]})
            told = tried(name, policy, [_exercise(())]).reason
            if told:  # of the zygote's own words, the error
                missing[name] = re.sub(
                    r"^layer zygote is not in force \((.*)\); cure.*", r"\1", told
                )
        return nothing | {"missing": missing} if missing else _answer(outcome)

    def rehearse(self, programs: Iterable[str]) -> dict[str, Outcome]:
        """How each program of prelude and, after all of these, of warm_up goes.

        It has the policy's limits and every layer.
        """
        by_seconds: dict[int, dict[str, bytes]] = {}
        for program in programs:
            seconds, encoded = self._rehearsal(program)
            by_seconds.setdefault(seconds, {})[program] = encoded
        outcomes: dict[str, Outcome] = {}
        for seconds, encoded_programs in by_seconds.items():
            policy = self._confined(seconds, self.libraries)
            trial = tried("prelude and warm_up", policy, encoded_programs.values())
            outcomes |= zip(encoded_programs, trial.outcomes, strict=True)
        return outcomes

    def _rehearsal(self, program: str) -> tuple[int, bytes]:
        """Seconds of processor time, and what a guest is sent, which imports what it needs."""
        if program not in self.policy.prelude:
            program = "\n".join((*self.policy.prelude, program))
        unknown = self.others.keys() - self.libraries
        names = {
            name: module for name, module in self.policy.preloaded.items() if module in unknown
        }
        words = set(re.findall(r"\w+", program))
        seconds = self.policy.rlimits.cpu_seconds
        if words.isdisjoint({*names, *(name.partition(".")[0] for name in unknown)}):
            return seconds, encode(program, parse(program))
        imports = "".join(f"import {module} as {name}\n" for name, module in names.items())
        return seconds + _IMPORT_SECONDS, encode(imports + program, unchecked=True)

    def _confined(self, cpu_seconds: int, libraries: dict[str, Any]) -> Policy:
        """The policy under all that there is to deny, whatever it says.

        Guests read files, as imports do, beneath the interpreter's own folders.
        """
        limits = {"cpu_seconds": cpu_seconds, "open_files": 64, "file_size_bytes": 0}
        return self._anywhere(
            self.trusted | libraries,
            rlimits=replace(self.policy.rlimits, **limits),
            denied_syscalls=warm_up_denials(self.policy),
            readable_paths=("@python", *_system_libraries()),
            wall=max(cpu_seconds + 1, self.policy.limits.wall_seconds),
        )

    def serves(self, entries: Iterable[str]) -> bool:
        """Whether the bot starts and runs programs with these denied, and all that is required."""
        denied = _REQUIRED | syscalls.expand(entries)
        policy = replace(self.served, denied_syscalls=denied)
        return not tried("denied_syscalls", policy, [_exercise(())], probed=True).reason

    def needed_syscalls(self, entries: Iterable[str]) -> tuple[str, str]:
        """The entry of denied_syscalls, and the call in it, that the bot cannot be without.

        Both empty where denials are not to blame.
        """
        entry = self._culprit(tuple(entries))
        call = self._culprit(tuple(sorted(syscalls.expand([entry])))) if entry else ""
        return entry, call

    def _culprit(self, entries: tuple[str, ...]) -> str:
        count = _first(lambda count: not self.serves(entries[:count]), len(entries))
        return entries[count - 1] if count else ""

    def exercise(self, *, modules_too: bool = True, **changes: Any) -> str:
        """Why what any program may do fails, under the policy's rlimits and denials or others."""
        imports = self.trusted if modules_too else {}
        policy = self._anywhere(imports, **changes)
        return tried("limits", policy, [_exercise(imports)]).reason

    def _explorer(self, given: dict[str, Any]) -> bytes:
        question = {
            "given": given,
            "attrs": sorted(self.policy.dangerous_attrs),
            "names": sorted(self.policy.dangerous_names),
            "builtins": sorted(n for n in {*dir(builtins)} - HARMLESS if n[0].islower()),
            "by_text": KNOWN["by_text"],
            "outside": OUTSIDE,
        }
        return _in_guest(f"print(answer({question!r}))")


def _exercise(imports: Iterable[str]) -> bytes:
    return _in_guest(f"exercise({list(imports)!r})")


def _in_guest(call: str) -> bytes:
    return encode(f"{_OWN_NAMES}\n{_IN_GUEST.read_text('utf-8')}\n{call}", unchecked=True)


def _answer(outcome: Outcome) -> dict[str, Any]:
    if outcome.kind != "ok":
        raise SandboxUnavailable(reason(outcome))
    return dict(ast.literal_eval(outcome.output.splitlines()[-1]))


def _system_libraries() -> list[str]:
    """The folders that modules in C load their libraries from."""
    folders = (Path(name) for name in ("/lib", "/lib64", "/usr/lib", "/usr/lib64"))
    return sorted({str(folder.resolve()) for folder in folders if folder.is_dir()})


def _first(holds: Callable[[int], bool], most: int) -> int:
    """The least number up to `most` for which something holds, that then holds for all greater.

    0 where it holds for 0 already (it is not about the number), or for none.
    """
    if holds(0) or not holds(most):
        return 0
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
