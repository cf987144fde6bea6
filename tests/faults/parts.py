"""The processes of a running service, by what each is, and what they hold: read from /proc."""

import itertools
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from tests.conftest import Service, message
from tests.performance import processes

RIGHT_AGAIN_WITHIN = 2.0  # seconds after a fault
users = itertools.cycle(range(1000, 9000))  # more than ask within a minute


@dataclass(frozen=True)
class Parts:
    """Process ids; `guests` leaves out the one that keeps their PID namespace alive."""

    master: int
    worker: int
    zygote: int
    guests: tuple[int, ...]


def parts(service: Service) -> Parts:
    """Return the processes as they are now; of two of a kind, the newer one."""
    master = service.process.pid
    worker = children(master)[-1]
    zygote = children(worker)[-1]
    below = children(zygote)
    layers = health(service)["sandbox"]["layers"]
    return Parts(master, worker, zygote, tuple(below[bool(layers.get("namespaces")) :]))


def children(pid: int) -> list[int]:
    """Return the living children of a process, the oldest first, whichever thread made them.

    Process ids begin anew at pid_max, proc(5), and do not tell which is older.
    """
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # that thread has ended
            found += map(int, (task / "children").read_text().split())
    return sorted(found, key=processes.started)


@dataclass(frozen=True)
class Held:
    """How many processes there are, and the descriptors of master, worker and zygote."""

    processes: int
    descriptors: tuple[int, ...]

    def __le__(self, other: "Held") -> bool:
        return self.processes <= other.processes and all(
            mine <= theirs for mine, theirs in zip(self.descriptors, other.descriptors, strict=True)
        )


def held(service: Service) -> Held:
    """Return what a service has now; connections, which clients open and close, do not count."""
    now = parts(service)
    connections = {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()}
    descriptors = []
    for pid in (now.master, now.worker, now.zygote):
        targets = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
        descriptors.append(sum(target[8:-1] not in connections for target in targets))
    return Held(len(processes.tree(now.master)), tuple(descriptors))


def health(service: Service) -> Any:
    return service.request("GET", "/health").json()


def connect(service: Service) -> socket.socket:
    host, port = service.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def question() -> tuple[dict[str, Any], str]:
    """Return a message that nobody sent in the last minute, and the answer to it."""
    number = next(users)
    user = {"id": number, "is_bot": False, "first_name": "Ada"}
    return message(f"{number}+1", **{"from": user}), f"{number + 1} = {number}+1"


def is_right(service: Service) -> bool:
    """Whether a program is answered now; an answer that is wrong is a failure at once."""
    asked, expected = question()
    try:
        response = service.request("POST", "/message", asked)
    except urllib3.exceptions.HTTPError:
        return False
    text = response.json().get("text", "") if response.status == 200 else ""
    assert " = " not in text or text == expected
    return bool(text == expected)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def overload() -> float:
    """By how much longer things may take on a machine that has more to do than it has cores."""
    return max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def eventually(condition: Callable[[], object], seconds: float = 10) -> None:
    """Return when it is true; fail where that takes longer."""
    deadline = time.monotonic() + seconds * overload()
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)
