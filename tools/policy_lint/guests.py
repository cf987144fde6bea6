"""What guests of the real sandbox say of a policy; nothing of a policy runs anywhere else.

The zygote here imports none but modules that are known to do nothing but compute. Others, and the
programs of prelude and warm_up, run in guests whose layers do not depend on what the file says.
"""

import ast
import re
from collections.abc import Callable, Iterable
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
from sandbox.sandbox import Sandbox
from tools.policy_lint.modules import BY_TEXT, HARMLESS, OUTSIDE, exists, gives_beyond, is_trusted

_EXPLORER = Path(__file__).with_name("in_guest.py")
_IMPORT_SECONDS = 10  # that a guest may take more, where it imports what the zygote does not

# Bounds under which any question has room.
_ROOMY = {"wall_seconds": 30, "source_bytes": 1 << 20, "output_bytes": 4 << 17}
_ROOMY |= {"concurrent_guests": 1, "prepared_guests": 1, "queue_seconds": 30}
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
# What any program may do.
_EXERCISE = r"""
def deep(value):
    for _ in range(20000):
        value = [value]
    return value
try:
    repr(deep(0))
except RecursionError:
    pass
def down(n):
    return n and 1 + down(n - 1)
assert down(500) == 500
assert sorted(range(1000), key=lambda n: -n)[0] == 999
assert len(str(7 ** 20000)) == 16902
assert len(list(range(1000000))) == 1000000
assert f"{3.14159:.2f} {'x':>5}" == "3.14     x"
print("é" * 100)
for name in MODULES:
    __import__(name)
if "datetime" in MODULES:
    import datetime
    assert datetime.datetime.strptime("2024-02-29", "%Y-%m-%d").year == 2024
    datetime.datetime.now().astimezone()
if "decimal" in MODULES:
    import decimal
    assert str(decimal.Decimal(2).sqrt())[:4] == "1.41"
if "random" in MODULES:
    import random
    assert 0 <= random.random() < 1
if "json" in MODULES:
    import json
    assert json.loads(json.dumps({"a": [1, 2.5, None]}))["a"][1] == 2.5
if "re" in MODULES:
    import re
    assert re.findall(r"\d+", "1 a 22") == ["1", "22"]
if "statistics" in MODULES:
    import statistics
    assert statistics.median([1, 2, 9]) == 2
"""


@dataclass(frozen=True)
class Trial:
    """How a program went: the last line that it printed, or the reason why it failed."""

    reason: str
    last_line: str = ""


