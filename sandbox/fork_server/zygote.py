"""The zygote: one clean, single-threaded process that forks the guests.

    function (gunicorn worker: holds the token, runs no program)
       | exec with a clean environment; a socket
    zygote: imports the policy's modules, enters namespaces, rehearses, then
       | forks; each child confines itself and waits         <- prepared guests
       |     function sends it one program; it runs, reports and ends
       +---- and is replaced by another

`protocol.py` has the messages between them. Prepared guests wait inside the socket, so whoever
receives from it has one without asking. A guest whose end nobody waits for any more is killed: it
has reported, or the function has died. No secret is ever in this process.

What a guest costs is the pages that it copies, about 2 us each. So (page faults of a guest, and
figures in us of CPU on two cores of an EPYC; tests/performance/README.md has the whole):
- fork(2) is libc's, as os.fork() repairs locks of threads that are not here, and what a guest calls
  to confine itself is prepared with its arguments: 643 faults -> 427;
- the zygote rehearses `2+2` until the interpreter has specialised its code (PEP 659), which no
  guest then does again; a child returns from `serve` and `main`, as to unwind their frames in a
  callee would copy them; little is imported: 420 -> 300;
- it rehearses with the output and the report of a program, which lead nowhere in it, and so does a
  guest before it confines itself: 270 -> 255;
- random generators are seeded before the fork: 100 to 240 us less in a guest, 50 more here;
- before the first fork all objects are made immortal, from Python 3.12 on (`immortal.py`);
- fcntl, wait4 and write are libc's, without modules and exceptions: 105 faults of the zygote's own
  -> 80.
Standard library only, and little of it: socket and typing are not loaded.
"""

from __future__ import annotations

import _random
import _socket
import builtins
import ctypes
import gc
import importlib
import json
import math
import os
import random
import resource
import select
import signal
import struct
import sys
import time
import warnings

from sandbox.fork_server import guest, protocol
from sandbox.fork_server.immortal import make_immortal
from sandbox.fork_server.module_views import module_views
from sandbox.fork_server.stand_ins import lean_import
from sandbox.kernel import confine, landlock
from sandbox.kernel.libc import libc

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DESCRIPTORS = struct.Struct("@4i")

# While half of the guests are ready, another is prepared only when nothing has happened for so
# long: a fork at once would take the core that the program just started needs.
_CALM_SECONDS = 0.004

# How often the clocks of running guests are read: a program that ends before costs nothing.
_WATCH_SECONDS = 0.1

_MOST_EVENTS = 8  # at once; room for all that there may be is 12 KiB, and three pages
_REHEARSALS = 50  # enough for the interpreter to specialise the code
_WARM_UPS = 3  # more gain nothing
_FIRST = protocol.pack_program(0, "", "2+2", "")  # what every guest runs first
_NO_STEPS = (("rehearsal", os.getpid, ()),) * 8

# Modules that the interpreter imports on its own while a program runs, which opens no file; text
# encodings among them, for 20 KiB each.
_ENCODINGS = (
    *("ascii", "cp437", "cp866", "cp1251", "cp1252", "koi8_r", "latin_1", "punycode"),
    *("unicode_escape", "utf_7", "utf_8_sig", "utf_16", "utf_16_be", "utf_16_le", "utf_32"),
)
_LAZY = ("_strptime", "_pylong", "unicodedata", *(f"encodings.{name}" for name in _ENCODINGS))


_fork = ctypes.PyDLL(None).fork
# os.wait4 imports a module at each call, and an exception costs: 14 page faults, and 8.
_fcntl, _wait4, _write = libc.fcntl, libc.wait4, libc.write
_F_SETPIPE_SZ = 1031  # fcntl(2)
_F_SETFL, _F_SETOWN, _F_SETSIG = 4, 8, 10
_START_CPU_SECONDS = 60


class _Child:
    __slots__ = ("deadline", "ended_for", "number", "pid", "pidfd", "status")

    def __init__(self, number: int, pid: int, pidfd: int, status: int) -> None:
        self.number = number
        self.pid = pid
        self.pidfd = pidfd
        self.status = status
        self.deadline = 0.0  # until it has a program
        self.ended_for = protocol.NOT_BY_ZYGOTE


