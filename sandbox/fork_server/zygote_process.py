"""One policy in force, with the zygote that prepares its guests: the function's side of the socket.

A generation never changes. A new policy, a dead zygote or an old one means a new generation.
"""

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
import termios
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.check.source import parse
from sandbox.fork_server.outcome import KILLED_FROM_OUTSIDE, Outcome, from_ending, from_report
from sandbox.fork_server.request import split
from sandbox.fork_server.zygote import ENDING, GUEST
from sandbox.kernel import seccomp
from sandbox.policy.loader import Policy

_ROOT = Path(__file__).resolve().parents[2]
# Modules, and no script, for these are compiled anew at each start. -I leaves out what the
# environment and the current folder would add.
_ZYGOTE = f"""\
import sys
sys.path.insert(0, {str(_ROOT)!r})
from sandbox.fork_server import guest, zygote
if world := zygote.main():
    guest.main(world)
"""
_START_SECONDS = 30.0
_GUEST_SECONDS = 1.0  # a thousand times what a guest needs to be prepared; a stuck zygote is ended
_GRACE_SECONDS = 10.0  # what a zygote may be late with, on a busy machine, until it counts as stuck
_REPORT_BYTES = 16384

_CURES = {
    "uid": "start as root with the capabilities SETUID, SETGID and KILL",
    "landlock": "use a kernel of 5.13 or newer with landlock in its `lsm=` list",
    "uid or landlock": "start as root with the capabilities SETUID, SETGID and KILL, or use a "
    "kernel of 5.13 or newer with landlock in its `lsm=` list",
    "namespaces": "start as root with the capability SYS_ADMIN, or allow unprivileged user "
    "namespaces, or take namespaces out of required_layers",
    "seccomp": "use a kernel with CONFIG_SECCOMP_FILTER",
    "warm_up": "mend that program in policy.yaml, or delete it",
    "rlimits": "lower the value in policy.yaml below the hard limit that this service has",
}


_BUSY = Outcome("busy", error="too many programs are running; try again in a moment")


class SandboxUnavailable(Exception):
    """The sandbox cannot serve: which layer, why, and what to change."""


class ZygoteGone(Exception):
    """The zygote died or hangs, so that nothing is known of the guest."""


@dataclass(frozen=True)
class _Guest:
    number: int
    program: int
    output: int
    report: int
    status: int

    def give(self, request: bytes) -> None:
        """Write the request and close its pipe, once: a number closed twice is another thread's."""
        try:
            while request:
                request = request[os.write(self.program, request) :]
        finally:
            os.close(self.program)

    def close(self) -> None:
        """Close what `give` leaves open."""
        for descriptor in (self.output, self.report, self.status):
            os.close(descriptor)


def longest_answer_seconds(policy: Policy) -> float:
    """Return how long a program may take from its acceptance to its outcome, under this policy.

    It waits for a slot, runs, and is run once more where the zygote or the system failed it; a
    zygote that has stopped is replaced in between. Whoever shuts down gracefully waits as long.
    """
    limits = policy.limits
    return limits.queue_seconds + 2 * limits.wall_seconds + _GRACE_SECONDS


def rlimits(policy: Policy) -> list[tuple[int, int]]:
    """Return (resource, limit) of each limit that a guest has: the policy's, and four at zero."""
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
    ]


def configuration(policy: Policy) -> dict[str, Any]:
    """Return what a zygote is told, as JSON can hold it: the policy's values and every layer."""
    denied = seccomp.build_filter(policy.denied_syscalls, platform.machine())
    return {
        "allowed_imports": list(policy.allowed_imports),
        "preloaded": dict(policy.preloaded),
        "warm_up": [split(program, parse(program)) for program in policy.warm_up],
        "dangerous_names": sorted(policy.dangerous_names),
        "readable_paths": list(policy.readable_paths),
        "output_bytes": policy.limits.output_bytes,
        "wall_seconds": policy.limits.wall_seconds,
        "prepared": policy.limits.prepared_guests,
        "first_uid": policy.identity.first_uid,
        "uid_count": policy.identity.uid_count,
        "rlimits": rlimits(policy),
        "filter": denied.hex(),
        "uid": True,
        "landlock": True,
        "namespaces": True,
    }


