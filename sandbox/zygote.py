"""The fork server: one clean, single-threaded process that prepares guests.

Started by exec with one argument, the descriptor of a SOCK_SEQPACKET socket to the function.
Messages on it:
- in, once: the configuration as JSON (`sandbox.generation` writes it);
- out, once: `{"layers": {...}}`, or `{"failed": layer, "reason": text}` and the process ends;
- out, per prepared guest: its number, with four descriptors: where to write the program, where
  its output and its report can be read, and where this process will say how it ended;
- in, per guest: its number when it was taken, from when on it has `wall_seconds`;
- end of file: no more guests are wanted; those that run may finish within their time.

The prepared guests wait inside the socket, so whoever receives from it has one, without a hop.
A guest whose end nobody waits for any more is killed: it was answered, or the function has died.
No secret is ever in this process. Standard library only, and little of it: each guest pays for the
memory here, so that no dataclasses are in what this process loads (they bring 1.2 MiB).
"""

import base64
import contextlib
import ctypes
import fcntl
import gc
import importlib
import itertools
import json
import os
import random
import select
import signal
import socket
import struct
import sys
import time
import warnings
from collections import deque
from typing import Any, NoReturn

if __name__ == "__main__":  # started with -I, which leaves the script's folder out of sys.path
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from sandbox import confine, guest, landlock

GUEST = struct.Struct("=I")
# How a guest ended: wait status, whether its time was up, user and system seconds, peak KiB.
ENDING = struct.Struct("=i?ddq")

# While half of the guests are ready, another is prepared only when nothing has happened for so
# long: a fork at once would take the core that the program just started needs.
_CALM_SECONDS = 0.004

# Modules that the interpreter imports on its own while a program runs; loaded once, here.
_LAZY = ("_strptime", "_pylong", "unicodedata")


# fork(2) as libc has it. os.fork() also repairs locks and threads in the child, which this process
# of one thread does not need, and which more than doubles a guest's page faults and price.
_fork = ctypes.PyDLL(None).fork


class _Child:
    def __init__(self, number: int, pid: int, slot: int, status: int) -> None:
        self.number = number
        self.pid = pid
        self.slot = slot
        self.status = status
        self.deadline: float | None = None
        self.timed_out = False


