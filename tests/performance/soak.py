"""Mixes benign, hostile and faulty traffic against a service of its own, and finds what wears out.

Exits with 1 if an answer was wrong, a hostile program reached what it wanted, processes,
descriptors or memory were left behind, or answers became slower; with 2 if it could not run.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import os
import random
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.performance import processes, progress
from tests.performance.launch import Service, serving
from tools.serve import EXAMPLE

# What is asked, and the whole answer; N is another number each time, M the one after it.
BENIGN = (
    ("N+1", "M = N+1"),
    ("import math\nmath.isqrt(N * N) + 1", "M"),
    ("for i in range(3): print(i + N - 2)", None),
    ("sum(range(N)) - sum(range(N - 1)) + 2", "M = sum(range(N)) - sum(range(N - 1)) + 2"),
    ("[n for n in range(N + 2) if n > N][0]", "M = [n for n in range(N + 2) if n > N][0]"),
    ("1/0 if N else 2", "ZeroDivisionError: division by zero"),
)
# Programs that take all they may or try what is not allowed; REACHED is in no right answer.
HOSTILE = (
    "while True: pass",
    "[0] * 10**12",
    "x = []\nwhile True: x.append('y' * 10**6)",
    "while True: print('z' * 1000)",
    "9**9**9",
    "def f(): return f()\nf()",
    "import os\nprint('REACHED', os.getpid())",
    "().__class__.__base__.__subclasses__()\nprint('REACHED')",
    "open('/etc/passwd').read()\nprint('REACHED')",
    "'(' * 5000",
    "(" * 5000,
    "re.match('(a+)+$', 'a' * 40 + 'b')",
)
# Sent as they are; the connection is then cut.
FAULTY = (
    b"",
    b"POST /message HTTP/1.1\r\nHost: x\r\nContent-Le",
    b"POST /message HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
    b"POST /message HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n{",
    b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n" + b"x" * 10_000,
)
USERS = itertools.cycle(range(1, 5000))  # more than may ask within a minute by the policy
MEMORY_MIB = 15.0  # what may be held beyond the beginning: caches, never a zygote with its guests
QUIET_REQUESTS = 200
REST_SECONDS = 3.0  # in which what runs ends, and guests are prepared again
REPAIR_SECONDS = 10.0  # in which connections may break after the worker was killed


@dataclass
class Tally:
    """What came back so far, from all threads."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    worker_killed: float = -REPAIR_SECONDS

    def note(self, kind: str, wrong: str = "") -> None:
        """Count one request, with what was wrong about its answer."""
        self.counts[kind] += 1
        if wrong:
            self.counts["wrong"] += 1
            self.wrong.append(wrong[:500])


@dataclass(frozen=True)
class Reading:
    """What a service holds while nobody asks, and how quick the quickest tenth of answers is then.

    A median would tell of the machine's other work.
    """

    processes: int
    descriptors: int
    memory_mib: float
    quick_ms: float


def ask(port: int, text: str) -> str:
    """Ask a program of the next user and return the reply. Raises OSError or HTTPException."""
    person = EXAMPLE["from"] | {"id": next(USERS)}
    body = json.dumps(EXAMPLE | {"from": person, "text": text})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/message", body, {"Content-Type": "application/json"})
        return str(json.loads(connection.getresponse().read()).get("text"))
    finally:
        connection.close()


def benign(port: int, tally: Tally) -> None:
    """Ask what has one right answer."""
    number = random.randrange(100, 10_000)  # nosec B311
    question, answer = (
        text and text.replace("N", str(number)).replace("M", str(number + 1))
        for text in random.choice(BENIGN)  # nosec B311
    )
    expected = answer or "\n".join(str(number - 2 + i) for i in range(3))
    reply = ask(port, question or "")
    if "Too many programs" in reply:
        return tally.note("refused")
    return tally.note("benign", "" if reply.startswith(expected) else f"{question!r}: {reply!r}")


def hostile(port: int, tally: Tally) -> None:
    """Ask what must end within its limits, having reached nothing."""
    program = random.choice(HOSTILE)  # nosec B311
    reply = ask(port, program)
    tally.note("hostile", f"{program!r}: {reply!r}" if "REACHED" in reply[:20] else "")


