"""System calls made by every road there is, with the checker off: none gets past the filter."""

import platform

import pytest

from sandbox.kernel.syscalls import TABLES
from tests.sandbox.guests import guests, has_filter_of_an_engine

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the machine code here is x86_64's"
)

HARNESS = (
    f"""
N = {TABLES["x86_64"]!r}
"""
    """
import ctypes, errno, os, signal, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
PID = os.getpid()

def machine_code(code, flags=0x22):  # MAP_PRIVATE | MAP_ANONYMOUS
    page = libc.mmap(None, ctypes.c_size_t(4096), 7, flags, -1, ctypes.c_long(0))
    ctypes.memmove(page, code, len(code))
    return page

def word(value):
    return struct.pack('<Q', value % 2**64)

def raw(number, *arguments):
    # mov rdi, rsi, rdx, r10, r8, r9 and rax; syscall; ret
    moves = ('48bf', '48be', '48ba', '49ba', '49b8', '49b9')
    code = b''.join(bytes.fromhex(move) + word(value) for move, value in zip(moves, arguments))
    code += b'\\x48\\xb8' + word(number) + b'\\x0f\\x05\\xc3'
    result = ctypes.CFUNCTYPE(ctypes.c_long)(machine_code(code))()
    if os.getpid() != PID:
        os._exit(0)
    return errno.errorcode[-result] if -4096 < result < 0 else 'allowed'

def libcs(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    if os.getpid() != PID:
        os._exit(0)
    return errno.errorcode[ctypes.get_errno()] if result == -1 else 'allowed'

buffer = ctypes.create_string_buffer(b'/dev/null', 64)
P = ctypes.addressof(buffer)
ZEROS = ctypes.addressof(zeros := ctypes.create_string_buffer(64))
"""
)

# Each act succeeds without the filter, or fails for another reason than EPERM; which of its
# arguments are 32-bit integers, whose upper halves the kernel drops.
ACTS = """
ACTS = {
    'socket': ((2, 1, 0), (0, 1, 2)),
    'open': ((P, 1, 0), (1,)),
    'openat': ((-100, P, 2, 0), (2,)),
    'fork': ((), ()),
    'clone': ((17, 0, 0, 0, 0), ()),
    'execve': ((0, 0, 0), ()),
    'kill': ((PID, 0), (0, 1)),
    'tgkill': ((PID, PID, 0), (0, 1, 2)),
    'memfd_create': ((P, 0), (1,)),
    'unshare': ((0,), ()),
    'prlimit64': ((0, 4, ZEROS, 0), (0, 1)),
    'setresuid': ((-1, -1, -1), ()),
    'io_uring_setup': ((1, 0), (0,)),
    'mkdirat': ((-100, P, 0), (0,)),
    'pidfd_open': ((PID, 0), (0, 1)),
    'prctl': ((15, P, 0, 0, 0), (0,)),
    'fcntl': ((1, 4, 0), (0, 1)),
    'ioctl': ((1, 0x5421, ZEROS), (0, 1)),
    'shmget': ((0, 4096, 0), (0, 2)),
    'process_vm_readv': ((PID, 0, 0, 0, 0, 0), (0,)),
    'sched_getaffinity': ((1, 64, ZEROS), (0,)),
    'clock_gettime': ((~PID << 3 | 2, ZEROS), (0,)),
    'futex': ((ZEROS, 1, 1, 0, 0, 0), (1,)),
    'mmap': ((0, 4096, 3, 0x21, -1, 0), ()),
    'preadv2': ((-1, ZEROS, 0, 0, 0, 8), (0,)),
    'stat': ((P, ZEROS), ()),
    'timer_create': ((0, 0, ZEROS), (0,)),
}
"""

WAYS = """
def dirty(number, arguments, integers, high):
    return [a % 2**32 | high << 32 if i in integers else a for i, a in enumerate(arguments)]

def in_a_handler(number, arguments):
    seen = []
    signal.signal(signal.SIGTRAP, lambda *_: seen.append(raw(number, *arguments)))
    ctypes.CFUNCTYPE(None)(machine_code(b'\\xcc\\xc3'))()  # int3; ret
    while not seen:
        pass
    return seen[0]

def in_a_callback(number, arguments):
    seen = []
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    libc.qsort(zeros, ctypes.c_size_t(2), ctypes.c_size_t(8),
        kind(lambda a, b: seen.append(raw(number, *arguments)) or 0))
    return seen[0]

def in_a_finalizer(number, arguments):
    seen = []
    class Last:
        def __del__(self):
            seen.append(raw(number, *arguments))
    Last()
    return seen[0]

for name, (arguments, integers) in ACTS.items():
    number = N[name]
    print(name, 'libc', libcs(number, *arguments))
    print(name, 'code', raw(number, *arguments))
    print(name, 'number', raw(number | 0xdeadbeef << 32, *arguments))
    for high in (1, 0x80000000, 0xffffffff):
        print(name, 'upper', raw(number, *dirty(number, arguments, integers, high)))
    print(name, 'handler', in_a_handler(number, arguments))
    print(name, 'callback', in_a_callback(number, arguments))
    print(name, 'finalizer', in_a_finalizer(number, arguments))
"""