class _ForkServer:
    def __init__(self, control: socket.socket, config: dict[str, Any]) -> None:
        self.control = control
        self.config = config
        self.world = _world(config)
        self.rlimits = tuple((which, limit) for which, limit in config["rlimits"])
        self.filter = base64.b64decode(config["filter"]) if config["filter"] else None
        self.ruleset: tuple[int, int] | None = None
        self.steps: list[tuple[confine.Step, ...]] = []  # by slot
        self.random_sources = [o for o in gc.get_objects() if isinstance(o, random.Random)]
        self.numbers = itertools.count()
        self.slots = deque(range(config["uid_count"]))  # one uid each, reused as late as possible
        self.children: dict[int, _Child] = {}  # by pidfd
        self.awaited: dict[int, int] = {}  # the pidfd by status pipe, while someone can read that
        self.idle = 0
        self.poll = select.epoll()

    def install_layers(self) -> dict[str, str]:
        """Enter what guests inherit, try a whole guest, and return what is in force, by layer.

        An empty text means absent. Raises confine.LayerError.
        """
        readable = _readable_paths(self.config["readable_paths"])
        in_force = {"rlimits": f"{len(self.rlimits)} limits", "no_new_privs": "set"}
        in_force["seccomp"] = f"{len(self.filter) // 8} instructions" if self.filter else ""
        if self.config["namespaces"]:
            confine.enter_namespaces(readable)
            in_force["namespaces"] = "network, mount, PID, IPC, UTS"
        abi = landlock.abi() if self.config["landlock"] else 0
        if abi:
            self.ruleset = landlock.create_ruleset(readable, abi), abi
            in_force["landlock"] = f"ABI {abi}"
        if self.config["uid"] and os.geteuid() == 0:
            first = self.config["first_uid"]
            in_force["uid"] = f"{first} to {first + self.config['uid_count'] - 1}"
        self.steps = [confine.prepare(self._layers(slot)) for slot in self.slots]
        self._try_a_guest()
        return in_force

    def _try_a_guest(self) -> None:
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(theirs, 1)
            try:
                confine.take(self.steps[0])
                os.write(1, b"{}")
            except confine.LayerError as error:
                os.write(1, json.dumps({"layer": error.layer, "reason": str(error)}).encode())
            finally:
                os._exit(0)
        os.close(theirs)
        report = os.read(ours, 1 << 16)
        os.close(ours)
        _, status = os.waitpid(pid, 0)
        if report != b"{}":
            failed = json.loads(report or b"{}")
            raise confine.LayerError(
                failed.get("layer", "guest"), failed.get("reason", f"wait status {status}")
            )

    def _layers(self, slot: int) -> confine.Layers:
        uid = None
        if self.config["uid"] and os.geteuid() == 0:
            uid = self.config["first_uid"] + slot
        return confine.Layers(self.rlimits, uid, self.ruleset, self.filter)

    def serve(self) -> None:
        """Prepare guests and report their ends until nobody wants more and the last is gone."""
        self.control.setblocking(False)
        control = self.control.fileno()
        self.poll.register(control, select.EPOLLIN)
        wanted = True
        while wanted or self.children:
            while wanted and self.idle <= self.config["prepared"] // 2 and self.slots:
                if not self._prepare():
                    break
            is_short = wanted and self.idle < self.config["prepared"] and bool(self.slots)
            events = self.poll.poll(self._patience(_CALM_SECONDS if is_short else None))
            if is_short and not events:
                self._prepare()
            for descriptor, _ in events:
                if descriptor in self.children:
                    self._reap(descriptor)
                elif descriptor in self.awaited:
                    self._abandon(descriptor)
                elif descriptor != control:
                    continue  # of a guest that was reaped in this very turn
                elif not self._read_control():
                    wanted = False
                    self.poll.unregister(control)
                    self.control.close()
                    for child in self.children.values():
                        self._start_clock(child)
            self._end_the_late()

    def _patience(self, longest: float | None) -> float | None:
        now = time.monotonic()
        deadlines = [c.deadline - now for c in self.children.values() if c.deadline is not None]
        if longest is not None:
            deadlines.append(longest)
        return max(0.0, min(deadlines)) if deadlines else None

    def _read_control(self) -> bool:
        while True:
            try:
                message = self.control.recv(GUEST.size)
            except BlockingIOError:
                return True
            except ConnectionResetError:
                return False
            if not message:
                return False
            [number] = GUEST.unpack(message)
            self.idle -= 1
            for child in self.children.values():
                if child.number == number:
                    self._start_clock(child)

    def _start_clock(self, child: _Child) -> None:
        if child.deadline is None:
            child.deadline = time.monotonic() + self.config["wall_seconds"]

    def _end_the_late(self) -> None:
        now = time.monotonic()
        for pidfd, child in self.children.items():
            if child.deadline is not None and child.deadline <= now:
                child.deadline = None
                child.timed_out = True
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    def _prepare(self) -> bool:
        """Fork a guest and hand it out; return whether another one may be tried now."""
        number, slot = next(self.numbers), self.slots.popleft()
        program, give_program = os.pipe()
        take_output, output = os.pipe()
        take_report, report = os.pipe()
        take_status, status = os.pipe()
        for descriptor in (output, take_output, report, take_report):
            os.set_blocking(descriptor, False)
        # Twice the limit, for a page of a pipe may stay half empty. Where the user's budget for
        # pipes is spent (pipe(7)), output is cut earlier.
        with contextlib.suppress(OSError):
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, 2 * self.config["output_bytes"])
        pid = _fork()
        if pid == 0:
            self._become_guest(slot, (program, output, report))
        for descriptor in (program, output, report):
            os.close(descriptor)
        handed = (give_program, take_output, take_report, take_status)
        try:
            if pid < 0:  # no process is left: those that run may end, and leave theirs
                os.close(status)
                self.slots.append(slot)
                return False
            pidfd = os.pidfd_open(pid)
            self.children[pidfd] = _Child(number, pid, slot, status)
            self.poll.register(pidfd, select.EPOLLIN)
            self.awaited[status] = pidfd
            self.poll.register(status, 0)  # an error is told unasked: no reader is left, pipe(7)
            socket.send_fds(self.control, [GUEST.pack(number)], list(handed))
            self.idle += 1
            return True
        except OSError:
            return False  # the function is gone, or holds no more; the guest ends by itself
        finally:
            for descriptor in handed:
                os.close(descriptor)

    def _become_guest(self, slot: int, descriptors: tuple[int, int, int]) -> NoReturn:
        try:
            sys.stdin = sys.stderr = None
            for target, descriptor in enumerate(descriptors):
                os.dup2(descriptor, target)
            confine.take(self.steps[slot])
            for source in self.random_sources:
                source.seed()
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.seed()
            gc.enable()
            guest.main(self.world)
        except BaseException as error:
            guest.end(guest.NOT_CONFINED, f"{type(error).__name__}: {error}")

    def _abandon(self, status: int) -> None:
        self.poll.unregister(status)
        signal.pidfd_send_signal(self.awaited.pop(status), signal.SIGKILL)

    def _reap(self, pidfd: int) -> None:
        child = self.children.pop(pidfd)
        if self.awaited.pop(child.status, None) is not None:
            self.poll.unregister(child.status)
        self.poll.unregister(pidfd)
        os.close(pidfd)
        _, status, usage = os.wait4(child.pid, 0)
        ending = ENDING.pack(
            status, child.timed_out, usage.ru_utime, usage.ru_stime, usage.ru_maxrss
        )
        with contextlib.suppress(BrokenPipeError):  # it was answered, and nobody waits for this
            os.write(child.status, ending)
        os.close(child.status)
        self.slots.append(child.slot)


