import errno
import itertools
import os
import platform
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.kernel import seccomp
from sandbox.kernel.seccomp import CONDITIONS, build_filter
from sandbox.kernel.syscalls import GROUPS, TABLES
from sandbox.policy.loader import load_policy
from tests.sandbox.guests import has_filter_of_an_engine
from tests.sandbox.kernel import bpf, libseccomp

ROOT = Path(__file__).resolve().parents[3]
TOKENS = {
    "x86_64": 0xC000003E,
    "i386": 0x40000003,
    "aarch64": 0xC00000B7,
    "arm": 0x40000028,
    "riscv64": 0xC00000F3,
    "none": 0,
    "nonsense": 0xFFFFFFFF,
}
X32_BIT = 1 << 30
DENIED = load_policy(ROOT / "policy.yaml").denied_syscalls
READING = DENIED - {*GROUPS["@file-read"]}  # what a policy denies whose libraries read files
EPERM, ENOSYS = bpf.ERRNO | errno.EPERM, bpf.ERRNO | errno.ENOSYS
NATIVE = platform.machine()

# The meaning of each condition, said a second time: arguments -> whether the call is refused.
REFUSES = {
    "clock_getres(others)": lambda a: a[0] % 2**32 > 11,
    "clock_gettime(others)": lambda a: a[0] % 2**32 > 11,
    "clock_nanosleep(others)": lambda a: a[0] % 2**32 > 11,
    "futex(shared)": lambda a: a[1] % 2**32 not in {128, 129, 137, 138, 128 | 256, 137 | 256},
    "madvise(unsafe)": lambda a: a[2] % 2**32 not in {0, 1, 2, 3, 4, 8, 14, 15},
    "mmap(address)": lambda a: a[0] != 0,
    "mmap(shared)": lambda a: bool(a[3] & 0x40001),
    "mremap(address)": lambda a: bool(a[3] & 6),
    "fcntl(unsafe)": lambda a: a[1] % 2**32 not in {0, 1, 2, 3, 1030},
    "ioctl(unsafe)": lambda a: (
        a[1] % 2**32 not in {0x5401, 0x5413, 0x541B, 0x5450, 0x5451, 0x802C542A}
    ),
    "open(write)": lambda a: bool(a[1] & 0o20001103),
    "openat(write)": lambda a: bool(a[2] & 0o20001103),
    "prctl(unsafe)": lambda a: a[0] % 2**32 not in {2, 3, 16, 21, 39},
    "prlimit64(set)": lambda a: a[0] % 2**32 != 0 or a[2] % 2**64 != 0,
    "sched_getaffinity(others)": lambda a: a[0] % 2**32 != 0,
}


def meaning(denied, arch, token, number, arguments=(0,) * 6):
    """Say what the policy means for one call."""
    if token != TOKENS[arch] or (arch == "x86_64" and number & X32_BIT):
        return bpf.KILL_PROCESS
    names = [name for name, known in TABLES[arch].items() if known == number]
    if not names:
        return ENOSYS
    if names[0] in denied:
        return ENOSYS if names[0] in {"clone3", "fchmodat2", "openat2"} else EPERM
    conditions = [entry for entry in denied if entry.startswith(f"{names[0]}(")]
    return EPERM if any(REFUSES[entry](arguments) for entry in conditions) else bpf.ALLOW


@pytest.mark.parametrize("arch", TABLES)
@pytest.mark.parametrize("machine", TOKENS)
def test_every_number_gets_the_policy_verdict(arch, machine):
    code, token = bpf.decode(build_filter(DENIED, arch)), TOKENS[machine]
    numbers = [*range(2048), *range(-600, 0), 2**29, 2**31 - 1, -(2**31), 2**31 + 39]
    for number in [*numbers, *(number | X32_BIT for number in range(2048))]:
        verdict, steps = bpf.run(code, bpf.seccomp_data(number, token))
        assert verdict == meaning(DENIED, arch, token, number), number
        assert steps <= 32, number


@pytest.mark.parametrize("arch", TABLES)
def test_the_calls_that_a_program_makes_most_are_allowed_cheaply(arch):
    code = bpf.decode(build_filter(DENIED, arch))
    for name in ("read", "write", "mmap", "munmap", "brk", "futex", "getrandom", "exit_group"):
        arguments = {"mmap": (0, 4096, 3, 0x22), "futex": (4096, 128)}.get(name, ())
        data = bpf.seccomp_data(TABLES[arch][name], TOKENS[arch], arguments)
        verdict, steps = bpf.run(code, data)
        assert verdict == bpf.ALLOW, name
        assert steps <= (20 if arguments else 16), name


