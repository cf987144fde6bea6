"""SIGTERM, SIGINT, SIGHUP at any time: what was accepted is answered, and nothing is left."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import urllib3

from tests.conftest import Service
from tests.faults.parts import eventually, health, is_alive, is_right, parts, question
from tools import processes, serve

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


@pytest.mark.parametrize("delay", [0.05, 0.3, 0.6, 1.0])
def test_an_order_to_stop_while_it_starts_is_obeyed(delay: float) -> None:
    command = serve.command(f"127.0.0.1:{serve.free_port()}")
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
    eventually(lambda: is_right(service) and len(processes.tree(service.process.pid)) == 8)


def accepts(service: Service) -> bool:
    with urllib3.PoolManager() as other:
        try:
            other.request("GET", service.url + "/test", retries=False, timeout=5)
        except urllib3.exceptions.HTTPError:
            return False
    return True