class _Zygote:
    def __init__(self, control: _socket.socket, config: protocol.Configuration) -> None:
        self.control = control
        self.config = config
        self.process = -1
        if config["has_libraries"]:  # later there is no /proc
            self.process = os.open("/proc/self", os.O_RDONLY)
        if config["namespaces"]:  # before imports: their first process keeps what memory there is
            confine.enter_namespaces()
        self.world = _world(config)
        self.prelude_names: list[str] = []
        self.filter = bytes.fromhex(config["filter"]) or None
        self.rlimits = tuple((which, limit) for which, limit in config["rlimits"])
        self.ruleset: tuple[int, int] | None = None
        self.steps: list[tuple[confine.Step, ...]] = []  # by identity
        self.random_sources: list[random.Random] = []
        self.random_states: list[ctypes.Array[ctypes.c_char]] = []
        # By identity, which is the number modulo their count: one uid each, from the first.
        self.children: dict[int, _Child] = {}
        self.by_descriptor: dict[int, _Child] = {}  # pidfd; and status pipe, while that is read
        self.next_number = self.prepared = self.running = 0
        # Twice the output's limit, as a page of a pipe may stay half empty; at most what pipe(7)
        # gives everybody. Pictures that do not fit are left out.
        self.pipe_bytes = min(2 * config["output_bytes"] + config["picture_bytes"], 1 << 20)
        self.watch_at = 0.0  # when to read the clocks of those that run
        self.poll = select.epoll()
        self.ended = (ctypes.c_int * 1)()  # how the last one did, wait4(2)
        self.usage = (ctypes.c_long * 18)()  # and what it used, as in getrusage(2)
        self.next = (0, 0, 0, 0)  # of the guest that is forked: identity, program, output, report

    def know_no_guest(self) -> None:
        """Forget the other guests, in a guest, so that no escaped program finds them."""
        self.children.clear()  # themselves they may be immortal
        self.by_descriptor.clear()
        self.next_number = self.prepared = self.running = 0

    def warm_up(self) -> None:
        """Run the policy's own programs, each in a guest first, and what every guest runs."""
        steps = self._steps(0, bytes.fromhex(self.config["warm_up_filter"]))
        self.prelude_names = run_prelude(
            self.world, self.config, lambda program: self._try_a_guest(steps, "prelude", program)
        )
        for program in self.config["warm_up"]:
            self._try_a_guest(steps, "warm_up", program)
        warm_up = self.config["warm_up"] * _WARM_UPS
        for program in (*warm_up, *[("", "2+2")] * _REHEARSALS):
            _rehearse("warm_up", program, self.world.main.__dict__.copy(), self.world)
            confine.apply(_NO_STEPS)
        if self.config["has_libraries"]:
            from sandbox.fork_server import libraries

            libraries.forget_drawing()
            known = {self.control.fileno(), self.poll.fileno(), *(self.ruleset or ())[:1]}
            if files := libraries.open_files(self.process, known):
                raise confine.LayerError("warm_up", f"files are left open: {', '.join(files)}")
            self.random_states = libraries.random_states()
            libraries.join_pages(self.process)
            os.close(self.process)
        self.random_sources = [o for o in gc.get_objects() if isinstance(o, random.Random)]
        self._seed()

    def install_layers(self) -> dict[str, str]:
        """Enter what guests inherit, try a whole guest, and return what is in force, by layer.

        An empty text means absent. Raises confine.LayerError.
        """
        readable = _readable_paths(self.config["readable_paths"])
        in_force = {"rlimits": f"{len(self.rlimits)} limits", "no_new_privs": "set"}
        in_force["seccomp"] = f"{len(self.filter) // 8} instructions" if self.filter else ""
        if self.config["namespaces"]:
            confine.hide_files(readable)
            in_force["namespaces"] = "network, mount, PID, IPC, UTS"
        abi = landlock.abi() if self.config["landlock"] else 0
        if abi:
            self.ruleset = landlock.create_ruleset(readable, abi), abi
            in_force["landlock"] = f"ABI {abi}"
        if self.config["uid"] and os.geteuid() == 0:
            first = self.config["first_uid"]
            in_force["uid"] = f"{first} to {first + self.config['uid_count'] - 1}"
        self.steps = [self._steps(n, self.filter) for n in range(self.config["uid_count"])]
        self._try_a_guest(self.steps[0])
        return in_force

    def _try_a_guest(
        self,
        steps: tuple[confine.Step, ...],
        layer: str = "guest",
        program: tuple[str, str] | None = None,
    ) -> None:
        """Confine a guest, and run a program in it, which its limits end. Raises LayerError."""
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(theirs, 3)
            try:
                signal.alarm(math.ceil(self.config["wall_seconds"]))
                confine.apply(steps)
                if program:
                    names = self.world.main.__dict__.copy()
                    _rehearse(layer, program, names, self.world)
                os.write(3, b"{}")
            except confine.LayerError as error:
                os.write(3, json.dumps({"layer": error.layer, "reason": error.reason}).encode())
            finally:
                os._exit(0)
        os.close(theirs)
        report = os.read(ours, 1 << 16)
        os.close(ours)
        _, status = os.waitpid(pid, 0)
        if report != b"{}":
            failed = json.loads(report or b"{}")
            reason = f"wait status {status}"
            if program:
                reason = (
                    f"{program[0] or program[1]!r}: it did not end within its limits ({reason})"
                )
            raise confine.LayerError(failed.get("layer", layer), failed.get("reason", reason))

    def _steps(self, identity: int, denied: bytes | None) -> tuple[confine.Step, ...]:
        uid = None
        if self.config["uid"] and os.geteuid() == 0:
            uid = self.config["first_uid"] + identity
        return confine.prepare(self.rlimits, uid, self.ruleset, denied)

    def serve(self) -> bool:
        """Prepare guests and report their ends until nobody wants more and the last is gone.

        Then returns False; in a guest, which must confine itself first of all, True.
        """
        self.control.setblocking(False)
        control = self.control.fileno()
        self.poll.register(control, select.EPOLLIN)
        prepared, most = self.config["prepared"], self.config["uid_count"]
        wanted = True
        while wanted or self.children:
            while wanted and self.prepared <= prepared // 2 and len(self.children) < most:
                if (forked := self._prepare()) == 0:
                    return True
                if forked < 0:
                    break
            is_short = wanted and self.prepared < prepared and len(self.children) < most
            events = self.poll.poll(self._timeout(is_short), _MOST_EVENTS)
            if is_short and not events and self._prepare() == 0:
                return True
            for descriptor, _ in events:
                if descriptor in self.by_descriptor:
                    self._hear(descriptor)
                elif descriptor == control and not self._read_control():
                    wanted = False
                    self.poll.unregister(control)
                    self.control.close()
                    for child in self.children.values():
                        if not child.deadline:
                            self._start_clock(child.number)
            if self.running:
                self._watch()
        return False

    def _timeout(self, is_short: bool) -> float:
        """Seconds to wait for events; -1 means for ever."""
        if not self.running:
            return _CALM_SECONDS if is_short else -1
        timeout = max(0.0, self.watch_at - time.monotonic())
        return min(timeout, _CALM_SECONDS) if is_short else timeout

    def _read_control(self) -> bool:
        """Read the one message that epoll told of; False at the end."""
        try:
            message = self.control.recv(protocol.GUEST.size)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        if message:
            self._start_clock(*protocol.GUEST.unpack(message))
        return bool(message)

    def _start_clock(self, number: int) -> None:
        self.prepared -= 1
        child = self.children.get(number % self.config["uid_count"])
        if child and child.number == number:  # it may be dead already
            now = time.monotonic()
            if not self.running:
                self.watch_at = now + _WATCH_SECONDS
            self.running += 1
            child.deadline = now + self.config["wall_seconds"]

    def _watch(self) -> None:
        """Kill the guests whose time is over, by the wall's clock or by their own.

        RLIMIT_CPU counts timer ticks, which a program can sleep over; the clock of a process, whose
        id is made of its pid (clock_getcpuclockid(3)), is precise.
        """
        now = time.monotonic()
        if now < self.watch_at:
            return
        self.watch_at = now + _WATCH_SECONDS
        for child in self.children.values():
            if not child.deadline or child.ended_for != protocol.NOT_BY_ZYGOTE:
                continue
            if now >= child.deadline:
                child.ended_for = protocol.WALL_TIME_OVER
            elif time.clock_gettime(~child.pid << 3 | 2) >= self.config["cpu_seconds"]:
                child.ended_for = protocol.CPU_TIME_OVER
            else:
                continue
            signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)

    def _prepare(self) -> int:
        """Fork a guest and hand it out.

        Returns 0 in the guest, else 1, or -1 where no other may be tried now.
        """
        number, most = self.next_number, self.config["uid_count"]
        while (identity := number % most) in self.children:  # so it is reused as late as possible
            number += 1
        self.next_number = number + 1
        program, give_program = os.pipe()
        take_output, output = os.pipe2(os.O_NONBLOCK)
        take_report, report = os.pipe2(os.O_NONBLOCK)
        take_status, status = os.pipe()
        # Where the user's budget for pipes is spent (pipe(7)), output is cut earlier.
        _fcntl(output, _F_SETPIPE_SZ, self.pipe_bytes)
        self._seed()
        self.next = identity, program, output, report
        pid = _fork()
        if pid == 0:  # not a step more in code that the zygote has specialised
            return 0
        os.close(program)
        os.close(output)
        os.close(report)
        handed = (give_program, take_output, take_report, take_status)
        try:
            if pid < 0:  # no process is left: those that run may end, and leave theirs
                os.close(status)
                return -1
            pidfd = os.pidfd_open(pid)
            child = self.children[identity] = _Child(number, pid, pidfd, status)
            self.by_descriptor[pidfd] = self.by_descriptor[status] = child
            self.poll.register(pidfd, select.EPOLLIN)
            self.poll.register(status, 0)  # an error is told unasked: no reader is left, pipe(7)
            rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, _DESCRIPTORS.pack(*handed))
            self.control.sendmsg([protocol.GUEST.pack(number)], [rights])
            self.prepared += 1
            return 1
        except OSError:
            return -1  # the function is gone, or holds no more; the guest ends by itself
        finally:
            for descriptor in handed:
                os.close(descriptor)

    def confine(self) -> None:
        """Confine this process, a guest. Aborts it if that cannot be done: it reads no program."""
        identity, program, output, report = self.next
        try:
            os.dup2(1, 2)  # /dev/null
            os.dup2(program, 0)
            os.dup2(output, 1)
            os.dup2(report, 3)  # the socket's or the epoll's until now
            confine.apply(self.steps[identity])
            gc.enable()
        except BaseException:
            os.abort()

    def _seed(self) -> None:
        """Give the next guest random numbers of its own; itself it would copy pages for them."""
        for source in self.random_sources:
            _random.Random.seed(source, int.from_bytes(os.urandom(32)))
        for state in self.random_states:
            state.raw = os.urandom(len(state))

    def _hear(self, descriptor: int) -> None:
        """Kill a guest whose end nobody waits for any more, or reap one."""
        child = self.by_descriptor.pop(descriptor)
        self.poll.unregister(descriptor)
        os.close(descriptor)
        if descriptor == child.status:
            child.status = 0
            signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
            return
        _wait4(child.pid, self.ended, 0, self.usage)
        if child.status:
            del self.by_descriptor[child.status]
            self.poll.unregister(child.status)
            user_s, user_us, system_s, system_us, max_rss_kib = self.usage[:5]
            cpu_seconds = user_s + system_s + (user_us + system_us) / 1e6
            ending = protocol.ENDING.pack(self.ended[0], child.ended_for, cpu_seconds, max_rss_kib)
            _write(child.status, ending, len(ending))  # in vain, if it is answered in this moment
            os.close(child.status)
        del self.children[child.number % self.config["uid_count"]]
        self.running -= bool(child.deadline)