# Values near the edges that matter, and in the half that the kernel drops.
EDGES = sorted(
    {
        0,
        1,
        2,
        3,
        4,
        5,
        8,
        11,
        12,
        14,
        15,
        16,
        20,
        21,
        22,
        38,
        39,
        40,
        1029,
        1030,
        1031,
        4242,
        0x5401,
        0x5412,
    }
    | {
        127,
        128,
        129,
        130,
        134,
        137,
        138,
        139,
        384,
        385,
        393,
        0x21,
        0x22,
        0x40022,
        2**32 - 6,
        0x5413,
        0x541B,
        0x5450,
        0x5451,
        0x5452,
        0x802C542A,
        0x82C542A,
        2**32 - 1,
        2**63,
        2**64 - 1,
    }
    | {1 << bit for bit in range(64)}
    | {0o2000000, 0o20200000, 0o4000, 0o100 << 32, 0x5401 | 1 << 32, 1030 | 1 << 40}
)


@pytest.mark.parametrize("arch", TABLES)
@pytest.mark.parametrize("entry", CONDITIONS)
def test_a_condition_refuses_the_arguments_it_should(arch, entry):
    name = entry.partition("(")[0]
    if name not in TABLES[arch]:
        assert name == "open"
        return
    code, token = bpf.decode(build_filter([entry], arch)), TOKENS[arch]
    number = TABLES[arch][name]
    seen = set()
    for position in range(6):
        for value in EDGES:
            arguments = tuple(value if index == position else 0 for index in range(6))
            verdict, _ = bpf.run(code, bpf.seccomp_data(number, token, arguments))
            assert verdict == meaning([entry], arch, token, number, arguments), arguments
            seen.add(verdict)
    assert seen == {bpf.ALLOW, EPERM}


def test_a_pointer_is_compared_in_both_halves():
    code = bpf.decode(build_filter(["prlimit64(set)"], "x86_64"))
    number, token = TABLES["x86_64"]["prlimit64"], TOKENS["x86_64"]
    for pointer, verdict in ((0, bpf.ALLOW), (1, EPERM), (1 << 32, EPERM), (1 << 63, EPERM)):
        assert bpf.run(code, bpf.seccomp_data(number, token, (0, 7, pointer)))[0] == verdict


def test_a_call_denied_whole_and_by_argument_is_denied_whole():
    code = bpf.decode(build_filter(["open", "open(write)"], "x86_64"))
    number, token = TABLES["x86_64"]["open"], TOKENS["x86_64"]
    assert bpf.run(code, bpf.seccomp_data(number, token))[0] == EPERM


entries = st.sampled_from(sorted({*TABLES["x86_64"], *TABLES["aarch64"], *CONDITIONS}))


@settings(max_examples=60, deadline=None, database=None)
@given(
    denied=st.frozensets(entries, max_size=400),
    arch=st.sampled_from(sorted(TABLES)),
    arguments=st.tuples(*[st.integers(0, 2**64 - 1) | st.sampled_from(EDGES)] * 6),
)
def test_any_denylist_means_what_it_says(denied, arch, arguments):
    code, token = bpf.decode(build_filter(denied, arch)), TOKENS[arch]
    for number in range(480):
        data = bpf.seccomp_data(number, token, arguments)
        assert bpf.run(code, data)[0] == meaning(denied, arch, token, number, arguments), number


@pytest.mark.parametrize("arch", TABLES)
def test_a_list_of_as_many_separate_calls_as_there_can_be_means_the_same(arch):
    denied, token = frozenset(list(TABLES[arch])[::2]), TOKENS[arch]
    code = bpf.decode(build_filter(denied, arch))
    assert len(code) > 300
    for number in range(480):
        verdict, _ = bpf.run(code, bpf.seccomp_data(number, token))
        assert verdict == meaning(denied, arch, token, number), number


def test_the_policys_own_filter_is_short_for_the_kernel_compiles_it_for_each_guest(policy):
    assert len(build_filter(policy.denied_syscalls, "x86_64")) // 8 < 200


