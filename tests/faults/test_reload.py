"""HUP, TTIN, TTOU and USR2 under load, with metrics and JSON logs: no update is lost."""

import itertools
import json
import os
import signal
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.conftest import Service, message
from tests.faults.parts import children, eventually, is_alive, is_right
from tests.ports import free_port

update_ids = itertools.count(1)


class Load:
    """Updates one after another from three users, each sent again until it is answered."""

    def __init__(self, service: Service) -> None:
        self.answered = 0
        self.wrong: list[Any] = []
        self._service = service
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send) for _ in range(3)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def goes_on(self) -> None:
        """Return when ten more have been answered."""
        before = self.answered
        eventually(lambda: self.answered > before + 10, seconds=20)

    def _send(self) -> None:
        while not self._stop.is_set():
            number = next(update_ids)
            user = {"id": 1000 + number, "is_bot": False, "first_name": "Ada"}
            update = {"update_id": number, "message": message(f"{number}+1", **{"from": user})}
            response: Any = None
            while response is None or response.status == 503:
                with suppress(urllib3.exceptions.HTTPError):
                    response = self._service.request("POST", "/webhook", update)
            text = response.json().get("text") if response.status == 200 else response.status
            if text != f"{number + 1} = {number}+1":
                self.wrong.append((update, text))
            self.answered += 1


def test_a_reload_loses_no_update_and_leaves_the_log_whole(
    start_service: Callable[..., Service],
) -> None:
    address = f"127.0.0.1:{free_port()}"
    service = start_service(METRICS=address, LOG_FORMAT="json")
    master = service.process.pid

    def send(name: str, workers: int) -> None:
        before = set(children(master))
        os.kill(master, signal.Signals[name])
        if name == "SIGHUP":
            eventually(lambda: not before & set(children(master)), seconds=20)
        eventually(lambda: len(children(master)) == workers, seconds=20)

    with Load(service) as load:
        busy = {"update_id": next(update_ids), "message": message("while True: pass")}
        slow = threading.Thread(target=service.request, args=("POST", "/webhook", busy))
        slow.start()
        load.goes_on()
        for name, workers in (("SIGHUP", 1), ("SIGTTIN", 2), ("SIGTTOU", 1), ("SIGHUP", 1)):
            send(name, workers)
            load.goes_on()
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as metrics:
                assert b"calcubot_serving 1.0" in metrics.read()
        slow.join()
    assert load.wrong == []
    assert service.process.poll() is None
    lines = service.logs().splitlines()
    assert [line for line in lines if "Traceback" in line or "Logging error" in line] == []
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_a_config_that_cannot_be_served_is_not_reloaded(
    start_service: Callable[..., Service], tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    service = start_service(CONFIG_PATH=str(config))
    [worker] = children(service.process.pid)
    config.write_text('{"TOKEN": "no token"}')
    service.process.send_signal(signal.SIGHUP)
    eventually(lambda: f"not reloaded: {config}: TOKEN is not valid" in service.logs())
    config.write_text("{}")
    assert children(service.process.pid) == [worker]
    service.process.send_signal(signal.SIGHUP)
    eventually(lambda: worker not in children(service.process.pid), seconds=20)
    eventually(lambda: is_right(service))


def test_another_master_takes_over_without_a_lost_update(
    start_service: Callable[..., Service],
) -> None:
    """SIGUSR2, and then SIGTERM to the old master: how the program itself is replaced."""
    service = start_service(METRICS=f"127.0.0.1:{free_port()}", PYTHONSAFEPATH="1")
    master, [worker] = service.process.pid, children(service.process.pid)
    with Load(service) as load:
        load.goes_on()
        os.kill(master, signal.SIGUSR2)
        eventually(lambda: len(children(master)) == 2, seconds=20)
        [successor] = set(children(master)) - {worker}
        eventually(lambda: "Booting worker" in service.logs().partition(f"({successor})")[2])
        load.goes_on()
        os.kill(master, signal.SIGTERM)
        assert service.process.wait(20) == 0
        load.goes_on()
        os.kill(successor, 0)
    os.kill(successor, signal.SIGTERM)
    eventually(lambda: not is_alive(successor), seconds=20)
    assert load.wrong == []
    assert "Traceback" not in service.logs()


@pytest.mark.parametrize("name", ["SIGQUIT", "SIGKILL"])
def test_what_is_cut_off_is_answered_by_whoever_comes_next(
    start_service: Callable[..., Service], name: str, tmp_path: Any
) -> None:
    store = str(tmp_path / "state.db")
    service = start_service(STORE=store)
    with Load(service) as load:
        load.goes_on()
        os.kill(service.process.pid, signal.Signals[name])
        service.process.wait(20)
        successor = start_service(STORE=store)
        load._service = successor
        load.goes_on()
    assert load.wrong == []