class Guests:
    """Answers about one policy on this interpreter; each is found at most once."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._confining: dict[int, ZygoteProcess] = {}  # by processor seconds
        given = {name: names for name, names in policy.allowed_imports.items() if exists(name)}
        self.trusted = {name: names for name, names in given.items() if is_trusted(name, names)}
        # As the bot serves it, but for programs and modules that anybody may have written.
        self.served = replace(
            policy,
            prelude=(),
            warm_up=(),
            allowed_imports=self.trusted,
            preloaded={n: m for n, m in policy.preloaded.items() if m in self.trusted},
        )

    @cached_property
    def sandbox(self) -> Sandbox | SandboxUnavailable:
        """The sandbox, started as the bot starts it, its self-test included; or why it is not."""
        sandbox = Sandbox(self.served)
        try:
            sandbox.start()
        except SandboxUnavailable as error:
            return error
        return sandbox

    def close(self) -> None:
        """End what was started."""
        if isinstance(sandbox := self.__dict__.get("sandbox"), Sandbox):
            sandbox.close()
        for process in self._confining.values():
            process.close()

    @cached_property
    def trial(self) -> Trial:
        """The exercise and then the explorer, in a guest as programs get it."""
        if isinstance(self.sandbox, SandboxUnavailable):
            return Trial(str(self.sandbox))
        return _trial(
            self.sandbox.run(self._exercise(self.trusted, self._explorer), unchecked=True)
        )

    @cached_property
    def explored(self) -> dict[str, Any]:
        """What programs can reach in the trusted modules; in_guest.py says what is in it.

        Raises SandboxUnavailable where no guest can be had.
        """
        trial = self.trial
        if trial.reason:
            known = self.policy.denied_syscalls & syscalls.expand(syscalls.GROUPS)
            trial = self._try(self._explorer, rlimits=ROOMY_RLIMITS, denied_syscalls=known)
        if trial.reason:
            raise SandboxUnavailable(trial.reason)
        return dict(ast.literal_eval(trial.last_line))

    @cached_property
    def explored_elsewhere(self) -> dict[str, Any]:
        """The same of all other modules, which a guest imports. Raises SandboxUnavailable."""
        given = self.policy.allowed_imports
        others = {  # what others give is known, and told
            name: given[name]
            for name in given.keys() - self.trusted
            if exists(name) and gives_beyond(name, given[name]) is None
        }
        if not others:
            return {"open": [], "refused": {}, "missing": {}, "seen": [], "near": []}
        program = encode(self._explore(others), unchecked=True)
        trial = _trial(self.confined(program, ROOMY_RLIMITS.cpu_seconds))
        if trial.reason:
            raise SandboxUnavailable(trial.reason)
        return dict(ast.literal_eval(trial.last_line))

    def rehearse(self, program: str) -> Outcome:
        """Run a program of prelude or, after all of these, of warm_up.

        It has the policy's limits and every layer.
        """
        if program not in self.policy.prelude:
            program = "\n".join((*self.policy.prelude, program))
        others = self.policy.allowed_imports.keys() - self.trusted
        names = {n: m for n, m in self.policy.preloaded.items() if m in others}
        words = set(re.findall(r"\w+", program))
        seconds = self.policy.rlimits.cpu_seconds
        if words.isdisjoint({*names, *(name.partition(".")[0] for name in others)}):
            return self.confined(encode(program, parse(program)), seconds)
        imports = "".join(f"import {module} as {name}\n" for name, module in names.items())
        encoded = encode(imports + program, unchecked=True)
        return self.confined(encoded, seconds + _IMPORT_SECONDS)

    def confined(self, program: bytes, cpu_seconds: int) -> Outcome:
        """Run an encoded program under all that there is to deny, whatever the policy says.

        It reads files, as imports do, beneath the interpreter's own folders.
        """
        process = self._confining.get(cpu_seconds)
        if process is None:
            limits = replace(
                self.policy.rlimits, cpu_seconds=cpu_seconds, open_files=64, file_size_bytes=0
            )
            process = self._confining[cpu_seconds] = self._start(
                rlimits=limits,
                denied_syscalls=warm_up_denials(self.policy),
                readable_paths=("@python", *_system_libraries()),
                wall=cpu_seconds + 1,
            )
        return _run(process, program)

    def serves(self, entries: Iterable[str]) -> bool:
        """Whether the bot starts and runs programs with these denied, and all that is required."""
        denied = _REQUIRED | syscalls.expand(entries)
        sandbox = Sandbox(replace(self.served, denied_syscalls=denied))
        try:
            sandbox.start()
            return not _trial(sandbox.run(self._exercise({}, "'done'"), unchecked=True)).reason
        except SandboxUnavailable:
            return False
        finally:
            sandbox.close()

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

    def exercise(self, *, modules_too: bool = True, **changes: Any) -> Trial:
        """Run what any program may do under the policy's rlimits and denials, or others."""
        modules = self.trusted if modules_too else {}
        return self._try(self._exercise(modules, "'done'"), modules_too=modules_too, **changes)

    @staticmethod
    def _exercise(modules: Iterable[str], then: str) -> str:
        return f"{_OWN_NAMES}\nMODULES = {list(modules)!r}\n{_EXERCISE}\n{then}"

    @property
    def _explorer(self) -> str:
        return self._explore(self.trusted)

    def _explore(self, given: dict[str, Any]) -> str:
        question = {
            "given": given,
            "attrs": sorted(self.policy.dangerous_attrs),
            "names": sorted(self.policy.dangerous_names),
            "harmless": sorted(HARMLESS),
            "by_text": {module: names.split() for module, names in BY_TEXT.items()},
            "outside": OUTSIDE,
        }
        explorer = _EXPLORER.read_text("utf-8")
        return f"{_OWN_NAMES}\n{explorer}\nanswer({question!r})"

    def _try(self, program: str, *, modules_too: bool = True, **changes: Any) -> Trial:
        try:
            process = self._start(modules_too=modules_too, **changes)
        except SandboxUnavailable as error:
            return Trial(str(error))
        try:
            return _trial(_run(process, encode(program, unchecked=True)))
        except SandboxUnavailable as error:
            return Trial(str(error))
        finally:
            process.close()

    def _start(self, *, modules_too: bool = True, wall: int = 30, **changes: Any) -> ZygoteProcess:
        """Start a zygote under the policy as any machine can try it. Raises SandboxUnavailable."""
        policy = replace(
            self.served if modules_too else replace(self.served, allowed_imports={}, preloaded={}),
            required_layers=frozenset(layers.ESSENTIAL),
            limits=replace(self.policy.limits, **_ROOMY | {"wall_seconds": wall}),
            identity=replace(self.policy.identity, uid_count=2),
            **changes,
        )
        return ZygoteProcess(policy)


def _run(process: ZygoteProcess, program: bytes) -> Outcome:
    """Run an encoded program in a guest, under a policy that need not pass the self-test."""
    try:
        return process.run(program, _ROOMY["queue_seconds"])
    except (ZygoteGone, KilledFromOutside, OSError) as error:
        raise SandboxUnavailable(str(error)) from error


def _system_libraries() -> list[str]:
    """The folders that modules in C load their libraries from."""
    folders = (Path(name) for name in ("/lib", "/lib64", "/usr/lib", "/usr/lib64"))
    return sorted({str(folder.resolve()) for folder in folders if folder.is_dir()})


def _trial(outcome: Outcome) -> Trial:
    if outcome.kind != "ok":
        return Trial(f"{outcome.kind.replace('_', ' ')}: {outcome.error}".rstrip(": "))
    lines = outcome.output.splitlines()
    return Trial("", lines[-1]) if lines else Trial("it printed nothing")


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