def libseccomp_rules(denied, arch):
    """Return the policy as an allowlist, which can hold every condition: the rest is EPERM."""
    any_argument = 2**64 - 1
    clocks = [((0, 2**32 - 1, value),) for value in range(12)]
    allowed_if = {
        "clock_getres(others)": clocks,
        "clock_gettime(others)": clocks,
        "clock_nanosleep(others)": clocks,
        "futex(shared)": [((1, 2**32 - 1, value),) for value in (128, 129, 137, 138, 384, 393)],
        "madvise(unsafe)": [((2, 2**32 - 1, value),) for value in (0, 1, 2, 3, 4, 8, 14, 15)],
        "mmap(address)": [((0, any_argument, 0),)],
        "mmap(shared)": [((3, 0x40001, 0),)],
        "mremap(address)": [((3, 6, 0),)],
        "fcntl(unsafe)": [((1, 2**32 - 1, value),) for value in (0, 1, 2, 3, 1030)],
        "ioctl(unsafe)": [
            ((1, 2**32 - 1, value),)
            for value in (0x5401, 0x5413, 0x541B, 0x5450, 0x5451, 0x802C542A)
        ],
        "open(write)": [((1, 0o20001103, 0),)],
        "openat(write)": [((2, 0o20001103, 0),)],
        "prctl(unsafe)": [((0, 2**32 - 1, value),) for value in (2, 3, 16, 21, 39)],
        "prlimit64(set)": [((0, 2**32 - 1, 0), (2, any_argument, 0))],
        "sched_getaffinity(others)": [((0, 2**32 - 1, 0),)],
    }
    rules = []
    for name in TABLES[arch]:
        if libseccomp.number_of(name, TOKENS[arch]) < 0:
            continue  # newer than this libseccomp
        if name in {"clone3", "fchmodat2", "openat2"}:
            rules.append((name, ENOSYS, ()))
        elif name not in denied:
            conditions = [allowed_if[e] for e in sorted(denied) if e.startswith(f"{name}(")]
            rules += [(name, bpf.ALLOW, sum(when, ())) for when in itertools.product(*conditions)]
    return rules


@pytest.mark.parametrize("arch", TABLES)
@pytest.mark.parametrize("denied", [DENIED, READING], ids=["default", "reading"])
def test_the_filter_agrees_with_libseccomp(arch, denied):
    ours, token = bpf.decode(build_filter(denied, arch)), TOKENS[arch]
    theirs = bpf.decode(libseccomp.export(libseccomp_rules(denied, arch), EPERM, token))
    known = [n for n in TABLES[arch] if libseccomp.number_of(n, token) >= 0]
    assert len(known) > 250
    for name in known:
        for position in range(6) if any(e.startswith(f"{name}(") for e in denied) else [0]:
            for value in EDGES:
                arguments = tuple(value if index == position else 0 for index in range(6))
                data = bpf.seccomp_data(TABLES[arch][name], token, arguments)
                assert bpf.run(ours, data)[0] == bpf.run(theirs, data)[0], (name, arguments)


def test_the_same_list_gives_the_same_bytes():
    denied = sorted(DENIED)
    assert build_filter(denied, "x86_64") == build_filter(denied[::-1] + denied, "x86_64")


@pytest.mark.parametrize(
    ("denied", "arch", "message"),
    [
        (["nosuch"], "x86_64", "unknown system call: nosuch"),
        (["@spawn"], "x86_64", "unknown system call: @spawn"),
        (["open(read)"], "x86_64", r"unknown condition: open\(read\); there are clock_getres"),
        (["open"], "riscv64", "no system call table for riscv64; there are aarch64, x86_64"),
    ],
)
def test_what_cannot_be_built_is_refused_in_words(denied, arch, message):
    with pytest.raises(ValueError, match=message):
        build_filter(denied, arch)


def test_a_filter_too_long_for_the_kernels_jumps_is_refused(monkeypatch):
    table = {f"call{number}": number for number in range(2000)}
    monkeypatch.setattr(seccomp, "TABLES", {"x86_64": table})
    assert build_filter(list(table)[:400:2], "x86_64")
    with pytest.raises(ValueError, match="too long: deny fewer separate calls"):
        build_filter(list(table)[::2], "x86_64")


