import dataclasses
import platform
import subprocess
import sys

import pytest

from sandbox.fork_server.outcome import Outcome
from sandbox.kernel.syscalls import GROUPS, TABLES
from sandbox.sandbox import Sandbox, SandboxUnavailable
from sandbox.self_test import PROBES, run_probes
from tests.conftest import ROOT
from tests.sandbox.guests import WITHOUT, guests

# The words that come without the layers.
OPEN = {
    "descriptors": "EBADF allowed",
    "socket": "allowed EAFNOSUPPORT EINVAL ENODEV EPERM EPROTONOSUPPORT EPROTOTYPE ESOCKTNOSUPPORT",
    "socketpair": "EFAULT",
    "connect": "EBADF",
    "bind": "EBADF",
    "send": "EBADF",
    "fork": "allowed",
    "clone": "allowed",
    "clone3": "EINVAL",
    "thread": "allowed",
    "execve": "EFAULT",
    "execveat": "EFAULT",
    "signal": "allowed EINVAL ESRCH",
    "pidfd": "allowed EBADF ENOENT ESRCH",
    "ptrace": "ESRCH",
    "process_vm_readv": "allowed",
    "prlimit": "allowed ESRCH",
    "setpriority": "allowed ESRCH",
    "CPU clock": "allowed EINVAL ESRCH",  # of one that ends meanwhile
    "timer": "allowed EFAULT EINVAL",
    "futex": "allowed EINVAL ENOSYS EPERM",
    "shared memory": "allowed ENOMEM",
    "scattered memory": "allowed EINVAL",
    "merged memory": "allowed EINVAL",
    "paths": "allowed EFAULT EINVAL EISDIR ENODATA ENOSYS EOPNOTSUPP",
    "page cache": "allowed EBADF EFAULT EINVAL",
    "openat": "allowed EEXIST EISDIR ENOENT EOPNOTSUPP ENOTDIR",
    "open": "allowed EEXIST EISDIR ENOENT EOPNOTSUPP ENOTDIR",
    "openat2": "EINVAL",
    "file changes": "allowed EBADF EEXIST EFAULT EINVAL EROFS",
    "file handle": "EFAULT",
    "function": "allowed",
    "zygote": "allowed",
    "/proc/1/environ": "allowed",
    "/etc/passwd": "allowed",
    "folder": "allowed",
    "file names": "allowed",
    "io_uring": "EBADF EFAULT EINVAL",
    "bpf": "EINVAL",
    "perf": "EFAULT",
    "userfaultfd": "allowed EINVAL",
    "keyring": "EFAULT EINVAL ENOKEY",
    "System V IPC": "EINVAL ENOENT",
    "POSIX IPC": "EFAULT",
    "memfd": "EFAULT",
    "unshare": "allowed",
    "setns": "EBADF",
    "mount": "EBADF EFAULT EINVAL",
    "module": "EBADF ENOSYS",
    "clock": "allowed",
    "own limits": "allowed",
    "regain ids": "allowed EFAULT",
    "identity": "False",
    "limits": "1 2 3 4 5 6 7 8 9 10 11 12",
    "no_new_privs": "0",
    "outlive": "0",
    "attributes": "allowed EFAULT",
    "core dump": "1",
    "seccomp": "EFAULT",
    "vfork": "allowed SIGSEGV",
    "x32 call": "allowed ENOSYS",
    "32-bit call": "allowed SIGSEGV",
}

HERE = [probe for probe in PROBES if platform.machine() in probe.machines]


@pytest.fixture(scope="session")
def every_layer(policy):
    """Skip where layers are missing, or rights to do without them what the probes try."""
    with guests(policy) as started:
        missing = WITHOUT.keys() - started.layers.keys()
    if missing:
        pytest.skip(f"this machine has no {', '.join(missing)}")


# Not required of a policy whose programs may read files.
LEFT_OPEN = {"paths", "scattered memory"}


@pytest.fixture
def reading(policy):
    """A policy whose programs may read files: what keeps most of them away is not the filter."""
    denied = policy.denied_syscalls - {*GROUPS["@file-read"], "mmap(address)"}
    return dataclasses.replace(policy, denied_syscalls=denied)


def probed(policy, run, *, layers, zygote, secrets=()):
    results = run_probes(run, policy, layers, zygote, secrets)
    return {result.name: result for result in results}


def in_guests(policy, *without, secrets=()):
    with guests(policy, *without) as started:
        return probed(
            policy,
            started.run_source,
            layers=started.layers,
            zygote=started.pid,
            secrets=secrets,
        )


def failed(results):
    return {name for name, result in results.items() if not result.passed}


@pytest.mark.parametrize("of", ["policy", "reading"])
def test_every_required_probe_passes_in_a_guest(request, of, tmp_path):
    policy = request.getfixturevalue(of)
    secret = tmp_path / "config.json"
    secret.write_text("token")
    results = in_guests(policy, secrets=[str(secret), "/no/such/secret"])
    assert list(results) == [str(secret), *(probe.name for probe in HERE)]
    assert {name for name in failed(results) if results[name].required} == set()


def test_every_probe_passes_in_a_guest_with_every_layer(policy, every_layer):
    assert failed(in_guests(policy)) == set()


