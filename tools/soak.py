"""Mixes honest, hostile and faulty traffic for an hour, and reports leaks, drift and wrong answers.

Honest programs are those of the corpus whose answer does not depend on time or chance; each must be
answered as it was before the traffic began. Exits with 1 if anything is wrong.
"""

import argparse
import json
import os
import random
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tools import processes
from tools.launch import Service, ask, serving
from tools.serve import ROOT

CORPUS = ROOT / "tests/corpus"
SAMPLE_SECONDS = 5.0
THREADS = {"honest": 3, "hostile": 2, "faulty": 1}
BUSY_ANSWERS = ("Too many", "Your other programs", "You sent many", "Out of order")
DRIFT = 2.0  # times the first quarter's median, which the last quarter's may be
GROWTH_MIB = 12.0

FAULTY = (
    b"",
    b"GET / HTTP/1.1\r\n",
    b"POST /message HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100\r\n\r\n{",
    b"POST /message HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    b"Content-Length: 4\r\n\r\nnull",
    b"POST /webhook HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    b"Content-Length: 99999999999\r\n\r\n",
    b"GET /test HTTP/1.1\r\nHost: a\r\n\r\n" * 20,
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
)


@dataclass(frozen=True)
class Sample:
    """What the service held at one time, and the median of its answers since the last."""

    seconds: float
    processes: int
    descriptors: int
    memory_mib: float
    median_ms: float


@dataclass
class Traffic:
    """What was asked and answered; filled by many threads."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    spans: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: str, wrong: str = "", milliseconds: float | None = None) -> None:
        """Count one request."""
        with self.lock:
            self.counts[kind] += 1
            if wrong:
                self.wrong.append(wrong[:500])
            if milliseconds is not None:
                self.spans.append(milliseconds)

    def median_ms(self) -> float:
        """Return the median time of 2+2 since the last call."""
        with self.lock:
            spans, self.spans = self.spans, []
        return statistics.median(spans) if spans else 0.0


def corpus(name: str) -> list[dict[str, Any]]:
    """Return the rows of one of the tests' corpora."""
    return [json.loads(line) for line in (CORPUS / name).read_text("utf-8").splitlines()]


def steady_answers(port: int) -> dict[str, str]:
    """Return the honest programs that get the same answer twice, with that answer."""
    sources = [row["source"] for row in corpus("benign.jsonl") if "expect_stdout" in row]
    first = {source: ask(port, source) for source in sources}
    return {
        source: answer
        for source, answer in first.items()
        if answer == ask(port, source) and answer and not answer.startswith(BUSY_ANSWERS)
    }


def honest(port: int, traffic: Traffic, chance: random.Random, known: dict[str, str]) -> None:
    """Ask for 2+2 and for a program whose answer is known."""
    sender = chance.randrange(10**6, 10**7)
    begin = time.perf_counter()
    answer = ask(port, "2+2", sender)
    milliseconds = (time.perf_counter() - begin) * 1000
    source, expected = chance.choice(list(known.items()))
    for text, right, got in (
        ("2+2", "4 = 2+2", answer),
        (source, expected, ask(port, source, sender)),
    ):
        if got.startswith(BUSY_ANSWERS):
            traffic.note("refused")
        else:
            traffic.note("honest", "" if got == right else f"{text!r} got {got!r}, not {right!r}")
    traffic.note("timed", milliseconds=milliseconds)


def hostile(port: int, traffic: Traffic, chance: random.Random, attacks: list[str]) -> None:
    """Post a hostile program; whatever it is told, it must not have its way."""
    source = chance.choice(attacks)
    answer = ask(port, source, chance.randrange(100, 200))
    traffic.note("hostile", f"{source!r} got {answer!r}" if "PWNED" in answer else "")


def faulty(port: int, traffic: Traffic, chance: random.Random) -> None:
    """Send what is no proper request, wait a little, and hang up."""
    with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
        try:
            connection.sendall(chance.choice(FAULTY))
            connection.settimeout(chance.random())
            answer = connection.recv(1 << 16)
        except OSError:
            answer = b""
    wrong = answer.startswith(b"HTTP/1.1 500") or b"Traceback" in answer
    traffic.note("faulty", repr(answer) if wrong else "")