CHILD = """
import ctypes, errno, mmap, os, sys
from sandbox.kernel import confine
from sandbox.kernel.syscalls import TABLES
libc = ctypes.CDLL(None, use_errno=True)
TABLE = TABLES[os.uname().machine]
def call(name, *arguments):
    number = name if isinstance(name, int) else TABLE[name]
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return ctypes.get_errno() if result < 0 else 0
def machine_code(code):
    memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)
    memory.write(code)
    function = ctypes.CFUNCTYPE(ctypes.c_int)
    function.memory = memory  # or it is unmapped before the call
    return function(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
def install(program):
    step, arguments = confine._installation(program)
    confine.call(step, *arguments)
program = bytes.fromhex(sys.stdin.read())
if program:
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    install(program)
"""


def child(source, program):
    return subprocess.run(
        [sys.executable, "-c", CHILD + source],
        input=program.hex(),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


def test_the_kernel_denies_what_the_filter_denies_and_allows_the_rest():
    source = """
flags = os.O_WRONLY | os.O_CREAT
name = ctypes.cast(ctypes.c_char_p(b"/dev/null"), ctypes.c_void_p).value
print(call("getpid"), call("socket", 1, 1, 0), call("openat", -100, name, os.O_RDONLY, 0),
    call("openat", -100, name, flags, 0o600), call("kill", 0, 0), call("clone3", 0, 0),
    call("fcntl", 1, 1), call("fcntl", 1, 8, os.getpid()), call(2000), call(-1 & 0xbfffffff))
"""
    # Unfiltered, clone3 of size 0 is EINVAL; the rest succeeds, and unassigned numbers are ENOSYS.
    clone3 = errno.ENOSYS if has_filter_of_an_engine() else errno.EINVAL
    answers = {b"": (0, 0, 0, 0, 0, clone3, 0, 0, errno.ENOSYS, errno.ENOSYS)}
    answers[build_filter(READING, NATIVE)] = (
        *(0, errno.EPERM, 0, errno.EPERM, errno.EPERM, errno.ENOSYS, 0, errno.EPERM),
        *(errno.ENOSYS, errno.ENOSYS),
    )
    for program, expected in answers.items():
        ran = child(source, program)
        assert (ran.stdout.split(), ran.stderr) == ([str(code) for code in expected], "")


@pytest.mark.skipif(NATIVE != "x86_64", reason="x32 shares the token of x86_64 alone")
def test_an_x32_call_is_killed():
    source = f"print(call({X32_BIT | TABLES['x86_64']['getpid']}))"
    assert child(source, b"").stdout  # with or without x32 in the kernel, it lives
    assert child(source, build_filter(DENIED, NATIVE)).returncode == -signal.SIGSYS


@pytest.mark.skipif(NATIVE != "x86_64", reason="int 0x80 is x86")
def test_a_32_bit_call_is_killed():
    # mov eax, 20 (getpid in 32-bit numbers, writev in 64-bit ones); int 0x80; ret
    source = r"print(machine_code(b'\xb8\x14\0\0\0\xcd\x80\xc3')())"
    if child(source, b"").returncode == -signal.SIGSEGV:
        pytest.skip("this kernel has no 32-bit entry")
    assert child(source, build_filter(DENIED, NATIVE)).returncode == -signal.SIGSYS


def test_the_kernel_takes_the_longest_filter():
    denied = list(TABLES[NATIVE])[1::2]  # as many separate ranges as there can be
    denied = [n for n in denied if n not in {"write", "exit_group", "rt_sigaction", "munmap"}]
    program = build_filter(denied, NATIVE)
    assert len(bpf.decode(program)) > 300
    ran = child("os.write(1, b'installed'); os._exit(0)", program)
    assert (ran.stdout, ran.returncode) == ("installed", 0)


def test_installing_what_is_no_filter_raises_the_kernels_error():
    nothing, falls_off = b"", struct.pack("=HBBI", bpf.LOAD_WORD, 0, 0, 0)
    source = "\nlibc.prctl(38, 1, 0, 0, 0)\ninstall(bytes.fromhex({!r}))"
    for program in (nothing, falls_off):
        assert "Errno 22" in child(source.format(program.hex()), b"").stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root needs no no_new_privs")
def test_installing_without_no_new_privs_raises_the_kernels_error():
    source = f"\ninstall(bytes.fromhex({build_filter(DENIED, NATIVE).hex()!r}))"
    assert "Errno 13" in child(source, b"").stderr
