"""The self-test: each thing that must be impossible is tried in a real guest, past the checker.

A probe passes only on the refusal that a layer gives, not on any other failure: its calls are
such that without the sandbox they succeed, or fail for another reason, and do no harm.
"""

import os
import platform
import tomllib
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sandbox.fork_server.outcome import Outcome
from sandbox.fork_server.zygote_process import rlimits
from sandbox.kernel.syscalls import TABLES
from sandbox.policy.loader import Policy


@dataclass(frozen=True)
class Probe:
    """One thing that a program must not be able to do; self_test.toml says what the fields mean."""

    name: str
    shows: str
    source: str
    expected: str = "EPERM"
    layers: Collection[str] = ("seccomp",)
    denied: str = ""
    alone: bool = False
    machines: Collection[str] = ("x86_64", "aarch64")


@dataclass(frozen=True)
class ProbeResult:
    """What a probe showed of what it `shows`: `detail` is the refusal, or what came instead."""

    name: str
    shows: str
    passed: bool
    detail: str
    required: bool


Results = tuple[ProbeResult, ...]
Run = Callable[[str], Outcome]

with open(Path(__file__).with_suffix(".toml"), "rb") as _file:
    PROBES = [Probe(name, **fields) for name, fields in tomllib.load(_file).items()]

_OF_SECRETS = "EACCES ENOENT EPERM", ("landlock", "namespaces", "uid")  # expected, layers
# A preloaded name may hide a builtin.
_OWN_NAMES = "__builtins__.globals().update(__builtins__.vars(__builtins__))"
_HARNESS = """
# All of these are loaded before a guest is confined.
import ctypes, errno, os, resource, _thread
libc = ctypes.CDLL(None, use_errno=True)
PID = os.getpid()
OTHERS = (FUNCTION, ZYGOTE, PID - 1, PID + 1)
SIGNAL = ctypes.c_int()
SIGINFO = bytes(8) + b"\\xff" * 4 + bytes(116)  # si_code SI_QUEUE, as sigqueue(3) has it
PLACES = (b"/tmp", b"/dev/shm", b".", b"/dev/null")
WRITING = (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT | os.O_EXCL, os.O_TMPFILE | os.O_RDWR)

NUMBERS = {name: int(number) for name, number in (each.split("=") for each in CALLS.split())}

def told(name, *arguments):
    number = name if isinstance(name, int) else NUMBERS[name]
    words = (a if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments)
    result = libc.syscall(ctypes.c_long(number), *words)
    if os.getpid() != PID:
        os._exit(0)  # a child that should not be
    if result == -1:
        raise OSError(ctypes.get_errno(), name)
    return result

def call(name, *arguments):
    try:
        told(name, *arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "allowed"

def each(results):
    return " ".join(sorted(set(results)))

def opened(path):
    return call("openat", -100, os.fsencode(path), os.O_RDONLY, 0)

def machine_code(code):
    libc.mmap.restype = ctypes.c_void_p
    page = libc.mmap(None, ctypes.c_size_t(4096), 7, 0x22, -1, ctypes.c_long(0))
    code = bytes.fromhex(code)
    ctypes.memmove(page, code, len(code))
    return ctypes.CFUNCTYPE(ctypes.c_int)(page)()

for name, source in PROBES:
    try:
        result = eval(f"({source})")
    except Exception as error:
        result = type(error).__name__
    print(name, result, sep="\\t")
"""


def run_probes(
    run: Run, policy: Policy, layers: Collection[str], zygote: int, secrets: Sequence[str] = ()
) -> Results:
    """Run every probe that this machine has, in three guests at once.

    `run` runs a source unchecked in a guest, from any thread. `layers` are those in force or
    demanded; `zygote` is its process id; `secrets` are files that no guest may read, of which those
    that exist are tried.
    """
    there = filter(os.path.exists, secrets)
    probes = [Probe(path, "read a secret", f"opened({path!r})", *_OF_SECRETS) for path in there]
    probes += [probe for probe in PROBES if platform.machine() in probe.machines]
    # As text, which a guest has parsed in a quarter of the time of a dictionary.
    calls = " ".join(f"{name}={number}" for name, number in TABLES[platform.machine()].items())
    first, count = policy.identity.first_uid, policy.identity.uid_count
    facts = (calls, os.getpid(), zygote, range(first, first + count), rlimits(policy))
    groups = [[probe] for probe in probes if probe.alone]
    groups.append([probe for probe in probes if not probe.alone])
    with ThreadPoolExecutor(len(groups)) as pool:
        found = {}
        for results in pool.map(lambda group: _results(run, group, facts), groups):
            found.update(results)
    return tuple(_judge(probe, found[probe.name], layers, policy) for probe in probes)


def _results(run: Run, probes: list[Probe], facts: tuple[object, ...]) -> dict[str, str]:
    """Run probes in one guest; what it did not answer has the guest's end as its result."""
    table = [(probe.name, probe.source) for probe in probes]
    names = f"CALLS, FUNCTION, ZYGOTE, UIDS, RLIMITS = {facts!r}\nPROBES = {table!r}"
    source = f"{_OWN_NAMES}\n{names}\n{_HARNESS}"
    outcome = run(source)
    lines = (line.partition("\t") for line in outcome.output.splitlines())
    answers = {name: result for name, _, result in lines}
    ending = outcome.error.rpartition(" ")[2] if outcome.kind == "crashed" else ""
    silent = ending or f"no answer ({outcome.kind}: {outcome.error})"
    return {probe.name: answers.get(probe.name, silent) for probe in probes}


def _judge(probe: Probe, result: str, layers: Collection[str], policy: Policy) -> ProbeResult:
    words = set(result.split())
    passed = bool(words) and words <= set(probe.expected.split())
    detail = result if passed else f"{result}, not {probe.expected.replace(' ', ' or ')}"
    is_denied = probe.denied in {"", *policy.denied_syscalls}
    required = is_denied and any(layer in layers for layer in probe.layers)
    return ProbeResult(probe.name, probe.shows, passed, detail, required)
