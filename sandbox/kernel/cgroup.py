"""A memory cgroup for a zygote and its guests, where one can be had: cgroups(7).

It bounds what rlimits do not count, such as page tables and other memory of the kernel, for all
guests together, and what it holds ends with it. One group, as to move each guest into one of its
own would cost more than the guest. It is made below the group of the calling process, so that the
limits of that one hold as well.
"""

import contextlib
import itertools
import os
import time
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")
_PREFIX = "calcubot-"
_SERVICE = "calcubot-service"  # where the processes go that would be in the way of a group (v2)
_REMOVAL_SECONDS = 2.0  # for guests to be gone after their zygote

_numbers = itertools.count()


def limit_memory(pid: int, limit_bytes: int, mount: Path = _MOUNT) -> Path | None:
    """Move a process, and the children that it will have, into a new group with a limit.

    Returns the group's folder; None where none can be had.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, own = line.split(":", 2)
            if "memory" in controllers.split(","):
                return _limit(pid, mount / "memory", own, "memory.limit_in_bytes", limit_bytes)
            if not controllers and "memory" in (mount / "cgroup.controllers").read_text().split():
                return _limit(pid, mount, own, "memory.max", limit_bytes)
    return None


def remove(group: Path) -> None:
    """Remove a group as soon as its last process has ended."""
    deadline = time.monotonic() + _REMOVAL_SECONDS
    while time.monotonic() < deadline:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:  # busy
            time.sleep(0.02)


def _limit(pid: int, hierarchy: Path, own: str, limit_file: str, limit_bytes: int) -> Path:
    parent = hierarchy / own.lstrip("/")
    if not parent.is_dir():  # a container that sees its own group as the root, but not by name
        parent = hierarchy
    if parent.name == _SERVICE:
        parent = parent.parent
    if limit_file == "memory.max":
        _delegate_memory(parent, is_root=own in ("/", f"/{_SERVICE}"))
    for left in parent.glob(f"{_PREFIX}*-*"):  # by a service that was killed
        if not Path(f"/proc/{left.name.split('-')[1]}").exists():
            with contextlib.suppress(OSError):
                left.rmdir()
    group = parent / f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
    group.mkdir()
    try:
        (group / limit_file).write_text(str(limit_bytes))
        (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        group.rmdir()
        raise
    return group


def _delegate_memory(parent: Path, *, is_root: bool) -> None:
    """Let the groups below one have limits. A group that has them holds no process itself (v2)."""
    control = parent / "cgroup.subtree_control"
    if "memory" in control.read_text().split():
        return
    try:
        control.write_text("+memory")
    except OSError:
        if not is_root:  # its processes are not all ours
            raise
        service = parent / _SERVICE
        service.mkdir(exist_ok=True)
        for pid in (parent / "cgroup.procs").read_text().split():
            (service / "cgroup.procs").write_text(pid)
        control.write_text("+memory")