# Kept here, as a guest that freed it would copy all its pages.
_zygote: _Zygote | None = None


def _world(config: protocol.Configuration) -> guest.World:
    views = module_views(config["allowed_imports"], frozenset(config["dangerous_attrs"]))
    for name in _LAZY:
        try:
            lean_import(name)
        except ImportError:  # not in every version of Python
            pass
    show: guest.Show = guest.show_as_print
    if config["has_libraries"]:
        from sandbox.fork_server import display, libraries

        libraries.keep_readable_fonts(_readable_paths(config["readable_paths"]))
        show = display.shows(config["picture_bytes"])
    world = guest.World(config, views, show)
    sys.modules["__main__"], sys.stdout = world.main, world.stdout
    warnings.filterwarnings("always", category=SyntaxWarning)
    warnings.showwarning = guest.note_warning  # type: ignore[assignment]
    return world


def run_prelude(
    world: guest.World, config: protocol.Configuration, attempt: Callable[[tuple[str, str]], None]
) -> list[str]:
    """Run the policy's prelude, each program after an `attempt`; return the names that it adds.

    Those of Python and of `preloaded` stay what they are.
    """
    names = world.main.__dict__
    own = names.copy()
    for program in config["prelude"]:
        attempt(program)
        _rehearse("prelude", program, names, world)
    for name in names.keys() & vars(builtins).keys() - own.keys():
        del names[name]
    names.update(own)
    return sorted(names.keys() - own.keys())


