"""The bench's client: keep-alive connections over raw sockets, in a process of its own.

Reads one Job as JSON from standard input and prints a Sample as JSON. Standard library only and
lean, so that what it measures is the service.
"""

import json
import re
import select
import socket
import sys
import time
from dataclasses import asdict, dataclass, field

USER = b"00000000"
USERS = 10_000
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Job:
    """What to ask, how often. `expected` must be in the body of every answer with status 200.

    `body` is sent by POST, or GET where it is empty; its USER is another number in each request,
    for the service limits how much one user may ask. After each answer the client rests for
    `pause` seconds, which is meant for one connection. Ends after `seconds` or `requests`.
    """

    host: str
    port: int
    path: str
    body: str
    expected: str
    connections: int
    seconds: float
    requests: int = 1 << 60
    pause: float = 0.0


@dataclass
class Sample:
    """What came back: milliseconds of each right answer, counts of the others, seconds in all."""

    milliseconds: list[float] = field(default_factory=list)
    refused: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run(job: Job) -> Sample:
    """Keep one request in flight on each connection until the job's end."""
    method = "POST" if job.body else "GET"
    text = (
        f"{method} {job.path} HTTP/1.1\r\nHost: {job.host}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(job.body.encode())}\r\n\r\n"
    )
    head, *tail = (text + job.body).encode().split(USER)
    expected = job.expected.encode()
    sample = Sample()
    poll = select.epoll()
    connections: dict[int, socket.socket] = {}
    started: dict[int, float] = {}
    sent = 0

    def ask(connection: socket.socket) -> None:
        nonlocal sent
        request = (b"%08d" % (sent % USERS)).join([head, *tail])
        sent += 1
        started[connection.fileno()] = time.perf_counter()
        connection.sendall(request)

    def connect() -> None:
        connection = socket.create_connection((job.host, job.port), timeout=60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connections[connection.fileno()] = connection
        poll.register(connection, select.EPOLLIN)
        ask(connection)

    begin = time.perf_counter()
    end = begin + job.seconds
    for _ in range(job.connections):
        connect()
    while connections:
        for descriptor, _ in poll.poll(60):
            connection = connections[descriptor]
            answer = _receive(connection)
            now = time.perf_counter()
            if answer.startswith(b"HTTP/1.1 200") and expected in answer:
                sample.milliseconds.append((now - started[descriptor]) * 1000)
            elif answer.startswith(b"HTTP/1.1 503") or b"Too many programs" in answer:
                sample.refused += 1
            else:
                sample.wrong.append(answer[:500].decode(errors="replace"))
            time.sleep(job.pause)
            more = now < end and sent < job.requests
            if more and answer and b"\r\nconnection: close" not in answer.lower():
                ask(connection)
                continue
            poll.unregister(connection)
            connections.pop(descriptor).close()
            if more:
                connect()
    sample.seconds = time.perf_counter() - begin
    return sample


def _receive(connection: socket.socket) -> bytes:
    """Return one whole response, or what came before the connection ended."""
    data = connection.recv(1 << 16)
    while chunk := data and _is_partial(data) and connection.recv(1 << 16):
        data += chunk
    return data


def _is_partial(data: bytes) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return not end or (length is not None and len(body) < int(length[1]))


if __name__ == "__main__":
    json.dump(asdict(run(Job(**json.load(sys.stdin)))), sys.stdout)
