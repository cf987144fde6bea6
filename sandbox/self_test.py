"""The self-test: each thing that must be impossible is tried in a real guest, past the checker.

A probe passes only on the refusal that a layer gives, not on any other failure: its calls are
such that without the sandbox they succeed, or fail for another reason, and do no harm.
"""

import os
import platform
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sandbox.fork_server.outcome import Outcome
from sandbox.kernel.layers import ESSENTIAL
from sandbox.kernel.syscalls import TABLES

# How a path that is there is kept from a guest: refused, or out of its sight.
_KEPT = "EACCES ENOENT EPERM"
# What a probe that only asks gets under a policy that denies the question too.
_UNTOLD = "PermissionError"
_KEEPERS = frozenset({"uid", "landlock", "namespaces"})
_ALWAYS = frozenset(ESSENTIAL)
_X86 = ("x86_64",)


@dataclass(frozen=True)
class Probe:
    """One thing that a program must not be able to do.

    `source` is a Python expression, whose value as text holds words of `expected` alone. `layers`
    are those that refuse it: where none of them is in force or demanded, the probe is shown but not
    required; nor is one with `denied`, an entry of denied_syscalls, where the policy lacks that.
    One that is `alone` may end its guest, and its value is then the signal's name. `machines` have
    the calls it makes.
    """

    name: str
    shows: str
    source: str
    expected: str = "EPERM"
    layers: frozenset[str] = frozenset({"seccomp"})
    alone: bool = False
    denied: str = ""
    machines: tuple[str, ...] = ("x86_64", "aarch64")


@dataclass(frozen=True)
class ProbeResult:
    """What a probe showed of what it `shows`: `detail` is the refusal, or what came instead."""

    name: str
    shows: str
    passed: bool
    detail: str
    required: bool