def answers(started):
    outcome = started.run_source(HARNESS + ACTS + WAYS)
    assert outcome.kind == "ok", outcome.error
    return [line.split() for line in outcome.output.splitlines()]


def test_a_denied_call_is_denied_by_every_road(policy):
    with guests(policy) as started:
        found = answers(started)
    assert len(found) == 27 * 9
    assert [line for line in found if line[2] != "EPERM"] == []


def test_without_the_filter_every_call_gets_further(policy):
    with guests(policy, "seccomp", "rlimits", "landlock", "uid", "namespaces") as started:
        found = answers(started)
    denied = {name for name, *_ in found} - {name for name, _, seen in found if seen != "EPERM"}
    # Docker's own filter lets these by for SYS_ADMIN and SYS_PTRACE alone.
    engines = {"unshare", "process_vm_readv"} if has_filter_of_an_engine() else set()
    assert denied <= engines


def test_every_unsafe_argument_is_denied(policy):
    source = """
def others(safe, top):
    return [value for value in range(top) if value not in safe]
print(*{raw(N['prctl'], value, 0, 0, 0, 0) for value in others((2, 3, 16, 21, 39), 90)})
print(*{raw(N['fcntl'], 1, value, 0) for value in others((0, 1, 2, 3, 1030), 1100)})
terminal = others((0x5401, 0x5413, 0x541b, 0x5450, 0x5451), 0x5480)[0x5380:]
print(*{raw(N['ioctl'], 1, value, ZEROS) for value in terminal})
"""
    with guests(policy) as started:
        outcome = started.run_source(HARNESS + source)
    assert outcome.output.split() == ["EPERM"] * 3


FOREIGN = {
    # By their 32-bit numbers through int 0x80: getpid, fork, open, execve, ptrace, socketcall,
    # clone; mov eax, NUMBER; int 0x80; ret. Without the filter they return.
    **{
        f"int 0x80, {number}": (
            f"ctypes.CFUNCTYPE(ctypes.c_int)(machine_code(b'\\xb8' + struct.pack('<I', {number})"
            " + b'\\x31\\xdb\\x31\\xc9\\x31\\xd2\\xcd\\x80\\xc3'))()"
        )
        for number in (20, 2, 5, 11, 26, 102, 120)
    },
    # The x32 numbers of getpid, fork, socket, and x32's own execve, ptrace, sendmsg.
    **{
        f"x32, {number}": f"libcs(0x40000000 | {number}, 0, 0, 0)"
        for number in (39, 57, 41, 520, 521, 518)
    },
    # Into a 32-bit code segment (push 0x23; push address; lretq), and there int 0x80.
    "far return": """
page = machine_code(bytes(64), 0x62)  # MAP_32BIT
there = b'\\xb8\\x01\\0\\0\\0\\xbb\\x2a\\0\\0\\0\\xcd\\x80'  # exit(42)
here = b'\\x6a\\x23\\x68' + struct.pack('<I', page + 32) + b'\\x48\\xcb'
ctypes.memmove(page, here.ljust(32, b'\\x90') + there, 32 + len(there))
ctypes.CFUNCTYPE(ctypes.c_int)(page)()
""",
    # The signal that would tell is handled, ignored and blocked first.
    "handler for SIGSYS": """
signal.signal(signal.SIGSYS, lambda *_: print('handled', flush=True))
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
libcs(0x40000000 | 39)
""",
}


@pytest.mark.parametrize("road", FOREIGN)
def test_a_call_in_another_instruction_set_ends_the_program(policy, caged_natively, road):
    outcome = caged_natively.run_source(f"{HARNESS}{FOREIGN[road]}\nprint('alive')")
    assert (outcome.kind, outcome.output) == ("crashed", "")
    # A kernel without 32-bit calls sends SIGSEGV at their entry.
    signals = ("SIGSYS", "SIGSEGV") if "int" in road or "far" in road else ("SIGSYS",)
    assert outcome.error.endswith(signals)


@pytest.fixture(scope="module")
def caged_natively(policy):
    with guests(policy) as started:
        yield started
