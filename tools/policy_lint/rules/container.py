"""The rule of compose.yml beside the policy: its container has room for what the limits allow.

container-too-small (warning): The container of compose.yml has less than programs may need
    Where memory or processes run out, some fail or are ended, and the service may be among them;
    where CPU time does, benign programs meet wall_seconds; where it is stopped too soon, those in
    flight get no answer. Read are the limits of each service that mounts the policy, in compose.yml
    beside it, with the defaults of its variables.
    Example: concurrent_guests: 8 where compose.yml has `memory: 2560M`
    Cure: Write at most what the message says, or give the container more.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sandbox.fork_server.zygote_process import longest_answer_seconds
from sandbox.policy.document import At, Finding
from sandbox.policy.loader import Policy
from tools.policy_lint.subject import Subject

FILE = "compose.yml"
SERVICE_MIB = 256  # what the service itself needs, with room: it was seen to take 85
SERVICE_PIDS = 128  # its processes and threads; seen: 77, and 32 more with DELIVERY=api
STOP_SECONDS = 2  # what a graceful shutdown needs beyond the longest answer
_DEFAULT_STOP_SECONDS = 10  # of the engine
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

Most = dict[At, float]  # the most that each of these numbers may be, for the others as they are


@dataclass(frozen=True)
class Container:
    """The limits of a service in compose.yml; infinite where it has none."""

    memory_mib: float
    pids: float
    cpus: float
    stop_seconds: float


def check(subject: Subject) -> Iterator[Finding]:
    """Limits of the policy that are beyond those of the container."""
    policy = subject.policy
    assert policy
    for container in containers(subject.path):
        for what, most in _shortages(container, policy):
            for at, number in most.items():
                if number >= 1:
                    message = f"{FILE} gives the container {what}"
                    yield subject.at_number(
                        "container-too-small", at, message, f"write at most {int(number)}"
                    )


def _shortages(container: Container, policy: Policy) -> Iterator[tuple[str, Most]]:
    """What a container has too little of, and what the policy may then allow."""
    guests, prepared = policy.limits.concurrent_guests, policy.limits.prepared_guests
    wall, cpu = policy.limits.wall_seconds, policy.rlimits.cpu_seconds
    each = policy.rlimits.address_space_mib
    concurrent_at: At = ("limits", "concurrent_guests")
    room = container.memory_mib - SERVICE_MIB
    if guests * each > room:
        what = f"{container.memory_mib:g} MiB, and programs may need {guests * each + SERVICE_MIB}"
        yield what, {concurrent_at: room / each, ("rlimits", "address_space_mib"): room / guests}
    room = (container.pids - SERVICE_PIDS) / 2  # while the zygote is replaced there are two
    if guests + prepared > room:
        needed = 2 * (guests + prepared) + SERVICE_PIDS
        what = f"{container.pids:g} processes and threads, and there may be {needed}"
        prepared_at: At = ("limits", "prepared_guests")
        yield what, {concurrent_at: room - prepared, prepared_at: room - guests}
    room = container.cpus * wall
    if guests * cpu > room:
        what = f"{container.cpus:g} CPUs, and {wall} s of them are not {guests} times {cpu} s"
        yield what, {concurrent_at: room / cpu, ("rlimits", "cpu_seconds"): room / guests}
    late = math.ceil(longest_answer_seconds(policy)) + STOP_SECONDS - container.stop_seconds
    if late > 0:
        what = f"{container.stop_seconds:g} s to stop in, and an answer may take {late:g} s more"
        queue = policy.limits.queue_seconds
        yield (
            what,
            {
                ("limits", "wall_seconds"): wall - math.ceil(late / 2),
                ("limits", "queue_seconds"): queue - late,
            },
        )


def containers(policy: Path) -> Iterator[Container]:
    """The limits of each service that mounts the policy; none where the file makes no sense."""
    try:
        text = (policy.parent / FILE).read_text(encoding="utf-8")
        services = yaml.safe_load(re.sub(r"\$\{\w+:?-([^}]*)\}", r"\1", text))["services"]
        for service in services.values():
            if policy.name in str(service.get("volumes")):
                limits = service.get("deploy", {}).get("resources", {}).get("limits", {})
                memory = _mib(limits["memory"]) if "memory" in limits else math.inf
                pids, cpus = (float(limits.get(name, math.inf)) for name in ("pids", "cpus"))
                stop = _seconds(service.get("stop_grace_period", f"{_DEFAULT_STOP_SECONDS}s"))
                yield Container(memory, pids, cpus, stop)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError):
        return


def _mib(size: object) -> float:
    """Read a size as https://docs.docker.com/reference/compose-file/extension/ has it: 2560M."""
    number, unit = re.findall(r"([\d.]+)\s*([bkmg]?)b?$", str(size).lower())[0]
    return float(number) * _UNITS[unit] / (1 << 20)


def _seconds(duration: Any) -> float:
    """Read a duration as compose files have it: 1m30s."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6}
    parts = re.findall(r"(\d+(?:\.\d+)?)(h|ms|us|m|s)", str(duration))
    return sum(float(number) * units[unit] for number, unit in parts)
