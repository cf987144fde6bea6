"""What a tree of processes uses, read from /proc (proc(5))."""

import os
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """Return a process and all its descendants, parents first; those that end meanwhile miss."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def started(pid: int) -> int:
    """Return when a process started, in clock ticks since the machine did; 0 if it has ended."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU time of processes and of all the children that they have waited for."""
    return sum(sum(map(int, fields[11:15])) for pid in pids if (fields := _stat(pid))) / _TICKS


def memory_mib(pid: int) -> float:
    """Return a process's proportional set size, or 0 if it has ended.

    A guest is closed to its own user, who learns its private memory alone, with what it shares with
    the process that forked it in full.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    except PermissionError:
        return _private_mib(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def _private_mib(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def descriptors(pid: int) -> int:
    """Return how many descriptors a process has open, or 0 if it has ended or is closed to us."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0


def command_line(pid: int) -> str:
    """Return a process's command line, or nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third, the state, on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