def _rehearse(
    layer: str, program: tuple[str, str], namespace: dict[str, Any], world: guest.World
) -> None:
    if error := guest.rehearse(protocol.pack_program(0, *program, ""), namespace, world):
        raise confine.LayerError(layer, f"{program[0] or program[1]!r}: {error}")


def _readable_paths(paths: list[str]) -> list[str]:
    """Return the policy's readable paths, with `@python` as the folders that imports read."""
    found: list[str] = []
    for path in paths:
        found += [entry for entry in sys.path if entry] if path == "@python" else [path]
    return found


def _become_oom_victim() -> None:
    """Let the kernel choose this process and its guests first when memory runs out: proc(5)."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("1000")
    except OSError:  # then the kernel goes by size alone
        pass


def _end_with_the_function(control: _socket.socket) -> None:
    """Have the kernel kill this process if the socket's other end closes: fcntl(2).

    So whatever a module or a program does while this starts, it does not outlive the function. Not
    prctl(2)'s signal, which comes when the thread ends that started this process.
    """
    _fcntl(control.fileno(), _F_SETOWN, os.getpid())
    _fcntl(control.fileno(), _F_SETSIG, signal.SIGKILL)
    _fcntl(control.fileno(), _F_SETFL, os.O_ASYNC)


def _start(control: _socket.socket) -> _Zygote | None:
    """Return the zygote that the configuration asks for, and report; None where it cannot be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (min(_START_CPU_SECONDS, soft % 2**64), hard))
    config: protocol.Configuration = json.loads(control.recv(1 << 20))
    _end_with_the_function(control)
    if config["has_libraries"]:  # 40 KiB that no other zygote needs
        for name in ("display", "libraries"):
            importlib.import_module(f"sandbox.fork_server.{name}")
    sys.path.pop(0)  # guests import nothing from the project
    sys.set_int_max_str_digits(0)  # CPU is bounded in the guest, so length need not be
    warnings.simplefilter("ignore")
    zygote = None
    try:
        zygote = _Zygote(control, config)
        layers = zygote.install_layers()
        zygote.warm_up()
        report: dict[str, Any] = {"layers": layers, "prelude_names": zygote.prelude_names}
    except confine.LayerError as error:
        report = {"failed": error.layer, "reason": str(error)}
    except Exception as error:
        report = {"failed": "zygote", "reason": f"{type(error).__name__}: {error}"}
    gc.collect()
    make_immortal()
    gc.freeze()
    _fcntl(control.fileno(), _F_SETFL, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    control.send(json.dumps(report).encode())
    return None if "failed" in report else zygote


def main() -> guest.World | None:
    """Serve the function on the socket whose descriptor is the last argument.

    Returns None when it wants no more; in each guest, what its program finds: with these frames
    left, a program cannot walk its own back to what the zygote holds.
    """
    global _zygote
    gc.disable()
    _become_oom_victim()
    _zygote = _start(_socket.socket(fileno=int(sys.argv[-1])))
    if _zygote is None:
        return None
    sys.stdin, sys.stderr = _zygote.world.stdin, _zygote.world.stderr
    try:
        is_guest = _zygote.serve()
    except BaseException:
        sys.stderr = sys.__stderr__  # for the interpreter's last words
        raise
    if is_guest:
        # Makes this process's copies of what a program needs.
        guest.rehearse(_FIRST, _zygote.world.main.__dict__, _zygote.world)
        _zygote.confine()
        _zygote.know_no_guest()
        return _zygote.world
    return None
