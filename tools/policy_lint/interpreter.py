"""What this interpreter says of a policy, found by running guests of the real sandbox."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sandbox.fork_server.outcome import Outcome
from sandbox.fork_server.program import encode
from sandbox.fork_server.zygote_process import (
    KilledFromOutside,
    SandboxUnavailable,
    ZygoteGone,
    ZygoteProcess,
)
from sandbox.kernel import layers, syscalls
from sandbox.policy.loader import Identity, Limits, Policy, Rlimits
from tools.policy_lint.modules import OUTSIDE, gives_beyond

_EXPLORER = Path(__file__).with_name("in_guest.py")

# Bounds under which any question has room.
_ROOMY = Limits(
    wall_seconds=30,
    source_bytes=1 << 20,
    output_bytes=4 << 20,
    concurrent_guests=1,
    prepared_guests=1,
    queue_seconds=30,
    sender_concurrent=1,
    sender_per_minute=1,
    zygote_guests=10,
    zygote_minutes=10,
)
ROOMY_RLIMITS = Rlimits(
    cpu_seconds=20,
    address_space_mib=2048,
    stack_mib=8,
    file_size_bytes=0,
    core_bytes=0,
    open_files=64,
    processes=0,
)

# What any program may do.
_EXERCISE = r"""
import sys
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

    @property
    def passed(self) -> bool:
        """Whether it came to its end."""
        return not self.reason


class Interpreter:
    """Answers about one policy on this interpreter; each is found at most once."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Allowed modules that are not installed."""
        return tuple(name for name in self.policy.allowed_imports if not _exists(name))

    @cached_property
    def trial(self) -> Trial:
        """The exercise and then the explorer, under the policy's own rlimits and denials."""
        return self._try(f"{_EXERCISE}\n{self._explorer}")

    @property
    def exposed(self) -> dict[str, Any]:
        """What programs can reach; `in_guest.py` says what is in it.

        Raises SandboxUnavailable where no guest can be had.
        """
        trial = self.trial
        if not trial.passed:
            known = self.policy.denied_syscalls & syscalls.expand(syscalls.GROUPS)
            trial = self._try(self._explorer, rlimits=ROOMY_RLIMITS, denied_syscalls=known)
        if not trial.passed:
            raise SandboxUnavailable(trial.reason)
        answer: dict[str, Any] = json.loads(trial.last_line)
        return answer

    def exercise(self, *, modules_too: bool = True, **changes: Any) -> Trial:
        """Run what any program may do under the policy's rlimits and denials, or others."""
        return self._try(f"{_EXERCISE}\n'done'", modules_too=modules_too, **changes)

    def _try(self, program: str, *, modules_too: bool = True, **changes: Any) -> Trial:
        modules = self._modules if modules_too else []
        try:
            variant = replace(self._variant(modules), **changes)
            outcome = _run(variant, f"MODULES = {modules!r}\n{program}")
        except SandboxUnavailable as error:
            return Trial(str(error))
        if outcome.kind != "ok":
            return Trial(f"{outcome.kind.replace('_', ' ')}: {outcome.error}".rstrip(": "))
        lines = outcome.output.splitlines()
        return Trial("", lines[-1]) if lines else Trial("it printed nothing")

    @property
    def _explorer(self) -> str:
        policy = self.policy
        question = {
            "modules": {name: policy.allowed_imports[name] for name in self._modules},
            "closed": sorted(policy.dangerous_attrs),
            "names": sorted(policy.dangerous_names),
            "outside": OUTSIDE,
        }
        return f"{_EXPLORER.read_text('utf-8')}\nimport json\njson.dumps(answer({question!r}))"

    @cached_property
    def limits_are_to_blame(self) -> bool:
        """Whether the exercise fails, and only for the policy's rlimits."""
        return not self.trial.passed and self.exercise(rlimits=ROOMY_RLIMITS).passed

    @cached_property
    def modules_are_to_blame(self) -> bool:
        """Whether the exercise fails, and only for the allowed modules."""
        free: dict[str, Any] = {"rlimits": ROOMY_RLIMITS, "denied_syscalls": frozenset[str]()}
        return not self.exercise(**free).passed and self.exercise(modules_too=False, **free).passed

    def needed_syscalls(self, entries: Iterable[str]) -> tuple[str, str]:
        """The entry of denied_syscalls, and the call in it, that the interpreter cannot be without.

        Both empty where denials are not to blame.
        """
        entry = self._culprit(tuple(entries))
        call = self._culprit(tuple(sorted(syscalls.expand([entry])))) if entry else ""
        return entry, call

    def _culprit(self, entries: tuple[str, ...]) -> str:
        def fails(count: int) -> bool:
            denied = syscalls.expand(entries[:count])
            return not self.exercise(rlimits=ROOMY_RLIMITS, denied_syscalls=denied).passed

        count = _first(fails, len(entries))
        return entries[count - 1] if count else ""

    @cached_property
    def _modules(self) -> list[str]:
        """Allowed modules that are there; impure ones need no exploring."""
        return [
            name
            for name, names in self.policy.allowed_imports.items()
            if name not in self.missing and gives_beyond(name, names) is None
        ]

    def _variant(self, modules: list[str]) -> Policy:
        """The policy as any machine can try it, with the bounds of _ROOMY."""
        return replace(
            self.policy,
            allowed_imports={name: self.policy.allowed_imports[name] for name in modules},
            preloaded={n: m for n, m in self.policy.preloaded.items() if m in modules},
            required_layers=frozenset(layers.ESSENTIAL),
            limits=_ROOMY,
            identity=Identity(self.policy.identity.first_uid, 2),
        )


def _run(policy: Policy, program: str) -> Outcome:
    """Run a program unchecked in a guest, under a policy that need not pass the self-test."""
    process = ZygoteProcess(policy)
    try:
        return process.run(encode(program, unchecked=True), policy.limits.queue_seconds)
    except (ZygoteGone, KilledFromOutside) as error:
        raise SandboxUnavailable(str(error)) from error
    finally:
        process.close()


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


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, AttributeError, ValueError):
        return False
