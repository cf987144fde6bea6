"""What the service needs of the machine, and the sentence for each that it lacks."""

import math
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

THREADS = 64  # that serve; more than may run programs at once, so that no refusal waits for them
MEMORY_MIB = 64  # seen: answers under load with as much; 57 at rest
TASKS = THREADS + 16  # processes and threads; seen besides those that serve: 9 at rest
OTHER_DESCRIPTORS = 192  # besides connections: pipes of guests, calls, files; seen: 60
FEWEST_CONNECTIONS = 64

_CGROUPS = Path("/sys/fs/cgroup")


class Shortage(ValueError):
    """The service cannot run here; the text is one line: what is lacking, and how much it needs."""


def connections(most: int) -> int:
    """Return how many connections can be open at once, after raising the limit of descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + OTHER_DESCRIPTORS
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(FEWEST_CONNECTIONS, min(most, soft - OTHER_DESCRIPTORS))


def check() -> None:
    """Raise Shortage where the limits of this process or its control group are too low."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files < (fewest := OTHER_DESCRIPTORS + FEWEST_CONNECTIONS):
        raise Shortage(
            f"only {files} files may be open: allow at least {fewest}"
            " (ulimit -n, LimitNOFILE of systemd, --ulimit nofile of docker)"
        )
    memory = min(_limits("memory", "memory.max", "memory.limit_in_bytes"), default=math.inf)
    if memory < MEMORY_MIB << 20:
        raise Shortage(
            f"only {int(memory) >> 20} MiB of memory may be used: allow at least {MEMORY_MIB}, and"
            " what programs may use (rlimits.address_space_mib of the policy, for each at once)"
        )
    if min(_limits("pids", "pids.max"), default=math.inf) < TASKS:
        raise too_few_tasks()


def too_few_tasks() -> Shortage:
    """Return what to say where no further thread or process can be started."""
    return Shortage(
        f"too few processes and threads may be started: allow at least {TASKS}, and twice the"
        " policy's concurrent and prepared guests (--pids-limit of docker, TasksMax of systemd,"
        " podPidsLimit of Kubernetes, ulimit -u)"
    )


def _limits(controller: str, *names: str) -> Iterator[int]:
    """The limits of this process's control group, of version 1 or 2, and of those above it."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            root = _CGROUPS / controller if controllers else _CGROUPS
            group = root / path.lstrip("/")
            for folder in (group, *group.parents[: len(group.parts) - len(root.parts)]):
                for name in names:
                    with suppress(OSError, ValueError):  # not there; "max"
                        yield int((folder / name).read_text())
