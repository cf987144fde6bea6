"""Measures the real service against its floor and its alternative, in one run and in turn.

The floor: an empty endpoint of the same server, and a plain spawn of /bin/true. The alternative:
the same service with a new interpreter for every program. Exits with 1 if any answer is wrong.
"""

import argparse
import json
import math
import os
import platform
import random
import statistics
import subprocess  # nosec B404
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sandbox.check.checker import check
from sandbox.policy.loader import Policy, load_policy
from tests.performance import load, processes, progress
from tests.performance.launch import Service, serving
from tests.performance.load import USER, Job, Sample
from tools import serve

CONNECTIONS = (1, 8, 64)
GUESTS = 8
CHECKS = 100  # a round
PROGRAM = """\
from collections import Counter
from fractions import Fraction
import statistics

def primes(limit):
    sieve = [True] * (limit + 1)
    for number in range(2, int(limit ** 0.5) + 1):
        if sieve[number]:
            for multiple in range(number * number, limit + 1, number):
                sieve[multiple] = False
    return [n for n in range(2, limit + 1) if sieve[n]]

def payment(principal, rate, months):
    monthly = rate / 12
    return principal * monthly / (1 - (1 + monthly) ** -months)

found = primes(200)
print(len(found), sum(found))
print(f"{payment(200_000, 0.045, 360):.2f}")

words = "the quick brown fox jumps over the lazy dog by the river".split()
print(Counter(words).most_common(1))
print(sum(Fraction(1, n) for n in range(1, 8)))

rows = [[row * column for column in range(1, 6)] for row in range(1, 6)]
for row in rows:
    print(*row)
print(statistics.median(found), statistics.mean(found[:10]))
total = sum(map(sum, rows))
[total, max(map(max, rows))]
"""


@dataclass(frozen=True)
class Question:
    """One thing to measure: what is posted where, and what every answer must hold."""

    name: str
    path: str
    body: str
    expected: str
    pause: float = 0.0  # seconds after each answer


def message(text: str) -> str:
    """Return the body of a message whose user the client numbers."""
    person = serve.EXAMPLE["from"] | {"id": "USER"}
    chat = serve.EXAMPLE["chat"] | {"id": "USER"}
    return numbered(serve.EXAMPLE | {"from": person, "chat": chat, "text": text})


def numbered(fields: dict[str, Any]) -> str:
    """Return JSON with each "USER" as the number that the client replaces."""
    return json.dumps(fields).replace('"USER"', "1" + USER.decode())


EMPTY = Question("empty endpoint", "/test", "", '"ok"')
SHORT = Question("2+2", "/message", message("2+2"), "4 = 2+2")
LONG = Question("30 lines", "/message", message(PROGRAM), "[225, 25]")
INLINE = Question(
    "inline 2+2",
    "/inline",
    numbered({"from_user_id": "USER", "inline_query_id": "1", "query": "2+2"}),
    "4 = 2+2",
)

# As people ask: a guest is prepared again before the next question. Without a pause, one connection
# measures how fast guests can be prepared.
PAUSED = [replace(one, name=f"{one.name}, paused", pause=0.02) for one in (SHORT, EMPTY)]
BUSY = Question("busy", "/message", message("for i in range(10**9): pass"), "")


def job(question: Question, port: int, connections: int, seconds: float, requests: int = 0) -> Job:
    """Return what the client is to do."""
    where = ("127.0.0.1", port, question.path, question.body, question.expected)
    return Job(*where, connections, seconds, requests or 1 << 60, question.pause)


def drive(todo: Job) -> Sample:
    """Run the client in a process of its own."""
    client = [sys.executable, "-I", load.__file__]
    result = subprocess.run(  # nosec B603
        client, input=json.dumps(asdict(todo)), capture_output=True, text=True, check=True
    )
    return Sample(**json.loads(result.stdout))


