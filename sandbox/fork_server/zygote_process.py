"""The function's side of a zygote: starts it, acquires guests from it, and waits for their ends.

A zygote serves one policy. A new policy, a dead zygote or an old one means a new ZygoteProcess.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import resource
import select
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from sandbox.check.source import parse
from sandbox.fork_server import protocol
from sandbox.fork_server.outcome import Ending, Outcome, Report, outcome_of, read_report
from sandbox.fork_server.program import split
from sandbox.fork_server.slots import Slots
from sandbox.kernel import cgroup, seccomp, syscalls
from sandbox.kernel.layers import CURES, KEEPS_SECRETS
from sandbox.policy.libraries import libraries
from sandbox.policy.loader import Policy

_ROOT = Path(__file__).resolve().parents[2]
# Modules, and no script, as Python compiles a script anew at each start. -I leaves out what the
# environment and the current folder would add.
_ZYGOTE = f"""\
import os, sys
sys.path.insert(0, {str(_ROOT)!r})
from sandbox.fork_server import guest, zygote
if world := zygote.main():
    guest.main(world)
os._exit(0)
"""
_START_SECONDS = 60.0  # with libraries it takes 1.2 s, and 10 times that on a busy machine
_GUEST_SECONDS = 1.0  # a thousand times what a guest needs to be prepared
# How late a zygote may be, on a busy machine, with the end of a program whose time it has over.
# Then it is stuck, and replaced.
_LATE_SECONDS = 5.0

_BUSY = Outcome("busy", error="too many programs are running; try again in a moment")


class SandboxUnavailable(Exception):
    """The sandbox cannot serve: which layer, why, and what to change."""


class ZygoteGone(Exception):
    """The zygote died or is stuck, so that nothing is known of the guest."""


class KilledFromOutside(Exception):
    """The guest was killed early and not for what it did; its program may be run again.

    `outcome` is what there is if it is not.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.error)
        self.outcome = outcome


class _Guest(NamedTuple):
    number: int
    program: int
    output: int
    report: int
    status: int

    def send(self, program: bytes) -> None:
        """Write the program and close its pipe, once: a number closed twice is another thread's."""
        try:
            while program:
                program = program[os.write(self.program, program) :]
        finally:
            os.close(self.program)

    def close(self) -> None:
        """Close what `send` leaves open."""
        for descriptor in (self.output, self.report, self.status):
            os.close(descriptor)


def longest_answer_seconds(policy: Policy) -> float:
    """Return the longest time from a program's acceptance to its outcome, in seconds.

    It waits for a slot, and runs for its wall time, which the zygote keeps; where that is stuck and
    has to be replaced, or the guest is killed from outside, it runs once more. A graceful shutdown
    has to wait as long.
    """
    limits = policy.limits
    return limits.queue_seconds + 2 * (limits.wall_seconds + _LATE_SECONDS)


def rlimits(policy: Policy) -> list[tuple[int, int]]:
    """Return (resource, limit) of each limit that a guest has: the policy's, and five at zero."""
    limits, mib = policy.rlimits, 1 << 20
    return [
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_AS, limits.address_space_mib * mib),
        (resource.RLIMIT_STACK, limits.stack_mib * mib),
        (resource.RLIMIT_FSIZE, limits.file_size_bytes),
        (resource.RLIMIT_CORE, limits.core_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NICE, 0),
        (resource.RLIMIT_RTPRIO, 0),
        (resource.RLIMIT_SIGPENDING, 0),  # counted by user, across namespaces
    ]


def warm_up_denials(policy: Policy) -> frozenset[str]:
    """Return what programs of `warm_up` are denied when they are tried, whatever the policy says.

    All that there is to deny but to read files, as libraries import some modules late; what is read
    is Landlock's to bound, or the uid's.
    """
    everything = syscalls.expand([*syscalls.GROUPS, *seccomp.CONDITIONS])
    reading = syscalls.expand(["@file-read", "mmap(address)"])
    writing = syscalls.expand(["@file-write"])
    return policy.denied_syscalls - reading | everything - reading | writing


def configuration(policy: Policy) -> protocol.Configuration:
    """Return what a zygote is told: the policy's values, and every layer."""
    machine = platform.machine()
    denied = seccomp.build_filter(policy.denied_syscalls, machine)
    return {
        "allowed_imports": {**policy.allowed_imports, "__future__": None},
        "preloaded": dict(policy.preloaded),
        "prelude": [split(program, parse(program)) for program in policy.prelude],
        "warm_up": [split(program, parse(program)) for program in policy.warm_up],
        "has_libraries": bool(libraries(policy)),
        "dangerous_names": sorted(policy.dangerous_names),
        "dangerous_attrs": sorted(policy.dangerous_attrs),
        "readable_paths": list(policy.readable_paths),
        "output_bytes": policy.limits.output_bytes,
        "picture_bytes": policy.limits.picture_bytes,
        "wall_seconds": policy.limits.wall_seconds,
        "cpu_seconds": policy.rlimits.cpu_seconds,
        "prepared": policy.limits.prepared_guests,
        "first_uid": policy.identity.first_uid,
        # More than there can be guests; each takes 3 KB of the zygote, and so of all guests.
        "uid_count": min(policy.identity.uid_count, 10_000),
        "rlimits": rlimits(policy),
        "filter": denied.hex(),
        "warm_up_filter": seccomp.build_filter(warm_up_denials(policy), machine).hex(),
        "uid": True,
        "landlock": True,
        "namespaces": True,
        # A share for each guest, and one for the zygote and the guests that wait.
        "cgroup_mib": policy.rlimits.address_space_mib * (policy.limits.concurrent_guests + 1),
    }


