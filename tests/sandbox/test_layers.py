"""Each layer alone: what it stops with all others switched off, and what comes without it."""

import dataclasses
import os
import socket

import pytest

from sandbox.check.checker import check
from sandbox.kernel.layers import CURES, ESSENTIAL
from sandbox.policy.mistakes import schema
from tests.sandbox.guests import WITHOUT, guests

# Tries statements in turn and prints for each what became of it.
TRY = """
import _socket as socket, ctypes, os, resource, sys, time
def attempt(source):
    try:
        exec(source, globals())
        print('done')
    except BaseException as error:
        print(type(error).__name__)
"""


def tried(started, *sources, **facts):
    given = "".join(f"{name} = {value!r}\n" for name, value in facts.items())
    attempts = "".join(f"attempt({source!r})\n" for source in sources)
    return started.run_source(given + TRY + attempts).output.split()


@pytest.fixture
def alone(policy):
    """Return a function that runs attempts with one layer alone, and then with none at all."""
    with guests(policy) as started:
        missing = WITHOUT.keys() - started.layers.keys()

    def run(layer, *sources, **facts):
        if layer in missing:
            pytest.skip(f"this machine has no {layer}")
        results = []
        for without in (WITHOUT.keys() - {layer}, WITHOUT):
            with guests(policy, *without) as started:
                results.append(tried(started, *sources, ZYGOTE=started.pid, **facts))
        return results

    return run


def test_uid_alone_keeps_secrets_and_other_processes(alone, tmp_path):
    secret = tmp_path / "config.json"
    secret.write_text("token")
    secret.chmod(0o600)
    with_it, without = alone(
        "uid",
        "open(SECRET).read()",
        "os.kill(ZYGOTE, 0)",
        "resource.prlimit(ZYGOTE, resource.RLIMIT_NOFILE)",
        SECRET=str(secret),
    )
    assert with_it == ["PermissionError"] * 3
    assert without == ["done"] * 3


def test_landlock_alone_keeps_files_ports_and_signals(alone, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        with_it, without = alone(
            "landlock",
            "open('/etc/passwd').read()",
            "os.listdir('/')",
            "os.open(FOLDER, os.O_TMPFILE | os.O_RDWR)",
            "socket.socket().connect(('127.0.0.1', PORT))",
            "os.kill(ZYGOTE, 0)",
            FOLDER=str(tmp_path),
            PORT=server.getsockname()[1],
        )
    assert with_it == ["PermissionError"] * 5
    assert without == ["done"] * 5


def test_seccomp_alone_keeps_calls(alone, tmp_path):
    with_it, without = alone(
        "seccomp",
        "socket.socket()",
        "os.fork() or os._exit(0)",
        "os.open(FOLDER, os.O_TMPFILE | os.O_RDWR)",
        "os.kill(ZYGOTE, 0)",
        "os.setpriority(0, 0, 19)",
        FOLDER=str(tmp_path),
    )
    assert with_it == ["PermissionError"] * 5
    assert without == ["done"] * 5


def test_namespaces_alone_hide_files_processes_and_the_network(alone):
    with socket.create_server(("127.0.0.1", 0)) as server:
        with_it, without = alone(
            "namespaces",
            "os.stat('/etc/passwd')",
            "os.stat('/proc/self')",
            "os.kill(ZYGOTE, 0)",
            "socket.socket().connect(('127.0.0.1', PORT))",
            "assert os.uname().nodename == HOST",
            PORT=server.getsockname()[1],
            HOST=os.uname().nodename,
        )
    assert with_it == [
        "FileNotFoundError",
        "FileNotFoundError",
        "ProcessLookupError",
        "OSError",
        "AssertionError",
    ]
    assert without == ["done"] * 5


def test_rlimits_alone_bound_memory_files_and_descriptors(alone, tmp_path):
    with_it, without = alone(
        "rlimits",
        "bytes(1 << 30)",
        "[os.dup(1) for _ in range(100)]",
        "os.write(os.open(FOLDER, os.O_TMPFILE | os.O_RDWR), b'x')",
        FOLDER=str(tmp_path),
    )
    assert with_it == ["MemoryError", "OSError", "OSError"]
    assert without == ["done"] * 3


def test_rlimits_alone_bound_cpu_time(policy):
    rlimits = dataclasses.replace(policy.rlimits, cpu_seconds=1)
    limits = dataclasses.replace(policy.limits, wall_seconds=60)  # for busy machines
    policy = dataclasses.replace(policy, rlimits=rlimits, limits=limits)
    source = "import time\nwhile time.process_time() < 1.2: pass\n'done'"
    without = WITHOUT.keys() - {"rlimits"}
    with guests(policy, *without, cpu_seconds=60) as started:
        assert started.run_source(source).kind == "cpu_limit"
    with guests(policy, *WITHOUT, cpu_seconds=60) as started:
        assert started.run_source(source).output == "done\n"


def test_the_zygotes_clock_alone_bounds_cpu_time(policy):
    limits = dataclasses.replace(policy.limits, wall_seconds=60)
    rlimits = dataclasses.replace(policy.rlimits, cpu_seconds=1)
    policy = dataclasses.replace(policy, limits=limits, rlimits=rlimits)
    source = "import time\nwhile time.process_time() < 1.5: pass\n'done'"
    with guests(policy, *WITHOUT) as started:
        outcome = started.run_source(source)
    assert outcome.kind == "cpu_limit"
    assert outcome.cpu_seconds < 1.4


# The checker and the import guard stand before the operating system. Reached are a module by an
# attribute, which neither the guard nor the views of modules see, and a module by import.
BY_ATTRIBUTE = "print.__self__.open('/etc/hostname') and 'reached'"
BY_IMPORT = "import os\n'reached'"
BY_NAME = "open('/etc/passwd') and 'reached'"


def test_the_checker_alone_keeps_a_program_from_modules(policy):
    with guests(policy, *WITHOUT) as started:
        assert started.run_source(BY_ATTRIBUTE, unchecked=False).output == "reached\n"
    assert [violation.value for violation in check(BY_ATTRIBUTE, policy)] == ["__self__"]


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (BY_IMPORT, "ImportError: os may not be imported here (line 1)"),
        (BY_NAME, "NameError: name 'open' is not defined"),
    ],
)
def test_import_guard_and_reduced_builtins_alone_keep_a_program_from_modules(policy, source, error):
    with guests(policy, *WITHOUT) as started:
        assert started.run_source(source, unchecked=False).error.startswith(error)
        assert started.run_source(source, unchecked=True).output == "reached\n"


def test_a_policy_may_require_each_layer_that_has_a_cure():
    names = schema()["properties"]["required_layers"]["items"]["enum"]
    assert set(names) == CURES.keys()
    assert set(ESSENTIAL) < CURES.keys()
