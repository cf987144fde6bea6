"""A request is read before its deadline, or not at all."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from function.http.server import Connection


@pytest.fixture
def ends() -> Iterator[tuple[Connection, socket.socket]]:
    ours, theirs = socket.socketpair()
    with Connection(fileno=ours.detach()) as connection, theirs:
        connection.waiting = set()
        connection.deadline = time.monotonic() + 60
        yield connection, theirs


def test_what_is_there_is_read_and_what_comes_in_time_is_waited_for(
    ends: tuple[Connection, socket.socket],
) -> None:
    connection, client = ends
    client.sendall(b"GET ")
    assert connection.recv(100) == b"GET "
    sender = threading.Timer(0.05, client.sendall, [b"/test"])
    sender.start()
    assert connection.recv(100) == b"/test"
    sender.join()
    assert connection.waiting == set()


def test_bytes_that_trickle_are_read_until_the_deadline_and_never_after(
    ends: tuple[Connection, socket.socket],
) -> None:
    connection, client = ends
    stop = threading.Event()

    def trickle() -> None:
        while not stop.wait(0.01):
            client.sendall(b"a")

    sender = threading.Thread(target=trickle)
    sender.start()
    begun = time.monotonic()
    connection.deadline = begun + 0.2
    read = 0
    while connection.recv(100):
        read += 1
    assert time.monotonic() - begun >= 0.2
    assert read > 1
    assert connection.recv(100) == b""
    stop.set()
    sender.join()


def test_a_silent_client_is_waited_for_until_the_deadline(
    ends: tuple[Connection, socket.socket],
) -> None:
    connection, _ = ends
    begun = time.monotonic()
    connection.deadline = begun + 0.1
    assert connection.recv(100) == b""
    assert time.monotonic() - begun >= 0.1


def test_another_thread_can_end_a_read_that_waits(ends: tuple[Connection, socket.socket]) -> None:
    connection, client = ends
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(connection.recv(100)))
    reader.start()
    while not connection.waiting:
        time.sleep(0.001)
    connection.end()
    reader.join()
    with suppress(BrokenPipeError):
        client.sendall(b"too late")
    assert [*read, connection.recv(100)] == [b"", b""]