def sample(service: Service, begin: float, traffic: Traffic) -> Sample:
    """Return what the service holds now."""
    tree = processes.tree(service.pid)
    return Sample(
        seconds=round(time.monotonic() - begin, 1),
        processes=len(tree),
        descriptors=sum(map(_descriptors, tree)),
        memory_mib=round(sum(map(processes.memory_mib, tree)), 1),
        median_ms=round(traffic.median_ms(), 2),
    )


def _descriptors(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def quiet(service: Service, begin: float, traffic: Traffic) -> Sample:
    """Return what the service holds at rest: the least of the samples of a few seconds."""
    samples = []
    for _ in range(10):
        time.sleep(0.4)
        samples.append(sample(service, begin, traffic))
    return min(samples, key=lambda one: (one.processes, one.descriptors))


def run(minutes: float) -> dict[str, Any]:
    """Do it all and return what was seen, ready for JSON; `problems` is empty if all is well."""
    attacks = [row["source"] for row in corpus("attacks.jsonl") if row.get("run") != "reason-only"]
    traffic, over = Traffic(), threading.Event()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as service:
        begin = time.monotonic()
        known = steady_answers(service.port)
        before = quiet(service, begin, traffic)

        def repeat(kind: str, seed: int) -> None:
            chance = random.Random(seed)  # nosec B311
            while not over.is_set():
                try:
                    if kind == "honest":
                        honest(service.port, traffic, chance, known)
                    elif kind == "hostile":
                        hostile(service.port, traffic, chance, attacks)
                    else:
                        faulty(service.port, traffic, chance)
                except Exception as error:
                    traffic.note("failed", f"{kind}: {error!r}")

        threads = [
            threading.Thread(target=repeat, args=[kind, seed])
            for kind, count in THREADS.items()
            for seed in range(count)
        ]
        for thread in threads:
            thread.start()
        samples = []
        for _ in range(max(1, round(minutes * 60 / SAMPLE_SECONDS))):
            time.sleep(SAMPLE_SECONDS)
            samples.append(sample(service, begin, traffic))
        over.set()
        for thread in threads:
            thread.join()
        after = quiet(service, begin, traffic)
        tracebacks = service.log.read_text(errors="replace").count("Traceback")
    return {
        "minutes": minutes,
        "counts": dict(traffic.counts),
        "before": asdict(before),
        "after": asdict(after),
        "samples": [asdict(one) for one in samples],
        "problems": problems(before, after, samples, tracebacks) + traffic.wrong,
    }


def problems(before: Sample, after: Sample, samples: list[Sample], tracebacks: int) -> list[str]:
    """Return what is wrong with the service's health, one sentence each."""
    quarter = max(1, len(samples) // 4)
    first, last = (
        statistics.median(one.median_ms for one in part)
        for part in (samples[:quarter], samples[-quarter:])
    )
    judgements = {
        f"processes: {before.processes} before, {after.processes} after": (
            after.processes > before.processes
        ),
        f"descriptors: {before.descriptors} before, {after.descriptors} after": (
            after.descriptors > before.descriptors
        ),
        f"memory: {before.memory_mib} MiB before, {after.memory_mib} MiB after": (
            after.memory_mib > before.memory_mib + GROWTH_MIB
        ),
        f"2+2: {first} ms in the first quarter, {last} ms in the last": last > first * DRIFT,
        f"{tracebacks} tracebacks in the log": tracebacks > 0,
    }
    return [sentence for sentence, is_wrong in judgements.items() if is_wrong]


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--json", action="store_true", help="print all that was seen as JSON")
    options = parser.parse_args(arguments)
    seen = run(options.minutes)
    if options.json:
        print(json.dumps(seen, indent=2))
    else:
        print(", ".join(f"{count} {kind}" for kind, count in sorted(seen["counts"].items())))
        for name in ("before", "after"):
            print(f"{name}: " + ", ".join(f"{k} {v}" for k, v in seen[name].items()))
        print(*(f"WRONG: {problem}" for problem in seen["problems"][:20]), sep="\n")
    return 1 if seen["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
