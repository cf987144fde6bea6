"""The rule of compose.yml and tools/kubernetes.yaml: a container has room for what limits allow.

container-too-small (warning): The container that runs the bot has less than programs may need
    Where memory or processes run out, some fail or are ended, and the service may be among them;
    where CPU time does, benign programs meet wall_seconds; where it is stopped too soon, those in
    flight get no answer. Read are the limits of each container that has the policy, in compose.yml
    and tools/kubernetes.yaml beside it, with the defaults of variables.
    Example: concurrent_guests: 8 where compose.yml has `memory: 2560M`
    Cure: Write at most what the message says, or give the container more.
"""

import contextlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sandbox.fork_server.zygote_process import longest_answer_seconds
from sandbox.policy.document import At
from tools.policy_lint.subject import Findings, Policy, Subject

SERVICE_MIB = 256  # what the service itself needs, with room: it was seen to take 85
SERVICE_PIDS = 128  # its processes and threads; seen: 77, and 32 more with DELIVERY=api
STOP_SECONDS = 2  # what a graceful shutdown needs beyond the longest answer
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 10 times as fast, where it is there


@dataclass(frozen=True)
class Container:
    """The limits of a container in a file; infinite where it has none."""

    file: str
    memory_mib: float
    pids: float
    cpus: float
    stop_seconds: float


def check(subject: Subject, policy: Policy) -> Findings:
    """Limits of the policy that are beyond those of a container."""
    for container in containers(subject.document.path):
        for what, most in _shortages(container, policy):
            message = f"{container.file} gives the container {what}"
            yield from subject.at_most("container-too-small", message, most)


def _shortages(container: Container, policy: Policy) -> Iterator[tuple[str, dict[At, float]]]:
    """What a container has too little of, and the most that each number may be with the others."""
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
        prepared_at = ("limits", "prepared_guests")
        yield what, {concurrent_at: room - prepared, prepared_at: room - guests}
    room = container.cpus * wall
    if guests * cpu > room:
        what = f"{container.cpus:g} CPUs, and {wall} s of them are not {guests} times {cpu} s"
        yield what, {concurrent_at: room / cpu, ("rlimits", "cpu_seconds"): room / guests}
    late = math.ceil(longest_answer_seconds(policy)) + STOP_SECONDS - container.stop_seconds
    if late > 0:
        what = f"{container.stop_seconds:g} s to stop in, and an answer may take {late:g} s more"
        wall_at, queue_at = ("limits", "wall_seconds"), ("limits", "queue_seconds")
        queue = policy.limits.queue_seconds
        yield what, {wall_at: wall - math.ceil(late / 2), queue_at: queue - late}


def containers(policy: Path) -> Iterator[Container]:
    """The limits of each container that has the policy; none where a file makes no sense."""
    for name, read in (("compose.yml", _composed), ("tools/kubernetes.yaml", _orchestrated)):
        with contextlib.suppress(
            OSError, ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError
        ):
            text = (policy.parent / name).read_text("utf-8")
            text = re.sub(r"\$\{\w+:?-([^}]*)\}", r"\1", text)
            for document in yaml.load_all(text, _LOADER):  # nosec B506  both are safe loaders
                for limits in read(document, policy.name):
                    yield Container(name, *limits)


def _composed(document: Any, policy: str) -> Iterator[tuple[float, float, float, float]]:
    """Limits as https://docs.docker.com/reference/compose-file/ has them."""
    for service in document["services"].values():
        if policy in str(service.get("volumes")):
            limits = service.get("deploy", {}).get("resources", {}).get("limits", {})
            pids, cpus = (float(limits.get(name, math.inf)) for name in ("pids", "cpus"))
            stop = service.get("stop_grace_period", "10s")
            yield _mib(limits.get("memory")), pids, cpus, _seconds(stop)


def _orchestrated(document: Any, policy: str) -> Iterator[tuple[float, float, float, float]]:
    """Limits as a pod of Kubernetes has them; what is before the signal to stop counts as lost."""
    pod = document.get("spec", {}).get("template", {}).get("spec", {})
    for container in pod.get("containers", ()):
        if policy in str(container.get("env")):
            limits = container.get("resources", {}).get("limits", {})
            cpus = str(limits.get("cpu", "inf"))
            milli = 1000 if cpus.endswith("m") else 1
            slept = re.search(r"sleep\D+(\d+)", str(container.get("lifecycle")))
            stop = pod.get("terminationGracePeriodSeconds", 30) - int(slept[1] if slept else 0)
            yield _mib(limits.get("memory")), math.inf, float(cpus.rstrip("m")) / milli, stop


def _mib(size: object) -> float:
    """Read a size such as 2560M or 2560Mi."""
    if size is None:
        return math.inf
    number, unit = re.findall(r"([\d.]+)\s*([bkmg]?)i?b?$", str(size).lower())[0]
    return float(number) * _UNITS[unit] / (1 << 20)


def _seconds(duration: object) -> float:
    """Read a duration such as 1m30s."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6}
    parts = re.findall(r"(\d+(?:\.\d+)?)(h|ms|us|m|s)", str(duration))
    return sum(float(number) * units[unit] for number, unit in parts)
