"""A real Valkey or Redis server, from the system's packages, for tests of what is shared."""

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from tests.ports import free_port

SERVER = shutil.which("valkey-server") or shutil.which("redis-server")


class ValkeyServer:
    """A real server on a loopback port, without persistence."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.address = f"redis://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert SERVER
        self._process = subprocess.Popen(
            [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
        )
        client = redis.Redis(port=self.port)
        deadline = time.monotonic() + 20
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                assert time.monotonic() < deadline, "the server did not start"
                time.sleep(0.02)
        client.close()

    def send(self, number: int) -> None:
        assert self._process
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process:
            self.send(signal.SIGKILL)
            self._process.wait()
        self._process = None


@contextmanager
def running_valkey(folder: Path) -> Iterator[ValkeyServer]:
    """Give a running server; skip the test where none is installed."""
    if not SERVER:
        pytest.skip("no valkey-server or redis-server here: apt install valkey (or redis-server)")
    server = ValkeyServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