def spawn_ms(command: list[str], times: int) -> float:
    """Return the median time to start a program and wait for its end, in milliseconds."""
    spans = []
    for _ in range(times):
        begin = time.perf_counter()
        os.waitpid(os.posix_spawn(command[0], command, {}), 0)  # nosec B606
        spans.append((time.perf_counter() - begin) * 1000)
    return statistics.median(spans)


def long_programs(policy: Policy) -> list[str]:
    """Return texts that are nearly as long as a program may be, of benign ones from the tests."""
    corpus = serve.ROOT / "tests/corpus/benign.jsonl"
    sources = [json.loads(line)["source"] for line in corpus.read_text("utf-8").splitlines()]
    benign = [source for source in sources if not check(source, policy)]
    chance = random.Random(1)  # nosec B311: the same texts in every run
    texts = []
    for _ in range(CHECKS):
        text = ""
        for program in chance.sample(benign, len(benign)):
            longer = f"{text}{program}\n"
            text = longer if len(longer.encode()) <= policy.limits.source_bytes else text
        texts.append(text)
    return texts


def check_ms(sources: list[str], policy: Policy) -> list[float]:
    """Return the CPU time that the checker takes for each program, in milliseconds."""
    spans = []
    for source in sources:
        begin = time.thread_time()
        check(source, policy)
        spans.append((time.thread_time() - begin) * 1000)
    return spans


def maths_ms() -> dict[str, tuple[float, float]]:
    """Return the CPU times of maths.py; the service's own environment has no sympy."""
    command = [sys.executable]
    if find_spec("sympy") is None:
        command = [str(serve.ROOT / "tools/python"), "--lock", "tests/requirements.txt"]
    command += ["-m", "tests.performance.maths"]
    environment = os.environ | {"PYTHONPATH": str(serve.ROOT)}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)  # nosec B603
    times: dict[str, tuple[float, float]] = json.loads(done.stdout)
    return times


