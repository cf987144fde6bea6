"""Programs of warm_up: tried in a guest first, whose limits end them; none outlives the start."""

import dataclasses
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.fork_server.zygote_process import SandboxUnavailable
from sandbox.policy.loader import Policy
from sandbox.sandbox import Sandbox

ROOT = Path(__file__).resolve().parents[2]


def refusal(policy: Policy, program: str) -> str:
    quick = dataclasses.replace(policy.rlimits, cpu_seconds=1)
    limits = dataclasses.replace(policy.limits, wall_seconds=2)
    policy = dataclasses.replace(policy, warm_up=("2+2", program), rlimits=quick, limits=limits)
    with pytest.raises(SandboxUnavailable) as caught:
        Sandbox(policy).start()
    return str(caught.value)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("while True: pass", "did not end within its limits"),
        ("[0] * 10**10", "MemoryError"),
        ("x = []\nwhile True: x.append(' ' * 10**7)", ""),  # whichever limit comes first
    ],
)
def test_a_program_that_takes_too_much_is_refused_by_name(
    policy: Policy, program: str, reason: str
) -> None:
    told = refusal(policy, program)
    assert repr(program) in told
    assert reason in told


def test_whatever_the_policy_opens_a_program_can_write_start_and_reach_nothing(
    policy: Policy, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    open_policy = dataclasses.replace(
        policy,
        allowed_imports={**policy.allowed_imports, "os": None, "socket": None},
        dangerous_names=frozenset(),
        denied_syscalls=frozenset(),
        blocked_words=(),
    )
    file = tmp_path / "written"
    for program in (
        f"open({str(file)!r}, 'w').close()",
        "open('/etc/passwd').read()",
        "import os\nos.fork()",
        "import socket\nsocket.socket()",
    ):
        told = refusal(open_policy, program)
        assert "Error: [Errno " in told, told  # not permitted, or not there
    assert not file.exists()


START = """
import dataclasses, sys
from sandbox.fork_server import zygote_process
from sandbox.policy.loader import load_policy
policy = load_policy("policy.yaml")
limits = dataclasses.replace(policy.rlimits, cpu_seconds=50)
policy = dataclasses.replace(policy, warm_up=("while True: pass",), rlimits=limits)
zygote_process.ZygoteProcess(policy)
"""


def children(pid: int) -> list[int]:
    """The processes that a process started, and those that these started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            below = list(map(int, task.read_text().split()))
        except OSError:
            continue
        found += below + [one for child in below for one in children(child)]
    return found


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_a_process_that_ends_while_it_starts_a_zygote(sign: int) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", START], cwd=ROOT, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 30
    while len(started := children(starter.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(started) >= 2
    starter.send_signal(sign)
    starter.wait()
    left = started
    while left and time.monotonic() < deadline:
        left = [pid for pid in left if is_running(pid)]
        time.sleep(0.02)
    assert left == []


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (OSError, ValueError):
        return False
