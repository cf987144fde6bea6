import json
import os
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.check.checker import check
from sandbox.policy.loader import Policy
from tests.performance import bench, load, processes
from tools.serve import ROOT


@pytest.mark.timeout(300)
def test_a_quick_run_measures_everything_and_finds_no_answer_wrong(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tests.performance.bench", "--quick", "--json"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout)
    asked = {(row["service"], row["question"]) for row in figures["series"]}
    questions = {"2+2", "30 lines", "inline 2+2", "empty endpoint"}
    questions |= {"2+2, paused", "empty endpoint, paused"}
    assert asked == {("real", name) for name in questions} | {("baseline", "2+2")}
    assert all(row["answers"] > 0 for row in figures["series"])
    assert all(0 < row["median_ms"] <= row["p99_ms"] for row in figures["series"])
    assert all(value > 0 for value in figures["memory"].values())
    assert 0 < figures["checker"]["median_ms"] <= figures["checker"]["p99_ms"]
    assert all(0 < row["ms"] < row["baseline_ms"] for row in figures["maths"].values())
    assert "real" in bench.report(figures)


def test_the_checker_is_measured_on_benign_programs_of_the_full_length(policy: Policy) -> None:
    programs = bench.long_programs(policy)
    limit = policy.limits.source_bytes
    assert len(programs) == len(set(programs)) == bench.CHECKS
    assert all(limit - 64 < len(program.encode()) <= limit for program in programs)
    assert not any(check(program, policy) for program in programs)
    assert programs == bench.long_programs(policy)


@contextmanager
def answering(answer: Callable[[bytes], bytes]) -> Iterator[int]:
    """Serve one request a read, and give the port."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while request := self.request.recv(1 << 16):
                response = answer(request)
                half = len(response) // 2
                self.request.sendall(response[:half])  # as a network may split it
                time.sleep(0.001)
                self.request.sendall(response[half:])
                if b"close" in response:
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def response(status: str, body: str, connection: str = "keep-alive") -> bytes:
    head = f"HTTP/1.1 {status}\r\nConnection: {connection}\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        (response("200 OK", "it is 4"), (6, 0, 0)),
        (response("200 OK", "it is 4", "close"), (6, 0, 0)),
        (response("503 Service Unavailable", "busy"), (0, 6, 0)),
        (response("200 OK", "it is 5"), (0, 0, 6)),
        (response("500 Internal Server Error", "it is 4"), (0, 0, 6)),
    ],
)
def test_right_refused_and_wrong_answers_are_told_apart(
    answer: bytes, counts: tuple[int, int, int]
) -> None:
    with answering(lambda _: answer) as port:
        sample = load.run(load.Job("127.0.0.1", port, "/", "{}", "is 4", 2, 60, requests=6))
    assert (len(sample.milliseconds), sample.refused, len(sample.wrong)) == counts


def test_every_request_has_another_user() -> None:
    seen = []
    with answering(lambda request: seen.append(request) or response("200 OK", "4")) as port:
        load.run(load.Job("127.0.0.1", port, "/", '{"id": 100000000}', "4", 1, 60, requests=3))
    bodies = [request.partition(b"\r\n\r\n")[2] for request in seen]
    assert [json.loads(body)["id"] for body in bodies] == [100000000, 100000001, 100000002]


def test_a_process_tree_has_its_descendants_their_cpu_time_and_memory() -> None:
    script = "import os, time; os.fork(); sum(range(10**7)); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        try:
            assert parent.stdout is not None
            parent.stdout.readline()
            parent.stdout.readline()
            found = processes.tree(parent.pid)
            assert len(found) == 2
            assert found[0] == parent.pid
            assert 0.02 < processes.cpu_seconds(found) < 60
            assert 1 < processes.memory_mib(parent.pid) < 100
            assert "sum(range" in processes.command_line(parent.pid)
        finally:
            for pid in reversed(processes.tree(parent.pid)):
                os.kill(pid, 9)
    assert processes.tree(parent.pid) == [parent.pid]
    assert processes.cpu_seconds([parent.pid]) == 0
    assert processes.memory_mib(parent.pid) == 0