# _HARNESS binds what the sources use.
PROBES = (
    # First, as others open more where they can.
    Probe(
        "descriptors",
        "have descriptors but its own input and outputs",
        "each(call('fcntl', fd, 1, 0) for fd in range(4, 1024))",  # F_GETFD
        "EBADF EPERM",
        _ALWAYS,
    ),
    # network
    Probe(
        "socket",
        "open a socket of any family",
        "each(call('socket', family, kind, 0) for family in range(1, 46) for kind in (1, 2, 3))",
    ),
    Probe("socketpair", "open a socket pair", "call('socketpair', 1, 1, 0, 0)"),
    Probe("connect", "connect a socket", "call('connect', -1, 0, 0)"),
    Probe("bind", "listen on a socket", "call('bind', -1, 0, 0)"),
    Probe("send", "send on a socket", "call('sendto', -1, 0, 0, 0, 0, 0)"),
    # processes
    Probe("fork", "fork", "call('fork')", machines=_X86),
    Probe("clone", "clone a process", "call('clone', 17, 0, 0, 0, 0)"),
    Probe("clone3", "clone by the newer call", "call('clone3', 0, 0)", "ENOSYS"),
    Probe("thread", "start a thread", "thread()", "RuntimeError"),
    Probe("execve", "run a program", "call('execve', 0, 0, 0)"),
    Probe("execveat", "run a program by file", "call('execveat', -1, 0, 0, 0, 0)"),
    Probe(
        "signal",
        "signal the function, the zygote, a sibling or all",
        """each(call(*signal) for pid in (*OTHERS, -1) for signal in (
            ('kill', pid, 0), ('tkill', pid, 0), ('tgkill', pid, pid, 0),
            ('rt_sigqueueinfo', pid, 0, SIGINFO)))""",
    ),
    Probe(
        "pidfd",
        "hold another process, signal it or take its descriptors by pidfd",
        """each([*(call('pidfd_open', pid, 0) for pid in OTHERS),
            call('pidfd_send_signal', -1, 0, 0, 0), call('pidfd_getfd', -1, 0, 0)])""",
    ),
    Probe(
        "ptrace",
        "trace another process",
        "each(call('ptrace', 2, pid, 0, 0) for pid in OTHERS)",
    ),
    Probe(
        "process_vm_readv",
        "read or write another process's memory",
        """each(call(name, pid, 0, 0, 0, 0, 0) for pid in OTHERS
            for name in ('process_vm_readv', 'process_vm_writev'))""",
    ),
    Probe(
        "prlimit",
        "look at or change another process's limits",
        "each(call('prlimit64', pid, 0, 0, 0) for pid in OTHERS)",
    ),
    Probe(
        "setpriority",
        "change another process's priority",
        "each(call('setpriority', 0, pid, 0) for pid in OTHERS)",
    ),
    Probe(
        "CPU clock",
        "read another process's CPU clock, or wait for it",
        """each(call(name, ~pid << 3 | 2, *rest) for pid in (*OTHERS, PID) for name, *rest in (
            ('clock_gettime', bytes(16)), ('clock_getres', bytes(16)),
            ('clock_nanosleep', 1, bytes(16), 0)))""",
    ),
    Probe(
        "timer",
        "set a timer",
        """each((call('timer_create', 0, 0, 0), call('timerfd_create', 0, 0),
            call('setitimer', 0, 0, 0)))""",
    ),
    Probe(
        "futex",
        "wait for or wake another process",
        # FUTEX_WAKE, FUTEX_LOCK_PI private, futex_waitv
        """each((call('futex', bytes(4), 1, 1, 0, 0, 0), call('futex', bytes(4), 134, 0, 0, 0, 0),
            call('futex_waitv', 0, 0, 0, 0, 0)))""",
    ),
    # memory
    Probe(
        "shared memory",
        "map memory that its limit does not count",
        # MAP_SHARED | MAP_ANONYMOUS, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB
        "each(call('mmap', 0, 1, 0, flags, -1, 0) for flags in (0x21, 0x40022))",
    ),
    Probe(
        "scattered memory",
        "map memory at addresses of its choice",
        "each((call('mmap', 1 << 40, 1, 0, 0x22, -1, 0), call('mremap', 0, 0, 0, 3, 0)))",
        denied="mmap(address)",
    ),
    Probe("merged memory", "merge memory with others'", "call('madvise', 0, 0, 12)"),
    # files
    Probe(
        "paths",
        "look up or open any file",
        """each(call(name, -100, b'.', bytes(256), 0, bytes(256)) for name in (
            'openat', 'newfstatat', 'faccessat', 'readlinkat', 'statx', 'getxattrat'))""",
        denied="newfstatat",
    ),
    Probe(
        "page cache",
        "see what others have read",
        """each((call('preadv2', -1, 0, 0, 0, 8), call('mincore', 0, 0, 0),
            call('cachestat', -1, 0, 0, 0)))""",
    ),
    Probe(
        "openat",
        "open for writing, create or truncate a file anywhere",
        "each(call('openat', -100, path, flags, 0o600) for path in PLACES for flags in WRITING)",
    ),
    Probe(
        "open",
        "the same by the older call",
        "each(call('open', path, flags, 0o600) for path in PLACES for flags in WRITING)",
        machines=_X86,
    ),
    Probe("openat2", "the same by the newer call", "call('openat2', -1, 0, 0, 0)", "ENOSYS"),
    Probe(
        "file changes",
        "make, link, rename, delete and change files",
        """each((call('mkdirat', -100, b'/tmp', 0), call('mknodat', -100, b'/tmp', 0, 0),
            call('symlinkat', b'x', -100, b'/tmp'), call('linkat', -1, 0, -1, 0, 0),
            call('renameat2', -1, 0, -1, 0, 0), call('unlinkat', -1, 0, 0), call('truncate', 0, 0),
            call('fchmodat', -1, 0, 0), call('fchownat', -1, 0, 0, 0, 0), call('fchmod', 1, 0o600),
            call('setxattr', 0, 0, 0, 0, 0), call('utimensat', -1, 0, 0, 0)))""",
    ),
    Probe("file handle", "open by handle", "call('open_by_handle_at', -1, 0, 0)"),
    Probe(
        "function",
        "read the function's memory, environment or descriptors",
        "each(opened(f'/proc/{FUNCTION}/{name}') for name in ('mem', 'maps', 'environ', 'fd'))",
        _KEPT,
        _KEEPERS,
    ),
    Probe(
        "zygote",
        "read the zygote's memory, environment or descriptors",
        "each(opened(f'/proc/{ZYGOTE}/{name}') for name in ('mem', 'maps', 'environ', 'fd'))",
        _KEPT,
        _KEEPERS,
    ),
    Probe(
        "/proc/1/environ",
        "read the environment of process 1",
        "opened('/proc/1/environ')",
        _KEPT,
        _KEEPERS,
    ),
    Probe(
        "/etc/passwd",
        "read a file outside the policy's readable_paths",
        "opened('/etc/passwd')",
        _KEPT,
        frozenset({"landlock", "namespaces"}),
    ),
    Probe(
        "folder",
        "list a folder outside the policy's readable_paths",
        "opened('/')",  # there in every view of the files, and open to all
        _KEPT,
        frozenset({"landlock"}),
    ),
    Probe(
        "file names",
        "see whether a file is there",
        "call('newfstatat', -100, b'/etc/passwd', bytes(256), 0)",
        _KEPT,
        frozenset({"namespaces"}),
    ),
    # the kernel
    Probe(
        "io_uring",
        "use io_uring",
        "each(call(f'io_uring_{x}', -1, 0, 0, 0, 0, 0) for x in ('setup', 'enter', 'register'))",
    ),
    Probe("bpf", "load a program into the kernel", "call('bpf', -1, 0, 0)"),
    Probe("perf", "count events", "call('perf_event_open', 0, 0, 0, 0, 0)"),
    Probe("userfaultfd", "handle page faults", "call('userfaultfd', 1)"),
    Probe(
        "keyring",
        "use kernel keyrings",
        """each((call('keyctl', 0, -1, 0), call('add_key', 0, 0, 0, 0, 0),
            call('request_key', 0, 0, 0, 0)))""",
    ),
    Probe(
        "System V IPC",
        "use shared memory, semaphores and message queues",
        """each((call('shmget', 0, 0, 0), call('semget', 0, 0, 0), call('msgget', 4242, 0)))""",
    ),
    Probe("POSIX IPC", "use message queues", "call('mq_open', 0, 0, 0, 0)"),
    Probe("memfd", "make a file in memory", "call('memfd_create', 0, 0)"),
    Probe("unshare", "make a namespace", "call('unshare', 0)"),
    Probe("setns", "enter a namespace", "call('setns', -1, 0)"),
    Probe(
        "mount",
        "mount, unmount and change the root",
        """each((call('mount', 0, 0, 0, 0, 0), call('umount2', 0, 0), call('fsopen', 0, 0),
            call('open_tree', -1, 0, 0), call('move_mount', -1, 0, -1, 0, 0), call('chroot', 0),
            call('pivot_root', 0, 0)))""",
    ),
    Probe("module", "load a kernel module", "call('finit_module', -1, 0, 0)"),
    Probe("clock", "set the clock", "call('settimeofday', 0, 0)"),
    # rights
    Probe(
        "own limits",
        "change its own limits",
        "each((call('prlimit64', 0, 4, bytes(16), 0), call('setrlimit', 4, bytes(16))))",
    ),
    Probe(
        "regain ids",
        "become another user or group, gain capabilities",
        """each((call('setresuid', 0, 0, 0), call('setresgid', 0, 0, 0), call('setgroups', 0, 0),
            call('setfsuid', 0), call('capset', 0, 0)))""",
    ),
    Probe(
        "identity",
        "have the ids of another program or service",
        """(ids := {*os.getresuid(), *os.getresgid(), *os.getgroups()}) and (
            len(ids) == 1 and ids <= {*UIDS})""",
        f"True {_UNTOLD}",
        frozenset({"uid"}),
    ),
    Probe(
        "limits",
        "have other limits than the policy's",
        "sum(resource.getrlimit(which)[0] != limit for which, limit in RLIMITS)",
        f"0 {_UNTOLD}",
        frozenset({"rlimits"}),
    ),
    Probe(
        "no_new_privs",
        "gain rights by running a program",
        "told('prctl', 39, 0, 0, 0, 0)",  # PR_GET_NO_NEW_PRIVS
        f"1 {_UNTOLD}",
        frozenset({"no_new_privs"}),
    ),
    Probe(
        "outlive",
        "outlive the zygote",
        # PR_GET_PDEATHSIG
        "(told('prctl', 2, ctypes.addressof(SIGNAL), 0, 0, 0), SIGNAL.value)[1]",
        f"9 {_UNTOLD}",
        _ALWAYS,
    ),
    Probe(
        "attributes",
        "change what the process and its descriptors are",
        # PR_SET_CHILD_SUBREAPER, F_SETOWN, FIONBIO
        """each((call('prctl', 36, 0, 0, 0, 0), call('fcntl', 1, 8, 0),
            call('ioctl', 1, 0x5421, 0)))""",
    ),
    Probe(
        "core dump",
        "have the machine write a core dump, or be traced by an equal",
        # PR_GET_DUMPABLE: RLIMIT_CORE stops no piped dump, core(5)
        "told('prctl', 3, 0, 0, 0, 0)",
        f"0 {_UNTOLD}",
        _ALWAYS,
    ),
    Probe("seccomp", "install another filter", "call('seccomp', 1, 0, 0)"),
    # Last in its guest: where it is possible, it disturbs the rest.
    Probe("vfork", "fork by the older call", "call('vfork')", machines=_X86),
    # other instruction sets
    Probe(
        "x32 call",
        "make a system call by its x32 number",
        "call(0x40000000 | NUMBERS['getpid'])",
        "SIGSYS",
        alone=True,
        machines=_X86,
    ),
    Probe(
        "32-bit call",
        "make a 32-bit system call",
        # mov eax, 7; ret shows that such code runs. mov eax, 20; int 0x80; ret is getpid.
        """machine_code('b8 07 00 00 00 c3') == 7
            and machine_code('b8 14 00 00 00 cd 80 c3') and 'allowed'""",
        "SIGSYS SIGSEGV",  # the second: this kernel has no 32-bit calls
        alone=True,
        machines=_X86,
    ),
)

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