def faulty(port: int, tally: Tally) -> None:
    """Send what is no request, or half of one, and go away."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(random.choice(FAULTY))  # nosec B311
        time.sleep(random.random() / 10)  # nosec B311
    tally.note("faulty")


def go_on(act: Callable[[int, Tally], None], service: Service, tally: Tally, end: float) -> None:
    """Act again and again; what breaks is a wrong answer unless the worker was just killed."""
    while time.monotonic() < end:
        try:
            act(service.port, tally)
        except (OSError, ValueError, http.client.HTTPException) as error:
            is_excused = act is faulty or time.monotonic() < tally.worker_killed + REPAIR_SECONDS
            tally.note("broken", "" if is_excused else f"{act.__name__}: {error!r}")
            time.sleep(0.1)


def kill_in_turn(service: Service, tally: Tally, end: float, pause: float) -> None:
    """Kill a guest, the zygote, the worker, and begin anew."""
    for victim in itertools.cycle(("guest", "zygote", "worker")):
        if time.monotonic() + pause > end:
            return
        time.sleep(pause)
        while len(zygotes := _zygote_and_guests(service)) < 3:  # one is about to start
            if time.monotonic() > end:
                return
            time.sleep(0.05)
        if victim == "worker":
            tally.worker_killed = time.monotonic()
        worker = processes.tree(service.pid)[1]
        pid = {"guest": zygotes[-1], "zygote": zygotes[0], "worker": worker}[victim]
        with contextlib.suppress(ProcessLookupError):  # a guest that has just ended
            os.kill(pid, signal.SIGKILL)
            tally.note(f"killed {victim}")


def _zygote_and_guests(service: Service) -> list[int]:
    tree = processes.tree(service.pid)
    return [pid for pid in tree if "zygote.main" in processes.command_line(pid)]


def read(service: Service) -> Reading:
    """Wait until the service is at rest, and return what it holds then."""
    spans = []
    for _ in range(QUIET_REQUESTS):
        begin = time.perf_counter()
        ask(service.port, "2+2")
        spans.append((time.perf_counter() - begin) * 1000)
    time.sleep(REST_SECONDS)
    tree = processes.tree(service.pid)
    descriptors = sum(map(processes.descriptors, tree))
    memory = sum(map(processes.memory_mib, tree))
    return Reading(len(tree), descriptors, memory, statistics.quantiles(spans, n=10)[0])


def findings(first: Reading, last: Reading, tally: Tally) -> list[str]:
    """Return one line for everything that should not be."""
    found = [f"wrong answer: {answer}" for answer in tally.wrong[:10]]
    if last.processes > first.processes:
        found.append(f"processes left: {first.processes} at first, {last.processes} at last")
    if last.descriptors > first.descriptors:
        found.append(f"descriptors left: {first.descriptors} at first, {last.descriptors} at last")
    if last.memory_mib > first.memory_mib + MEMORY_MIB:
        found.append(f"memory left: {first.memory_mib:.1f} MiB, then {last.memory_mib:.1f} MiB")
    if last.quick_ms > 2 * first.quick_ms + 1:
        found.append(
            f"slower: a tenth came within {first.quick_ms:.2f} ms, then {last.quick_ms:.2f} ms"
        )
    if not tally.counts["benign"]:
        found.append("no benign program was answered at all")
    return found


def soak(service: Service, seconds: float) -> dict[str, Any]:
    """Load a service for so long and return what came of it, ready for JSON."""
    tally = Tally()
    warm = min(seconds / 10, 60.0)
    _drive(service, tally, warm, kills=1)
    first = read(service)
    _drive(service, tally, seconds - warm, kills=max(3, round(seconds / 60)))
    last = read(service)
    return {
        "seconds": seconds,
        "counts": dict(sorted(tally.counts.items())),
        "first": asdict(first),
        "last": asdict(last),
        "findings": findings(first, last, tally),
    }


def _drive(service: Service, tally: Tally, seconds: float, kills: int) -> None:
    end = time.monotonic() + seconds
    acts = [benign, benign, benign, hostile, hostile, faulty]
    threads = [threading.Thread(target=go_on, args=[act, service, tally, end]) for act in acts]
    pause = seconds / (kills + 1)
    threads.append(threading.Thread(target=kill_in_turn, args=[service, tally, end, pause]))
    for thread in threads:
        thread.start()
    while (left := end - time.monotonic()) > 0:
        wrong = len(tally.wrong)
        progress.show(f"{left:.0f} s to go, {sum(tally.counts.values())} requests, {wrong} wrong")
        time.sleep(min(left, 1.0))
    progress.show("")
    for thread in threads:
        thread.join()


def report(result: dict[str, Any]) -> str:
    """Return the result as text for people."""
    lines = [f"{name:14} {count:9}" for name, count in result["counts"].items()]
    for name in ("first", "last"):
        held = ", ".join(
            f"{key.replace('_', ' ')} {value:.4g}" for key, value in result[name].items()
        )
        lines.append(f"at {name}: {held}")
    lines += result["findings"] or ["nothing found"]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Soak, print, and return the exit status."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(arguments)
    if options.minutes <= 0:
        parser.error("--minutes must be more than 0")
    with tempfile.TemporaryDirectory() as name:
        try:
            with serving(Path(name)) as service:
                result = soak(service, options.minutes * 60)
        except SystemExit as error:  # it does not start, or answers wrongly from the beginning
            print(error, file=sys.stderr)
            return 2
    print(json.dumps(result, indent=2) if options.json else report(result))
    return 1 if result["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
