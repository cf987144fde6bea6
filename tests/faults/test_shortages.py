"""No descriptor, no process, no disk left: refused or late, and right again when it is over."""

import json
import os
import resource
import shlex
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.conftest import Service, message
from tests.faults.parts import (
    RIGHT_AGAIN_WITHIN,
    connect,
    eventually,
    health,
    held,
    is_right,
    parts,
    question,
)
from tests.performance import processes
from tools import serve

SERVE = serve.command("127.0.0.1:0")


def test_a_thousand_kept_connections_cost_no_descriptor_that_is_needed(
    start_service: Callable[..., Service],
) -> None:
    """With the soft limit of most shells, of which so many connections would leave next to none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        service = start_service()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    try:
        assert is_right(service)
        worker = parts(service).worker
        with ExitStack() as held_open:
            for _ in range(990):
                connection = held_open.enter_context(connect(service))
                connection.sendall(b"GET /test HTTP/1.1\r\nHost: x\r\n\r\n")
                assert connection.recv(1000).startswith(b"HTTP/1.1 200")
            assert len(os.listdir(f"/proc/{worker}/fd")) > 990
            assert is_right(service)
        assert parts(service).worker == worker
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_descriptors_requests_are_refused_until_there_are_some(
    start_service: Callable[..., Service],
) -> None:
    service = start_service()
    eventually(lambda: is_right(service))
    eventually(lambda: len(parts(service).guests) == 4)
    before, now = held(service), parts(service)
    limits = resource.prlimit(now.worker, resource.RLIMIT_NOFILE)
    taken = sorted(map(int, os.listdir(f"/proc/{now.worker}/fd")))
    resource.prlimit(now.worker, resource.RLIMIT_NOFILE, (taken[-1] + 3, limits[1]))
    assert [is_right(service) for _ in range(5)] == [False] * 5
    if Path(f"/proc/{now.worker}").exists():
        resource.prlimit(now.worker, resource.RLIMIT_NOFILE, limits)
    eventually(lambda: is_right(service), RIGHT_AGAIN_WITHIN)
    eventually(lambda: held(service) <= before)
    assert parts(service).worker == now.worker


@contextmanager
def control_group(controller: str) -> Iterator[Path]:
    """Give a control group (of version 1 or 2) that limits what `controller` names."""
    roots = (Path("/sys/fs/cgroup") / controller, Path("/sys/fs/cgroup"))
    group = next(root for root in roots if root.exists()) / f"calcubot-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"needs a control group: {error}")
    try:
        if not list(group.glob(f"{controller}.*")):
            pytest.skip(f"needs a control group with the {controller} controller")
        yield group
        eventually(lambda: not (group / "cgroup.procs").read_text())
    finally:
        group.rmdir()


@pytest.fixture
def few_processes() -> Iterator[Path]:
    """A control group that can be told how many processes and threads it may have."""
    with control_group("pids") as group:
        yield group


@pytest.fixture
def little_memory() -> Iterator[Path]:
    """The limit of a control group, in which 200 MiB may be used from now on."""
    with control_group("memory") as group:
        names = ("memory.max", "memory.limit_in_bytes")
        limit = next(group / name for name in names if (group / name).exists())
        limit.write_text(str(200 << 20))
        if (group / "memory.swap.max").exists():
            (group / "memory.swap.max").write_text("0")
        yield limit


def test_without_processes_requests_are_refused_until_there_are_some(
    start_service: Callable[..., Service], few_processes: Path
) -> None:
    service = start_service()
    eventually(lambda: is_right(service))
    eventually(lambda: len(parts(service).guests) == 4)
    before = held(service)
    for pid in processes.tree(service.process.pid):
        (few_processes / "cgroup.procs").write_text(str(pid))
    present = int((few_processes / "pids.current").read_text())
    (few_processes / "pids.max").write_text(str(present))
    assert all(is_right(service) for _ in range(12))  # each frees the process of the next
    (few_processes / "pids.max").write_text("1")
    answers = [is_right(service) for _ in range(8)]
    assert not answers[-1]
    (few_processes / "pids.max").write_text("max")
    eventually(lambda: is_right(service), RIGHT_AGAIN_WITHIN)
    eventually(lambda: held(service) <= before)
    service.process.terminate()
    assert service.process.wait(20) == 0


@pytest.mark.parametrize("hidden", [False, True], ids=["seen", "hidden"])
@pytest.mark.parametrize("most", [10, 60])
def test_too_few_processes_end_the_service_with_the_number_needed(
    few_processes: Path, most: int, hidden: bool
) -> None:
    """Hidden: the limit is of a group above, as one of a pod is to its containers."""
    (few_processes / "pids.max").write_text(str(most))
    unshare = "unshare --cgroup" if hidden else ""
    command = f"echo $$ > {few_processes}/cgroup.procs; exec {unshare} {shlex.join(SERVE)}"
    assert "allow at least 80, and twice the policy's" in refusal(command)


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("ulimit -n 64", "only 64 files may be open: allow at least 256"),
        (
            # The project may itself be in /tmp.
            "for at in /dev/shm /tmp; do mount --rbind $at $at; mount -o remount,bind,ro $at; done",
            "neither /dev/shm nor /tmp can be written",
        ),
    ],
    ids=["descriptors", "no folder"],
)
def test_other_shortages_end_the_service_with_what_is_needed(limit: str, told: str) -> None:
    if os.geteuid() != 0 and "mount" in limit:
        pytest.skip("mounting needs root")
    command = f"{limit}; exec {shlex.join(SERVE)}"
    assert told in refusal(f"unshare --mount sh -c '{command}'" if "mount" in limit else command)


def test_without_memory_to_begin_with_the_service_says_so(
    little_memory: Path,
) -> None:
    little_memory.write_text(str(40 << 20))
    command = f"echo $$ > {little_memory.parent}/cgroup.procs; exec {shlex.join(SERVE)}"
    assert "only 40 MiB of memory may be used: allow at least 64" in refusal(command)


def refusal(command: str) -> str:
    """Run a shell command that cannot serve, and return the one line that says why."""
    ended = subprocess.run(
        ["sh", "-c", command],
        cwd=serve.ROOT,
        env=os.environ | {"CONFIG_PATH": "", "LOG_FORMAT": "json"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    [told] = [line["event"] for line in lines if line["level"] == "critical"]
    return str(told)


def test_without_memory_the_program_that_wants_it_ends_and_nothing_else(
    start_service: Callable[..., Service], little_memory: Path
) -> None:
    service = start_service()
    eventually(lambda: is_right(service))
    eventually(lambda: len(parts(service).guests) == 4)
    before, whole = parts(service), held(service)
    for pid in processes.tree(service.process.pid):
        (little_memory.parent / "cgroup.procs").write_text(str(pid))
    for _ in range(6):  # guests that were prepared before, and others
        assert service.ask("len(b'x' * (100 << 20))")["text"].startswith("104857600 = ")
        assert "memory" in service.ask("len(b'x' * (300 << 20))")["text"]
        assert is_right(service)
    assert (parts(service).master, parts(service).worker) == (before.master, before.worker)
    assert parts(service).zygote == before.zygote
    with ThreadPoolExecutor(8) as threads:  # several, each of which takes less than the service
        program = "x = b'x' * (22 << 20)\nfor i in range(8 * 10**6): pass\nlen(x)"
        little_memory.write_text(str(90 << 20))
        asked = [question()[0] | {"text": program} for _ in range(8)]
        answers = threads.map(lambda one: service.request("POST", "/message", one).status, asked)
        assert set(answers) == {200}
    assert (parts(service).master, parts(service).worker) == (before.master, before.worker)
    eventually(lambda: held(service) <= whole)
    service.process.terminate()
    assert service.process.wait(20) == 0


def test_a_full_disk_costs_no_answer(start_service: Callable[..., Service], tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs CAP_SYS_ADMIN")
    try:
        service = start_service(STORE=str(disk / "state.db"))
        filler = disk / "filler"
        with pytest.raises(OSError, match="No space"):
            filler.write_bytes(bytes(4 << 20))
        update = {"update_id": 7, "message": message("print(random.random())")}
        first = service.request("POST", "/webhook", update).json()
        assert service.request("POST", "/webhook", update).json() == first
        assert all(is_right(service) for _ in range(20))
        assert health(service)["store"]["state"] == "degraded"
        filler.unlink()
        eventually(lambda: health(service)["store"]["state"] == "ok")
        assert service.request("POST", "/webhook", update).json() == first
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
