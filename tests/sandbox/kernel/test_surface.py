"""The calls that remain under the default policy: why each does, and that none reaches another.

SECURITY.md has the table that `surface` makes. A call that is newly allowed has no row here, and
fails.
"""

import os
import platform
import threading

import pytest

from sandbox.kernel.syscalls import TABLES
from tests.conftest import ROOT
from tests.sandbox.guests import WITHOUT, guests

# Why programs need them; what none of their arguments can name, or `TRIES` shows out of reach.
REMAINING = {
    "memory": (
        "brk madvise mmap mprotect mremap munmap",
        "allocators of Python and of C libraries; addresses are the caller's own",
    ),
    "descriptors": (
        "close fcntl ioctl read write writev",
        "the program is read from a pipe, output and report are written to pipes; C libraries ask "
        "what a descriptor is; there are four",
    ),
    "time": (
        "clock_getres clock_gettime clock_nanosleep gettimeofday nanosleep time",
        "dates, measuring, sleeping; clocks of the machine and of the caller",
    ),
    "locks": ("futex sched_yield", "locks of the interpreter and of C libraries, in own memory"),
    "random numbers": ("getrandom", "seeds"),
    "signals to oneself": (
        "restart_syscall rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack",
        "handlers of C libraries; calls that a signal interrupted",
    ),
    "who the caller is": (
        "getegid geteuid getgid getgroups getpid getresgid getresuid getrlimit getrusage gettid "
        "getuid prctl prlimit64 sched_getaffinity",
        "usage for the report, limits and ids for the self-test and for C libraries; no other "
        "process can be named",
    ),
    "the end": ("exit exit_group", "a process ends with them"),
}

# Each call that takes a process, thread, user, clock or address, with one of another's: the call
# must answer the same whatever is there.
TRIES = """
for pid in PIDS:
    attempt('clock_getres', ~pid << 3 | 2, ROOM)
    attempt('clock_gettime', ~pid << 3 | 2, ROOM)
    attempt('clock_gettime', ~pid << 3 | 6, ROOM)  # of a thread
    attempt('clock_nanosleep', ~pid << 3 | 2, 1, ROOM, 0)
    attempt('fcntl', 1, 8, pid)  # F_SETOWN
    attempt('fcntl', 1, 15, ROOM)  # F_SETOWN_EX
    attempt('ioctl', 1, 0x8901, WORD)  # FIOSETOWN
    attempt('futex', owned(pid), 6, 0, soon(), 0, 0)  # FUTEX_LOCK_PI
    attempt('futex', owned(pid), 134, 0, soon(), 0, 0)  # the same, private
    attempt('futex', owned(pid), 136, 0, 0, 0, 0)  # FUTEX_TRYLOCK_PI, private
    attempt('futex', owned(pid), 1, 1, 0, 0, 0)  # FUTEX_WAKE, shared
    attempt('getrusage', pid + 1, ROOM)
    attempt('prctl', 62, 0, pid, 0, ROOM)  # PR_SCHED_CORE
    attempt('prctl', 0x59616d61, pid, 0, 0, 0)  # PR_SET_PTRACER
    attempt('prlimit64', pid, 7, 0, ROOM)
    attempt('sched_getaffinity', pid, 64, ROOM)
    attempt('mmap', 0, 4096, 3, 0x21, -1, 0)  # where another could map it too
    attempt('madvise', PAGE, 4096, 12)  # MADV_MERGEABLE
"""
HARNESS = (
    f"N = {TABLES[platform.machine()]!r}"
    """
import ctypes, errno, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.syscall.restype = ctypes.c_long
ROOM = ctypes.addressof(room := ctypes.create_string_buffer(256))
WORD = ctypes.addressof(word := ctypes.c_uint32())
PAGE = libc.mmap(None, ctypes.c_size_t(4096), 3, 0x22, -1, ctypes.c_long(0))
answers = {}
def owned(pid):
    word.value = pid
    return WORD
def soon():
    until = time.time_ns() + 10**6
    room[:16] = b"".join(part.to_bytes(8, "little") for part in divmod(until, 10**9))
    return ROOM
def attempt(name, *arguments):
    result = libc.syscall(ctypes.c_long(N[name]), *map(ctypes.c_long, arguments))
    answer = errno.errorcode[ctypes.get_errno()] if result == -1 else 'allowed'
    answers.setdefault(name, set()).add(answer)
"""
)


def allowed(policy, arch):
    return {name for name in TABLES[arch] if name not in policy.denied_syscalls}


def reasons():
    return {name: why for names, why in REMAINING.values() for name in names.split()}


def surface(policy):
    """Return the table of SECURITY.md; a star marks calls that are refused by argument."""
    in_part = {entry.partition("(")[0] for entry in policy.denied_syscalls if "(" in entry}
    rows = ["| | system calls | why |", "|---|---|---|"]
    for subject, (names, why) in REMAINING.items():
        marked = " ".join(f"{name}{'*' * (name in in_part)}" for name in names.split())
        rows.append(f"| {subject} | {marked} | {why} |")
    return "\n".join(rows)


@pytest.mark.parametrize("arch", TABLES)
def test_every_call_that_remains_has_its_reason(policy, arch):
    assert allowed(policy, arch) == reasons().keys() & TABLES[arch].keys()


def test_the_document_lists_the_calls_that_remain(policy):
    assert surface(policy) in (ROOT / "SECURITY.md").read_text()


# These name nothing but the caller's own memory, descriptors, signals and time.
OF_ITS_OWN = """
    brk close exit exit_group getegid geteuid getgid getgroups getpid getrandom getresgid getresuid
    getrlimit gettid gettimeofday getuid mprotect mremap munmap nanosleep read restart_syscall
    rt_sigaction rt_sigprocmask rt_sigreturn sched_yield sigaltstack time write writev
"""


def test_every_call_that_remains_has_a_verdict(policy):
    tried = {line.split("'")[1] for line in TRIES.splitlines() if "attempt(" in line}
    own = set(OF_ITS_OWN.split())
    assert tried.isdisjoint(own)
    assert allowed(policy, platform.machine()) - own == tried


def answered(started):
    """Try all of it beside a running guest; return the answers by call."""
    sibling = threading.Thread(target=started.run_source, args=["import time\ntime.sleep(0.5)"])
    sibling.start()
    known = {started.pid, os.getpid()}
    near = "range(max(2, os.getpid() - 99), os.getpid() + 16)"
    pids = f"PIDS = {{*{near}, *{known}}} - {{os.getpid()}}"
    outcome = started.run_source(f"{HARNESS}\n{pids}\n{TRIES}\nanswers")
    sibling.join()
    assert outcome.kind == "ok", outcome
    return eval(outcome.output)  # of this test's own program


@pytest.mark.parametrize("without", [[], ["namespaces"]])
def test_no_call_that_remains_reaches_another_process(policy, without):
    with guests(policy, *without) as started:
        found = answered(started)
    assert found.pop("getrusage") == {"EINVAL"}  # whatever the number
    assert {name: seen for name, seen in found.items() if seen != {"EPERM"}} == {}


def test_without_the_filter_they_would(policy):
    with guests(policy, *WITHOUT.keys() - {"namespaces"}) as started:
        if "namespaces" not in started.layers:
            pytest.skip("the attempts would reach the machine's own processes")
        found = answered(started)
    assert {name for name, seen in found.items() if seen == {"EPERM"}} == set()
    tell = {name for name, seen in found.items() if len(seen) > 1}
    assert {"clock_getres", "clock_gettime", "clock_nanosleep", "futex", "prlimit64"} <= tell