def _world(config: dict[str, Any]) -> guest.World:
    modules = {name: importlib.import_module(name) for name in config["allowed_imports"]}
    for name in _LAZY:
        with contextlib.suppress(ImportError):  # not in every version of Python
            importlib.import_module(name)
    return guest.prepare(
        preloaded={name: modules[module] for name, module in config["preloaded"].items()},
        removed=config["dangerous_names"],
        allowed=frozenset(modules),
        output_bytes=config["output_bytes"],
    )


def _readable_paths(paths: list[str]) -> list[str]:
    """Return the policy's readable paths, with `@python` as the folders that imports read."""
    found: list[str] = []
    for path in paths:
        found += [entry for entry in sys.path if entry] if path == "@python" else [path]
    return found


def main() -> None:
    """Serve the function on the socket whose descriptor is the only argument."""
    control = socket.socket(fileno=int(sys.argv[1]))
    config = json.loads(control.recv(1 << 20))
    sys.path.pop(0)  # guests import nothing from the project
    sys.set_int_max_str_digits(0)  # CPU is bounded in the guest, so length need not be
    warnings.simplefilter("ignore")
    gc.disable()
    try:
        server = _ForkServer(control, config)
        report: dict[str, Any] = {"layers": server.install_layers()}
    except confine.LayerError as error:
        report = {"failed": error.layer, "reason": str(error)}
    except Exception as error:
        report = {"failed": "zygote", "reason": f"{type(error).__name__}: {error}"}
    gc.collect()
    gc.freeze()
    control.send(json.dumps(report).encode())
    if "failed" not in report:
        server.serve()


if __name__ == "__main__":
    main()