class Generation:
    """A started zygote and the guests that it has prepared; `layers` is what it reported."""

    def __init__(self, policy: Policy, config: Mapping[str, Any] | None = None) -> None:
        """Start the zygote. Raises SandboxUnavailable. Only tests pass a `config` of their own."""
        self.policy = policy
        self.started = time.monotonic()
        self.served = 0
        self.running = 0
        self._waiting = 0
        self._pace = 0.0  # seconds from one place's release to the next, while all are taken
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(policy.limits.concurrent_guests)
        try:
            self.layers = self._start(dict(config or configuration(policy)))
        except OSError as error:
            raise SandboxUnavailable(
                f"the zygote is not there ({error}); cure: allow this service more processes, "
                "descriptors or memory"
            ) from error

    def _start(self, config: dict[str, Any]) -> dict[str, str]:
        report = self._launch(config)
        absent: dict[str, str] = {}
        if report.get("failed") == "namespaces":
            absent["namespaces"] = report["reason"]
            report = self._launch(config | {"namespaces": False})
        if "failed" in report:
            self._refuse(report["failed"], report["reason"])
        layers: dict[str, str] = report["layers"]
        # A policy cannot do without what keeps programs from the secrets.
        for layer in sorted(self.policy.required_layers | {"uid or landlock"}):
            if not any(layers.get(one) for one in layer.split(" or ")):
                self._refuse(layer, absent.get(layer, "this platform has none"))
        return layers

    def _refuse(self, layer: str, reason: str) -> None:
        self.close()
        cure = _CURES.get(layer, "see SECURITY.md for what each layer needs")
        raise SandboxUnavailable(f"layer {layer} is not in force ({reason}); cure: {cure}")

    def _launch(self, config: dict[str, Any]) -> dict[str, Any]:
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
                env=_environment(),
                start_new_session=True,
            )
            undone.pop_all()
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
        report: dict[str, Any] = json.loads(answer)
        if "failed" in report:
            self.close()
        return report

    @property
    def pid(self) -> int:
        """The zygote's process id."""
        return self._process.pid

    @property
    def prepared(self) -> int:
        """How many guests wait inside the socket; one that died there counts until it is taken."""
        if self._process.poll() is not None:
            return 0
        try:
            unread = fcntl.ioctl(self._control, termios.FIONREAD, bytes(4))  # SIOCINQ, unix(7)
        except (OSError, ValueError):  # closed in this moment
            return 0
        return int.from_bytes(unread, sys.byteorder) // GUEST.size

    def run(self, request: bytes, patience: float) -> Outcome:
        """Run one request in a guest of its own.

        `patience` is how many seconds it may wait for a place; if those who wait already will,
        by what programs took lately, need longer, it is busy at once. Raises ZygoteGone.
        """
        with self._lock:
            is_hopeless = self._waiting * self._pace > patience
            self._waiting += not is_hopeless
        if is_hopeless:
            return _BUSY
        has_place = self._places.acquire(timeout=patience)
        with self._lock:
            self._waiting -= 1
            self.running += has_place
            self.served += has_place
        if not has_place:
            return _BUSY
        started = time.monotonic()
        try:
            outcome = self._run(request)
            if outcome.error == KILLED_FROM_OUTSIDE:  # perhaps for another's sake: once more
                outcome = self._run(request)
            return outcome
        finally:
            seconds = time.monotonic() - started
            with self._lock:
                self.running -= 1
                self._pace += (seconds / self.policy.limits.concurrent_guests - self._pace) / 8
            self._places.release()

    def _run(self, request: bytes) -> Outcome:
        started = time.monotonic()
        guest = self._give(request)
        try:
            self._notify_taken(guest.number)
            report = self._wait(guest)
            output = _drain(guest.output, self.policy.limits.output_bytes)
            seconds = time.monotonic() - started
            if report:
                return from_report(report, output, seconds, self.policy)
            ending = os.read(guest.status, ENDING.size)
            if not ending:
                raise ZygoteGone("the zygote ended")
            return from_ending(ending, output, seconds, self.policy)
        finally:
            guest.close()

    def _give(self, request: bytes) -> _Guest:
        """Write the request to a prepared guest, and return that guest."""
        while True:
            guest = self._take()
            try:
                guest.give(request)
                return guest
            except BrokenPipeError:  # it died while it waited; take the next
                guest.close()
                self._notify_taken(guest.number)

    def _take(self) -> _Guest:
        deadline = time.monotonic() + _GUEST_SECONDS
        while True:
            try:
                message, descriptors, _, _ = socket.recv_fds(
                    self._control, GUEST.size, 4, socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._control, select.POLLIN)
                if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                    raise ZygoteGone("no guest was prepared in time") from None
                continue
            except OSError as error:
                raise ZygoteGone(str(error)) from error
            if not message:
                raise ZygoteGone("the zygote ended")
            [number] = GUEST.unpack(message)
            if len(descriptors) == 4:
                return _Guest(number, *descriptors)
            for descriptor in descriptors:  # what remains of the guest ends by itself
                os.close(descriptor)
            self._notify_taken(number)
            raise OSError("no descriptors are left for another guest")

    def _notify_taken(self, number: int) -> None:
        try:
            self._control.send(GUEST.pack(number))
        except OSError as error:
            raise ZygoteGone(str(error)) from error

    def _wait(self, guest: _Guest) -> bytes:
        """Return the guest's report; empty if it ended without one."""
        poll = select.poll()
        poll.register(guest.report, select.POLLIN)
        poll.register(guest.status, select.POLLIN)
        deadline = time.monotonic() + self.policy.limits.wall_seconds + _GRACE_SECONDS
        while True:
            ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not ready:
                self.kill()
                raise ZygoteGone("the zygote did not report in time")
            for descriptor, _ in ready:
                if descriptor == guest.status:
                    return _drain(guest.report, _REPORT_BYTES)
                if report := _drain(guest.report, _REPORT_BYTES):
                    return report
                poll.unregister(guest.report)  # it died; how, the status says

    def kill(self) -> None:
        """End the zygote at once, and with it every guest."""
        self._process.kill()

    def close(self) -> None:
        """Ask for no more guests and see the zygote off; guests that run may finish in time."""
        self._control.close()
        threading.Thread(target=self._see_off, name="zygote-end", daemon=True).start()

    def _see_off(self) -> None:
        try:
            self._process.wait(self.policy.limits.wall_seconds + _GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()


def _environment() -> dict[str, str]:
    """Return the clean environment of zygote and guests.

    The time zone is fixed by file name, so that libc reads it once (tzset(3)), and symbols are
    bound once, not in each guest (ld.so(8)); libraries of linear algebra start no threads, which a
    guest could not have; sympy's caches have no limit, for to keep one they reorder, and copy, what
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
