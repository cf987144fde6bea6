"""Clients that are slow, silent, half gone, too large or ahead: others do not wait for them."""

import json
import selectors
import socket
import threading
import time
from contextlib import ExitStack, suppress
from http.client import HTTPResponse

import pytest

from tests.conftest import Service
from tests.faults.parts import RIGHT_AGAIN_WITHIN, connect, eventually, is_right, overload, question

HEAD = (
    b"POST /message HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
)


@pytest.mark.parametrize(
    ("clients", "sent"),
    [
        (300, b""),
        (40, b"POST /mess"),
        (40, HEAD % 1000),
        (40, HEAD % 1000 + b"\r\n"),
        (40, HEAD % 1000 + b'\r\n{"text": "2+'),
    ],
    ids=["silent", "half a line", "half a head", "no body", "half a body"],
)
def test_clients_that_stall_delay_nobody(service: Service, clients: int, sent: bytes) -> None:
    with ExitStack() as stalled:
        for _ in range(clients):
            stalled.enter_context(connect(service)).sendall(sent)
        started = time.monotonic()
        assert all(is_right(service) for _ in range(10))
        assert time.monotonic() - started < RIGHT_AGAIN_WITHIN * overload()
    eventually(lambda: is_right(service), RIGHT_AGAIN_WITHIN)


def test_clients_that_trickle_give_their_threads_to_others(service: Service) -> None:
    """More than there are threads: the slowest are cut off where others wait for one."""
    with ExitStack() as slow:
        clients = [slow.enter_context(connect(service)) for _ in range(80)]
        for client in clients:
            client.sendall(HEAD % 1000 + b"\r\n{")
        stop = threading.Event()

        def trickle() -> None:
            while not stop.wait(0.3):
                for client in clients:
                    with suppress(OSError):
                        client.sendall(b" ")

        sender = threading.Thread(target=trickle)
        sender.start()
        started = time.monotonic()
        assert all(is_right(service) for _ in range(5))
        assert time.monotonic() - started < 4 * overload()
        stop.set()
        sender.join()
    eventually(lambda: is_right(service), RIGHT_AGAIN_WITHIN)


def test_a_body_in_chunks_is_read_within_the_same_bound(service: Service) -> None:
    asked, expected = question()
    body = json.dumps(asked).encode()
    head = HEAD.partition(b"Content-Length")[0] + b"Transfer-Encoding: chunked\r\n\r\n"
    for chunks, status in (
        (chunked(body[:20], body[20:]), 200),
        (chunked(*[b" " * 65536] * 17), 413),
        (b"zz\r\n", 400),
        (chunked(b"{"), 400),
    ):
        with connect(service) as connection:
            with suppress(ConnectionError):
                connection.sendall(head + chunks)
            answer = HTTPResponse(connection)
            answer.begin()
            assert answer.status == status
            assert (expected.encode() in answer.read()) == (status == 200)


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))


def test_clients_that_stay_after_their_last_answer_delay_nobody(service: Service) -> None:
    with ExitStack() as stayed:
        for _ in range(20):
            connection = stayed.enter_context(connect(service))
            connection.sendall(b"GET /test HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        started = time.monotonic()
        assert all(is_right(service) for _ in range(10))
        assert time.monotonic() - started < RIGHT_AGAIN_WITHIN * overload()


def test_a_client_that_sends_byte_by_byte_is_answered(service: Service) -> None:
    asked, expected = question()
    body = json.dumps(asked).encode()
    request = HEAD % len(body) + b"Connection: close\r\n\r\n" + body
    with connect(service) as connection:
        for position in range(len(request)):
            connection.sendall(request[position : position + 1])
            if position % 50 == 0:
                time.sleep(0.01)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["text"] == expected


def test_requests_sent_ahead_are_answered_in_their_order(service: Service) -> None:
    asked = [question() for _ in range(5)]
    bodies = [json.dumps(body).encode() for body, _ in asked]
    with connect(service) as connection:
        connection.sendall(b"".join(HEAD % len(body) + b"\r\n" + body for body in bodies))
        received = b""
        while asked[-1][1].encode() not in received and (chunk := connection.recv(65536)):
            received += chunk
    places = [received.find(json.dumps(expected).encode()) for _, expected in asked]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (HEAD % (1 << 40) + b"\r\n" + b"x" * 100_000, b"413"),
        (HEAD % (2 << 20) + b"\r\n" + b"x" * (2 << 20), b"413"),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"4"),
        (b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 1_000_000 + b"\r\n\r\n", b"4"),
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 10_000 + b"\r\n", b"4"),
    ],
    ids=["claims a terabyte", "two megabytes", "long line", "long header", "many headers"],
)
def test_what_is_too_large_is_refused(service: Service, request_: bytes, status: bytes) -> None:
    with connect(service) as connection:
        answer = b""
        try:
            connection.sendall(request_)
            while b"\r\n\r\n" not in answer and (chunk := connection.recv(65536)):
                answer += chunk
        except ConnectionError:  # refused before it was read
            pass
    assert not answer or answer.split()[1].startswith(status)
    eventually(lambda: is_right(service), RIGHT_AGAIN_WITHIN)


def test_more_busy_connections_than_threads_are_all_answered(service: Service) -> None:
    request = b"GET /test HTTP/1.1\r\nHost: x\r\n\r\n"
    answered: dict[socket.socket, int] = {}
    with ExitStack() as opened, selectors.DefaultSelector() as ready:
        for _ in range(100):
            connection = opened.enter_context(connect(service))
            ready.register(connection, selectors.EVENT_READ)
            answered[connection] = 0
            connection.sendall(request)
        deadline = time.monotonic() + 3 * overload()
        while time.monotonic() < deadline and min(answered.values()) < 5:
            for key, _ in ready.select(0.1):
                connection = key.fileobj
                if connection.recv(65536).endswith(b"}"):  # the next at once, as the greedy do
                    answered[connection] += 1
                    connection.sendall(request)
    assert min(answered.values()) >= 5, sorted(answered.values())
