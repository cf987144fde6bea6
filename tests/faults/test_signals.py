"""SIGTERM, SIGINT, SIGHUP at any time: what was accepted is answered, and nothing is left."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.conftest import Service
from tests.faults.parts import eventually, health, is_alive, is_right, parts, question
from tests.performance import processes
from tests.ports import free_port
from tools import serve

# Half a second of work, and the answer to it.
PROGRAM, ANSWER = "n = 0\nfor i in range(5 * 10**6): n += 1\nn", "5000000"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_an_order_to_stop_lets_programs_finish_refuses_others_and_exits_with_0(
    start_service: Callable[..., Service], name: str, busy: bool
) -> None:
    service = start_service()
    everything = processes.tree(service.process.pid)
    answers: list[Any] = []
    asker = threading.Thread(target=lambda: answers.append(service.ask(PROGRAM)["text"]))
    if busy:
        asker.start()
        eventually(lambda: health(service)["sandbox"]["guests"]["running"] == 1)
    service.process.send_signal(signal.Signals[name])
    eventually(lambda: not accepts(service), seconds=2)
    if busy:
        asker.join()
        assert answers == [ANSWER]
    assert service.process.wait(20) == 0
    eventually(lambda: not any(map(is_alive, everything)), seconds=2)


def test_who_came_before_an_order_to_stop_is_answered_and_who_comes_after_is_refused_at_once(
    start_service: Callable[..., Service],
) -> None:
    service = start_service()
    worker, answers = parts(service).worker, dict[str, str]()
    slow, *quick = texts = ["while True: pass", *(f"{number}+1" for number in range(8))]

    def ask(text: str) -> None:
        answers[text] = service.ask(text)["text"]

    askers = [threading.Thread(target=ask, args=[text]) for text in texts]
    os.kill(worker, signal.SIGSTOP)  # so that all of them wait to be accepted
    for asker in askers:
        asker.start()
    eventually(lambda: connected(service) == len(texts))
    service.process.terminate()
    os.kill(worker, signal.SIGCONT)
    eventually(lambda: answers.keys() >= {*quick})
    with pytest.raises(ConnectionRefusedError):
        connect(service)
    for asker in askers:
        asker.join()
    assert "longer than" in answers.pop(slow)
    assert all(answer.endswith(f" = {text}") for text, answer in answers.items())
    assert service.process.wait(20) == 0


@pytest.mark.parametrize("delay", [0.05, 0.3, 0.6, 1.0])
def test_an_order_to_stop_while_it_starts_is_obeyed(delay: float) -> None:
    command = serve.command(f"127.0.0.1:{free_port()}")
    with subprocess.Popen(command, cwd=serve.ROOT, stderr=subprocess.DEVNULL) as process:
        time.sleep(delay)
        everything = processes.tree(process.pid)
        process.terminate()
        assert process.wait(20) in (0, -signal.SIGTERM)
    eventually(lambda: not any(map(is_alive, everything)), seconds=2)


def test_a_hangup_takes_up_policy_and_settings_and_loses_no_answer(
    start_service: Callable[..., Service],
) -> None:
    service = start_service()
    first = parts(service).worker
    answers: list[Any] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            asked, expected = question()
            response = service.request("POST", "/message", asked)
            answers.append((response.status, response.json().get("text") == expected))

    askers = [threading.Thread(target=ask) for _ in range(3)]
    askers.append(threading.Thread(target=lambda: answers.append(service.ask(PROGRAM)["text"])))
    for asker in askers:
        asker.start()
    eventually(lambda: len(answers) > 10)
    service.process.send_signal(signal.SIGHUP)
    eventually(lambda: not is_alive(first), seconds=20)
    stop.set()
    for asker in askers:
        asker.join()
    assert set(answers) == {(200, True), ANSWER}
    eventually(lambda: is_right(service))
    eventually(lambda: len(processes.tree(service.process.pid)) == 8)


def connect(service: Service) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    socket.create_connection((host, int(port)), timeout=10).close()


def connected(service: Service) -> int:
    """How many clients have a connection to the service (proc(5), /proc/net/tcp)."""
    to = f":{int(service.url.rpartition(':')[2]):04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(remote.endswith(to) and state == "01" for _, _, remote, state, *_ in lines)


def accepts(service: Service) -> bool:
    with urllib3.PoolManager() as other:
        try:
            other.request("GET", service.url + "/test", retries=False, timeout=5)
        except urllib3.exceptions.HTTPError:
            return False
    return True
