"""Each process killed or stopped at each stage of a request: nothing accepted is lost or left."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3

from sandbox.policy.loader import Policy
from tests.conftest import Service, running_services
from tests.faults import parts as faults
from tests.faults.parts import RIGHT_AGAIN_WITHIN, eventually, held, is_alive, is_right, parts
from tests.performance import processes


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose parts may be killed; it must be whole again after every test."""
    with running_services(tmp_path_factory.mktemp("faults")) as start:
        started = start()
        eventually(lambda: len(parts(started).guests) == 4)
        yield started


@pytest.fixture
def whole(service: Service) -> Iterator[None]:
    """Demand that a test leaves as many processes and descriptors as there were."""
    eventually(lambda: len(parts(service).guests) == 4)  # the last one may be replaced just now
    before = held(service)
    yield
    eventually(lambda: is_right(service))
    eventually(lambda: held(service) <= before, seconds=5)


class InFlight:
    """Requests at one stage: `answers` has a response or an error each, once `finish` is called.

    Prepared guests that are stopped hold the programs that they are given; so running and queued
    requests are exactly there until a fault frees them.
    """

    def __init__(self, service: Service, stage: str, policy: Policy) -> None:
        self.answers: list[tuple[Any, str]] = []
        self.guests: tuple[int, ...] = ()
        self._service = service
        self._threads: list[threading.Thread] = []
        self._half: socket.socket | None = None
        places = policy.limits.concurrent_guests
        if stage == "half sent":
            self._send_half()
        elif stage in ("running", "queued"):
            self.guests = parts(service).guests
            for guest in self.guests:
                os.kill(guest, signal.SIGSTOP)
            for _ in range(places if stage == "running" else 2 * places):
                self._threads.append(threading.Thread(target=self._ask))
                self._threads[-1].start()
            eventually(lambda: faults.health(service)["sandbox"]["guests"]["running"] == places)

    def _ask(self) -> None:
        asked, expected = faults.question()
        try:
            response = self._service.request("POST", "/message", asked, Connection="close")
            self.answers.append((response.json().get("text"), expected))
        except urllib3.exceptions.HTTPError as error:
            self.answers.append((error, expected))

    def _send_half(self) -> None:
        asked, self._expected = faults.question()
        body = json.dumps(asked).encode()
        head = f"POST /message HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        head += "Content-Type: application/json\r\nConnection: close\r\n\r\n"
        self._half = faults.connect(self._service)
        self._half.sendall(head.encode() + body[:20])
        self._rest = body[20:]

    def finish(self) -> None:
        if self._half:
            with self._half as connection:
                try:
                    connection.sendall(self._rest)
                    answer = b"".join(iter(lambda: connection.recv(65536), b""))
                except ConnectionError as error:
                    self.answers.append((error, self._expected))
                else:
                    body = answer.partition(b"\r\n\r\n")[2]
                    text = json.loads(body)["text"] if body else urllib3.exceptions.HTTPError()
                    self.answers.append((text, self._expected))
        for thread in self._threads:
            thread.join()


STAGES = ["idle", "half sent", "running", "queued"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("victim", ["zygote", "guests"])
def test_below_the_worker_a_killed_process_costs_no_answer(
    service: Service, whole: None, policy: Policy, victim: str, stage: str
) -> None:
    in_flight = InFlight(service, stage, policy)
    now = parts(service)
    for pid in (in_flight.guests or now.guests) if victim == "guests" else [now.zygote]:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: is_right(service), RIGHT_AGAIN_WITHIN)
    in_flight.finish()
    assert [text for text, _ in in_flight.answers] == [right for _, right in in_flight.answers]


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_worker_breaks_its_connections_and_is_replaced(
    service: Service, whole: None, policy: Policy, stage: str
) -> None:
    in_flight = InFlight(service, stage, policy)
    worker = parts(service).worker
    below = processes.tree(worker)
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: is_right(service), RIGHT_AGAIN_WITHIN)
    in_flight.finish()
    for answer, right in in_flight.answers:  # right where the other worker took the connection
        assert isinstance(answer, Exception) or answer == right
    eventually(lambda: not any(map(is_alive, below)), RIGHT_AGAIN_WITHIN)


@pytest.mark.parametrize("stage", ["idle", "running"])
def test_a_killed_master_takes_all_with_it_once_what_runs_is_answered(
    start_service: Callable[..., Service], policy: Policy, stage: str
) -> None:
    service = start_service()
    eventually(lambda: len(parts(service).guests) == 4)
    in_flight = InFlight(service, stage, policy)
    everything = processes.tree(service.process.pid)
    service.http.close()
    service.process.kill()
    service.process.wait()
    if stage == "running":
        for guest in in_flight.guests:
            os.kill(guest, signal.SIGCONT)
    in_flight.finish()
    assert [text for text, _ in in_flight.answers] == [right for _, right in in_flight.answers]
    eventually(lambda: not any(map(is_alive, everything)), seconds=5)
    host, port = service.url.removeprefix("http://").split(":")
    socket.create_server((host, int(port))).close()  # another can start there


def test_a_stopped_zygote_is_replaced_within_two_seconds(service: Service, whole: None) -> None:
    os.kill(parts(service).zygote, signal.SIGSTOP)
    answered = []
    for _ in range(6):  # more than are prepared
        started = time.monotonic()
        assert is_right(service)
        answered.append(time.monotonic() - started)
    assert max(answered) < RIGHT_AGAIN_WITHIN * faults.overload()