def test_every_probe_fails_without_any_sandbox_and_for_the_reason_it_gives(
    policy, tmp_path, every_layer
):
    def run(source):
        ran = subprocess.run(
            [sys.executable, "-c", f"import os; os.dup(0)\n{source}"],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
            timeout=30,
        )
        ending = "the interpreter was ended by SIGSEGV"
        return Outcome("crashed" if ran.returncode < 0 else "ok", ran.stdout, ending)

    secret = tmp_path / "config.json"
    secret.write_text("token")
    target = subprocess.Popen(["sleep", "infinity"])  # as long as the probes take beside others
    try:
        results = probed(policy, run, layers=WITHOUT, zygote=target.pid, secrets=[str(secret)])
    finally:
        target.kill()
        target.wait()
    # A kernel without 32-bit calls ends the process too; some machines guard their process 1.
    assert set(results) - failed(results) <= {"32-bit call", "/proc/1/environ"}
    seen = {
        probe.name: set(results[probe.name].detail.partition(",")[0].split())
        for probe in HERE
        if not results[probe.name].passed
    }
    for words in seen.values():
        if "allowed" in words:  # a stranger with the next process id may be out of reach
            words.discard("EPERM")
    reasons = {probe.name: set(OPEN[probe.name].split()) for probe in HERE}
    assert {name: words for name, words in seen.items() if not words <= reasons[name]} == {}


# What else refuses: changes of ids need capabilities, threads meet RLIMIT_NPROC.
ALSO_REFUSED = {"clock", "thread"}


def test_without_seccomp_its_probes_fail(policy, every_layer):
    results = in_guests(policy, "seccomp")
    by_seccomp = {probe.name for probe in HERE if set(probe.layers) == {"seccomp"}}
    assert by_seccomp - failed(results) <= ALSO_REFUSED | {"32-bit call"}
    assert failed(results) <= by_seccomp


@pytest.mark.parametrize(
    ("without", "red"),
    [
        (["uid"], {"identity"}),
        (["rlimits"], {"limits"}),
        (["namespaces"], {"file names"}),
        (["landlock"], {"folder"}),  # namespaces hide the files too
        (["landlock", "namespaces"], {"folder", "file names", "/etc/passwd"}),
        (
            ["uid", "landlock", "namespaces"],
            {"identity", "folder", "file names", "/etc/passwd", "function", "zygote"},
        ),
    ],
)
def test_the_probes_of_a_missing_layer_fail(reading, without, red, tmp_path, every_layer):
    secret = tmp_path / "config.json"
    secret.write_text("token")
    secret.chmod(0o600)
    results = in_guests(reading, *without, secrets=[str(secret)])
    if "function" in red:
        red = red | {str(secret)}
    assert failed(results) - {"/proc/1/environ", *LEFT_OPEN} == red


def test_the_filter_alone_keeps_files_under_the_default_policy(policy, tmp_path, every_layer):
    secret = tmp_path / "config.json"
    secret.write_text("token")
    results = in_guests(policy, "uid", "landlock", "namespaces", secrets=[str(secret)])
    assert failed(results) == {"identity"}


# What no guest can do without, or the probes themselves.
BARE = {"brk", "close", "exit_group", "futex", "getrusage", "mmap", "munmap", "read", "write"}


def test_a_stricter_policy_is_not_called_open(policy):
    denied = {*TABLES[platform.machine()]} - BARE | policy.denied_syscalls
    results = in_guests(dataclasses.replace(policy, denied_syscalls=frozenset(denied)))
    assert failed(results) == set()


def test_a_probe_is_required_where_a_layer_that_refuses_is_in_force(policy, every_layer):
    results = in_guests(policy, "landlock", "namespaces")
    shown_only = {name for name, result in results.items() if not result.required}
    assert shown_only == {"/etc/passwd", "folder", "file names"}


def test_a_guest_that_ends_early_fails_its_probes(policy):
    def run(source):
        return Outcome("wall_limit", "socket\tEPERM\nfork\tEPERM EBADF\nclone\t\n", "too slow")

    results = probed(policy, run, layers={"seccomp"}, zygote=1)
    assert {name for name, result in results.items() if result.passed} == {"socket"}
    assert results["fork"].detail == "EPERM EBADF, not EPERM"
    assert results["bind"].detail == "no answer (wall_limit: too slow), not EPERM"


@pytest.mark.parametrize(
    ("call", "probe"),
    [
        ("socket", "socket"),
        ("ptrace", "ptrace"),
        ("openat(write)", "openat"),
        ("clock_gettime(others)", "CPU clock"),
        ("clock_nanosleep(others)", "CPU clock"),
        ("timer_create", "timer"),
        ("futex(shared)", "futex"),
        ("futex_waitv", "futex"),
        ("mmap(shared)", "shared memory"),
        ("mremap(address)", "scattered memory"),
        ("statx", "paths"),
        ("madvise(unsafe)", "merged memory"),
        ("preadv2", "page cache"),
        ("prctl(unsafe)", "attributes"),
        ("fcntl(unsafe)", "attributes"),
    ],
)
def test_a_policy_that_leaves_a_call_open_is_not_served(policy, reading, call, probe):
    whole = reading if call == "openat(write)" else policy
    weaker = dataclasses.replace(whole, denied_syscalls=whole.denied_syscalls - {call})
    with pytest.raises(SandboxUnavailable, match=rf"\({probe}: "):
        Sandbox(weaker).start()