def thread():
    _thread.start_new_thread(int, ())
    return "allowed"

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
    run: Callable[[str], Outcome],
    *,
    layers: Collection[str],
    denied: Collection[str],
    zygote: int,
    uids: range,
    rlimits: Sequence[tuple[int, int]],
    secrets: Sequence[str] = (),
) -> tuple[ProbeResult, ...]:
    """Run every probe that this machine has, in three guests at once.

    `run` runs a source unchecked in a guest, from any thread. `layers` are those in force or
    demanded, `denied` the policy's denied_syscalls; `zygote` is its process id; `uids` and
    `rlimits` are what guests are given; `secrets` are files that no guest may read, of which those
    that exist are tried.
    """
    probes = [
        Probe(path, "read a secret", f"opened({path!r})", _KEPT, _KEEPERS)
        for path in secrets
        if os.path.exists(path)
    ]
    probes += [probe for probe in PROBES if platform.machine() in probe.machines]
    # As text, which a guest has parsed in a quarter of the time of a dictionary.
    calls = " ".join(f"{name}={number}" for name, number in TABLES[platform.machine()].items())
    facts = (calls, os.getpid(), zygote, uids, list(rlimits))
    groups = [[probe] for probe in probes if probe.alone]
    groups.append([probe for probe in probes if not probe.alone])
    with ThreadPoolExecutor(len(groups)) as pool:
        found = {}
        for results in pool.map(lambda group: _results(run, group, facts), groups):
            found.update(results)
    return tuple(
        _judge(
            probe,
            found[probe.name],
            not probe.layers.isdisjoint(layers) and probe.denied in {"", *denied},
        )
        for probe in probes
    )


def _results(
    run: Callable[[str], Outcome], probes: list[Probe], facts: tuple[object, ...]
) -> dict[str, str]:
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


def _judge(probe: Probe, result: str, is_required: bool) -> ProbeResult:
    words = set(result.split())
    passed = bool(words) and words <= set(probe.expected.split())
    detail = result if passed else f"{result}, not {probe.expected.replace(' ', ' or ')}"
    return ProbeResult(probe.name, probe.shows, passed, detail, is_required)