class ZygoteProcess:
    """A started zygote and the guests that it has prepared; `layers` is what it reported."""

    def __init__(
        self,
        policy: Policy,
        config: protocol.Configuration | None = None,
        slots: Slots | None = None,
    ) -> None:
        """Start the zygote, with slots of its own if it does not share another's.

        Raises SandboxUnavailable. Only tests pass a `config` of their own.
        """
        self.policy = policy
        self.prelude_names: frozenset[str] = frozenset()
        self.started = time.monotonic()
        self.served = 0
        self.running = 0
        self.slots = slots or Slots(policy.limits.concurrent_guests)
        self._lock = threading.Lock()
        try:
            self.layers = self._start(config or configuration(policy))
        except OSError as error:
            raise SandboxUnavailable(
                f"the zygote is not there ({error}); cure: allow this service more processes, "
                "descriptors or memory"
            ) from error

    def _start(self, config: protocol.Configuration) -> dict[str, str]:
        answer = self._launch(config)
        absent: dict[str, str] = {}
        if answer.get("failed") == "namespaces":
            absent["namespaces"] = answer["reason"]
            answer = self._launch({**config, "namespaces": False})
        if "failed" in answer:
            self._refuse(answer["failed"], answer["reason"])
        self.prelude_names = frozenset(answer["prelude_names"])
        layers: dict[str, str] = answer["layers"]
        for layer in sorted(self.policy.required_layers | {KEEPS_SECRETS}):
            if not any(layers.get(one) for one in layer.split(" or ")):
                self._refuse(layer, absent.get(layer, "this platform has none"))
        return layers

    def _refuse(self, layer: str, reason: str) -> None:
        self.close()
        if layer in ("prelude", "warm_up"):
            raise SandboxUnavailable(
                f"a program of {layer} cannot run ({reason}); cure: correct or delete it in "
                f"{self.policy.path.name}"
            )
        cure = CURES.get(layer, "see SECURITY.md for what each layer needs")
        raise SandboxUnavailable(f"layer {layer} is not in force ({reason}); cure: {cure}")

    def _launch(self, config: protocol.Configuration) -> dict[str, Any]:
        if not config["has_libraries"]:
            return self._execute(config, _environment())
        # matplotlib insists on a folder of its own to write to; a guest finds none.
        with tempfile.TemporaryDirectory() as folder:
            drawing = {"MPLBACKEND": "agg", "MPLCONFIGDIR": folder}
            return self._execute(config, _environment() | drawing)

    def _execute(
        self, config: protocol.Configuration, environment: dict[str, str]
    ) -> dict[str, Any]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        message = json.dumps(config).encode()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * len(message) + 65536)
        with theirs, contextlib.ExitStack() as undone:
            undone.callback(ours.close)
            # No shell and nothing from outside: our own interpreter and our own file.
            self._process = subprocess.Popen(  # nosec B603
                [sys.executable, "-I", "-c", _ZYGOTE, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=_ROOT,
                env=environment,
                start_new_session=True,
            )
            undone.pop_all()
        limit = config["cgroup_mib"] << 20
        self._group = cgroup.limit_memory(self._process.pid, limit) if limit else None
        ours.settimeout(_START_SECONDS)
        try:
            ours.send(message)
            answer = ours.recv(1 << 16)
        except OSError as error:
            answer = b""
            reason = f"it did not start: {error}"
        else:
            reason = "it ended while it started; its own words are in the log"
        if not answer:
            self.close()
            raise SandboxUnavailable(f"the zygote is not there ({reason})")
        ours.setblocking(False)
        unpacked: dict[str, Any] = json.loads(answer)
        if "failed" in unpacked:
            self.close()
        elif self._group is not None:
            unpacked["layers"]["cgroup"] = f"{config['cgroup_mib']} MiB"
        return unpacked

    @property
    def pid(self) -> int:
        """The zygote's process id."""
        return self._process.pid

    @property
    def prepared(self) -> int:
        """How many guests wait inside the socket; one that died there counts until acquired."""
        if self._process.poll() is not None:
            return 0
        try:
            unread = fcntl.ioctl(self._control, termios.FIONREAD, bytes(4))  # SIOCINQ, unix(7)
        except (OSError, ValueError):  # closed in this moment
            return 0
        return int.from_bytes(unread, sys.byteorder) // protocol.GUEST.size

    def run(self, program: bytes, timeout: float) -> Outcome:
        """Run one program, as `program.encode` returns it, in a guest of its own.

        The outcome is busy where no slot is free within `timeout` seconds, or is expected to be.
        Raises ZygoteGone and KilledFromOutside.
        """
        with self.slots.slot(timeout) as has_slot:
            if not has_slot:
                return _BUSY
            with self._lock:
                self.running += 1
                self.served += 1
            try:
                return self._run(program)
            finally:
                with self._lock:
                    self.running -= 1

    def _run(self, program: bytes) -> Outcome:
        started = time.monotonic()
        guest = self._start_guest(program)
        try:
            self._start_clock(guest)
            word = self._wait(guest)
            limits = self.policy.limits
            output = _drain(guest.output, limits.output_bytes + limits.picture_bytes)
        finally:
            guest.close()
        seconds = time.monotonic() - started
        outcome = outcome_of(word, output, seconds, self.policy)
        is_early = seconds < self.policy.limits.wall_seconds / 2
        if is_early and isinstance(word, Ending) and word.was_killed_from_outside(self.policy):
            raise KilledFromOutside(outcome)
        return outcome

    def _start_guest(self, program: bytes) -> _Guest:
        """Send the program to a prepared guest, and return that guest."""
        for _ in range(self.policy.limits.prepared_guests + 2):
            guest = self._acquire_guest()
            try:
                guest.send(program)
                return guest
            except BrokenPipeError:  # it died while it waited
                guest.close()
                self._start_clock(guest)
        raise ZygoteGone("its guests end before they have a program: they cannot be confined")

    def _acquire_guest(self) -> _Guest:
        deadline = time.monotonic() + _GUEST_SECONDS
        while True:
            try:
                message, descriptors, _, _ = socket.recv_fds(
                    self._control, protocol.GUEST.size, 4, socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                poll = select.poll()
                try:
                    poll.register(self._control, select.POLLIN)
                except ValueError:  # closed in this moment by a reload, which `recv_fds` will tell
                    continue
                if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                    raise ZygoteGone("no guest was prepared in time") from None
                continue
            except OSError as error:
                raise ZygoteGone(str(error)) from error
            if not message:
                raise ZygoteGone("the zygote ended")
            [number] = protocol.GUEST.unpack(message)
            if len(descriptors) == 4:
                return _Guest(number, *descriptors)
            for descriptor in descriptors:  # what remains of the guest ends by itself
                os.close(descriptor)
            self._send(message)
            raise OSError("no descriptors are left for another guest")

    def _start_clock(self, guest: _Guest) -> None:
        self._send(protocol.GUEST.pack(guest.number))

    def _send(self, message: bytes) -> None:
        try:
            self._control.send(message)
        except OSError as error:
            raise ZygoteGone(str(error)) from error

    def _wait(self, guest: _Guest) -> Report | Ending:
        """Return the guest's report, or how it ended without one."""
        poll = select.poll()
        poll.register(guest.report, select.POLLIN)
        poll.register(guest.status, select.POLLIN)
        deadline = time.monotonic() + self.policy.limits.wall_seconds + _LATE_SECONDS
        while True:
            ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not ready:
                self.kill()
                raise ZygoteGone("the zygote did not report in time")
            for descriptor, _ in ready:
                if report := _drain(guest.report, protocol.REPORT_BYTES):
                    return read_report(report, self.policy)
                if descriptor == guest.status:
                    ending = os.read(guest.status, protocol.ENDING.size)
                    if len(ending) < protocol.ENDING.size:
                        raise ZygoteGone("the zygote ended")
                    return Ending(*protocol.ENDING.unpack(ending))
                poll.unregister(guest.report)  # it ended; how, the status says

    def kill(self) -> None:
        """End the zygote at once, and with it every guest."""
        self._process.kill()

    def close(self) -> None:
        """Want no more guests; the zygote ends when those that run have ended, in their time."""
        self._control.close()
        seconds = self.policy.limits.wall_seconds + _LATE_SECONDS
        ends = self._process, self._group, seconds
        # No daemon: what is left of the zygote is removed before this process ends.
        threading.Thread(target=_wait_for_end, args=ends, name="zygote-end").start()


def _wait_for_end(process: subprocess.Popen[bytes], group: Path | None, seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if group is not None:
        cgroup.remove(group)


def _environment() -> dict[str, str]:
    """Return the clean environment of zygote and guests.

    The time zone is fixed by file name, so that libc reads it once (tzset(3)), and symbols are
    bound once, not in each guest (ld.so(8)); libraries of linear algebra start no threads, which a
    guest could not have; sympy's caches have no limit, as to keep one they reorder, and copy, what
    guests share. HOME is a name for programs that ask; nothing can be written there.
    """
    return {
        "PATH": os.defpath,
        "HOME": "/tmp",  # nosec B108
        "PYTHONBREAKPOINT": "0",
        "TZ": os.environ.get("TZ", ":/etc/localtime"),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "SYMPY_CACHE_SIZE": "None",
        "LD_BIND_NOW": "1",
    }


def _drain(descriptor: int, limit: int) -> bytes:
    """Return what is in a pipe now, at most `limit` bytes; its other end may still be open."""
    try:
        return os.read(descriptor, limit)  # all of it: a read ends where the pipe is empty
    except BlockingIOError:
        return b""