def p99(ordered: list[float]) -> float:
    """Return the 99th percentile of sorted numbers; NaN of none."""
    return ordered[len(ordered) * 99 // 100] if ordered else math.nan


@dataclass
class Series:
    """One question at one number of connections, over all rounds."""

    service: str
    question: Question
    connections: int
    samples: list[Sample] = field(default_factory=list)
    cpu_seconds: float = 0.0

    def measure(self, service: Service, seconds: float) -> None:
        """Add one round."""
        before = processes.cpu_seconds(processes.tree(service.pid))
        todo = job(self.question, service.port, self.connections, seconds)
        self.samples.append(drive(todo))
        self.cpu_seconds += processes.cpu_seconds(processes.tree(service.pid)) - before

    def figures(self) -> dict[str, Any]:
        """Return what is printed: medians, 99th percentiles, rates, CPU, refused and wrong."""
        spans = sorted(ms for sample in self.samples for ms in sample.milliseconds)
        wrong = [answer for sample in self.samples for answer in sample.wrong]
        refused = sum(sample.refused for sample in self.samples)
        asked = len(spans) + refused + len(wrong)
        return {
            "service": self.service,
            "question": self.question.name,
            "connections": self.connections,
            "median_ms": statistics.median(spans) if spans else math.nan,
            "p99_ms": p99(spans),
            "per_second": len(spans) / sum(sample.seconds for sample in self.samples),
            "cpu_ms": self.cpu_seconds * 1000 / asked,
            "answers": len(spans),
            "refused": refused,
            "wrong": wrong,
        }


def memory(service: Service) -> dict[str, float]:
    """Return MiB of proportional set size: idle, of a prepared guest, and added by a running one.

    A running guest is one of several that compute at the same time, until their CPU limit.
    """
    time.sleep(1)
    idle = _guests_and_total(service)
    askers = [
        threading.Thread(target=load.run, args=[job(BUSY, service.port, 1, 0, 1)])
        for _ in range(GUESTS)
    ]
    for asker in askers:
        asker.start()
    time.sleep(1)
    busy = _guests_and_total(service)
    for asker in askers:
        asker.join()
    return {
        "idle_mib": idle[1],
        "prepared_guest_mib": idle[0],
        "running_guest_mib": busy[0],
        "added_by_each_running_guest_mib": (busy[1] - idle[1]) / GUESTS,
    }


def _guests_and_total(service: Service) -> tuple[float, float]:
    """Return the median guest's memory and that of the whole service."""
    tree = processes.tree(service.pid)
    zygote = next(pid for pid in tree if "zygote.main" in processes.command_line(pid))
    guests = [processes.memory_mib(pid) for pid in processes.tree(zygote)[1:]]
    return statistics.median(guests), sum(map(processes.memory_mib, tree))


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    cpus = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = {line.partition(":")[2].strip() for line in cpus if line.startswith("model name")}
    return {
        "cpu": ", ".join(sorted(models)) or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
    }


def run(rounds: int, seconds: float, connections: tuple[int, ...]) -> dict[str, Any]:
    """Measure everything and return it, ready for JSON."""
    spawns = 20 * rounds
    bare_python = [sys.executable, "-I", "-S", "-c", "pass"]
    true_ms, python_ms, checks_ms = [], [], []
    maths: list[dict[str, tuple[float, float]]] = []
    policy = load_policy(serve.ROOT / "policy.yaml")
    programs = long_programs(policy)
    with (
        tempfile.TemporaryDirectory() as name,
        serving(Path(name)) as real,
        serving(Path(name), "tests.performance.baseline:get_app()") as baseline,
    ):
        figures = memory(real)
        launches = [real.launch_seconds]
        plan = [
            *((real, Series("real", q, n)) for q in (SHORT, LONG, INLINE) for n in connections),
            *((real, Series("real", EMPTY, n)) for n in connections),
            *((real, Series("real", question, 1)) for question in PAUSED),
            *((baseline, Series("baseline", SHORT, n)) for n in connections),
        ]
        for number in range(rounds):
            for service, series in plan:
                what = f"{series.service}, {series.question.name}, {series.connections} at once"
                progress.show(f"round {number + 1} of {rounds}: {what}")
                series.measure(service, seconds)
            progress.show(f"round {number + 1} of {rounds}: starts, checks, algebra")
            true_ms.append(spawn_ms(["/bin/true"], spawns))
            python_ms.append(spawn_ms(bare_python, spawns))
            checks_ms += check_ms(programs, policy)
            maths.append(maths_ms())
            with serving(Path(name)) as another:
                launches.append(another.launch_seconds)
        progress.show("")
    result = {
        "machine": machine(),
        "series": [series.figures() for _, series in plan],
        "spawn_true_ms": statistics.median(true_ms),
        "bare_interpreter_ms": statistics.median(python_ms),
        "launch_ms": statistics.median(launches) * 1000,
        "checker": {
            "source_bytes": policy.limits.source_bytes,
            "median_ms": statistics.median(checks_ms),
            "p99_ms": p99(sorted(checks_ms)),
        },
        "maths": {
            name: {
                "ms": statistics.median(one[name][0] for one in maths),
                "baseline_ms": statistics.median(one[name][1] for one in maths),
            }
            for name in maths[0]
        },
        "memory": figures,
    }
    return result | {"ratios": ratios(result)}


def ratios(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the figures that the project is held to: each with its bound, `<=` or `>=`."""
    series = {
        (row["service"], row["question"], row["connections"]): row for row in result["series"]
    }
    one, eight = series["real", SHORT.name, 1], series["real", SHORT.name, 8]
    floor = series["real", EMPTY.name, 1]["median_ms"] + result["spawn_true_ms"]
    paused, paused_empty = (series["real", question.name, 1] for question in PAUSED)
    paused_floor = paused_empty["median_ms"] + result["spawn_true_ms"]
    slow_one, slow_eight = (series["baseline", SHORT.name, n] for n in (1, 8))
    memory_used = result["memory"]
    rows = [
        ("2+2 / (empty endpoint + /bin/true)", one["median_ms"] / floor, "<=", 1),
        ("the same, paused", paused["median_ms"] / paused_floor, "<=", 1),
        ("interpreter each time / 2+2", slow_one["median_ms"] / one["median_ms"], ">=", 40),
        ("requests/s at 8, times", eight["per_second"] / slow_eight["per_second"], ">=", 15),
        ("p99 / median at 8", eight["p99_ms"] / eight["median_ms"], "<=", 5),
        (
            "launch / bare interpreter",
            result["launch_ms"] / result["bare_interpreter_ms"],
            "<=",
            60,
        ),
        *(
            (f"interpreter each time / {name}", row["baseline_ms"] / row["ms"], ">=", bound)
            for (name, row), bound in zip(result["maths"].items(), (30, 20, 20, 5), strict=True)
        ),
        ("the longest programs' check, p99 ms", result["checker"]["p99_ms"], "<=", 50),
        ("idle service, MiB", memory_used["idle_mib"], "<=", 80),
        ("one more guest, MiB", memory_used["added_by_each_running_guest_mib"], "<=", 3),
    ]
    return [
        {
            "name": name,
            "value": value,
            "bound": f"{sign} {bound}",
            "met": value <= bound if sign == "<=" else value >= bound,
        }
        for name, value, sign, bound in rows
    ]


def report(result: dict[str, Any]) -> str:
    """Return the result as text for people."""
    about, checker = result["machine"], result["checker"]
    user = "root" if about["root"] else "a plain user"
    lines = [
        (
            f"{about['cpu']}, {about['cores']} cores, Linux {about['kernel']}, "
            f"Python {about['python']}, as {user}"
        ),
        "",
        (
            f"{'service':9} {'question':22} {'conn':>4} {'median ms':>10} {'p99 ms':>9} "
            f"{'answers/s':>10} {'CPU ms':>7} {'refused':>8} {'wrong':>6}"
        ),
    ]
    lines += [
        f"{row['service']:9} {row['question']:22} {row['connections']:4} {row['median_ms']:10.3f} "
        f"{row['p99_ms']:9.3f} {row['per_second']:10.1f} {row['cpu_ms']:7.3f} "
        f"{row['refused']:8} {len(row['wrong']):6}"
        for row in result["series"]
    ]
    lines += [
        "",
        (
            f"spawn of /bin/true {result['spawn_true_ms']:.3f} ms, bare interpreter "
            f"{result['bare_interpreter_ms']:.1f} ms, launch to first answer "
            f"{result['launch_ms']:.0f} ms"
        ),
        *(
            f"{name} by a library {row['ms']:.1f} ms of CPU time, "
            f"with an interpreter each time {row['baseline_ms']:.0f} ms"
            for name, row in result["maths"].items()
        ),
        (
            f"check of {checker['source_bytes']} bytes {checker['median_ms']:.1f} ms, "
            f"99th percentile {checker['p99_ms']:.1f} ms"
        ),
        *(f"{name.replace('_', ' ')}: {value:.2f}" for name, value in result["memory"].items()),
        "",
        *(
            f"{'met' if row['met'] else 'MISSED':6} {row['name']:36} {row['value']:8.2f} "
            f"{row['bound']}"
            for row in result["ratios"]
        ),
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status: 1 if any answer was wrong."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--quick", action="store_true", help="one short round: does it all run?")
    parser.add_argument("--rounds", type=int, default=5, help="of 15 samples each (default: 5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="a sample (default: 1)")
    options = parser.parse_args(arguments)
    if options.quick:
        result = run(rounds=1, seconds=0.1, connections=CONNECTIONS[:2])
    else:
        result = run(options.rounds, options.seconds, CONNECTIONS)
    print(json.dumps(result, indent=2) if options.json else report(result))
    wrong = [answer for row in result["series"] for answer in row["wrong"]]
    for answer in wrong[:3]:
        print(f"Wrong answer: {answer!r}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
