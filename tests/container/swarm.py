"""compose.yml as a stack on a swarm of one machine, with a balancer before its replicas.

A replica is reached over the loopback of its own network namespace, and so is the store from there:
nothing depends on the engine's overlay network, whose ingress needs IPVS in the kernel.
"""

import ctypes
import itertools
import json
import os
import select
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tests.container.conftest import docker

HEALTHY_WITHIN = 180  # seconds; a machine that is shared may take long to start two
STORE_PORT = 6379  # in every replica's own network namespace
_CLONE_NEWNET = 0x40000000  # setns(2); os.setns is there since Python 3.12
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Replica:
    """A container of the stack, by its id and its first process."""

    container: str
    pid: int


@contextmanager
def network_of(pid: int) -> Iterator[None]:
    """Let this thread open sockets in a process's network namespace. Raises OSError."""
    paths = (f"/proc/{pid}/ns/net", "/proc/thread-self/ns/net")
    there, here = (os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths)
    try:
        if _LIBC.setns(there, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        _LIBC.setns(here, _CLONE_NEWNET)
        os.close(there)
        os.close(here)


class Relay:
    """Passes what comes to a listening socket on to where `connect` leads, if that is anywhere."""

    def __init__(
        self, listener: socket.socket, connect: Callable[[], socket.socket | None]
    ) -> None:
        self._listener = listener
        self._connect = connect
        self.port = listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=[client], daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client:
            server = self._connect()
            if server is None:
                return
            with server, suppress(OSError):
                other = {client: server, server: client}
                while True:
                    for source in select.select(list(other), [], [])[0]:
                        data = source.recv(1 << 16)
                        if not data:
                            return
                        other[source].sendall(data)


class Stack:
    """A deployed stack; follows its replicas, and lends each the store."""

    def __init__(self, name: str, store_port: int) -> None:
        self.service = f"{name}_calcubot"
        self.url = ""
        self.taken: Counter[str] = Counter()  # connections, by container
        self._store_port = store_port
        self._stores: dict[Replica, Relay] = {}
        self._healthy: list[Replica] = []
        self._turn = itertools.count()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow)

    def __enter__(self) -> "Stack":
        self._balancer = Relay(socket.create_server(("127.0.0.1", 0)), self._connect)
        self.url = f"http://127.0.0.1:{self._balancer.port}"
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        for relay in (self._balancer, *self._stores.values()):
            relay.close()

    def healthy(self, without: Iterable[Replica] = ()) -> list[Replica]:
        """Return both replicas as soon as both are healthy and others than those."""
        deadline = time.monotonic() + HEALTHY_WITHIN
        while len(now := self._healthy) != 2 or {*now} & {*without}:
            assert time.monotonic() < deadline, docker("service", "ps", "--no-trunc", self.service)
            time.sleep(0.1)
        return now

    @contextmanager
    def only(self, replica: Replica) -> Iterator[str]:
        """Give the address of one replica."""
        relay = Relay(socket.create_server(("127.0.0.1", 0)), lambda: self._reach(replica))
        yield f"http://127.0.0.1:{relay.port}"
        relay.close()

    def _connect(self) -> socket.socket | None:
        """Connect to the replica whose turn it is, or to another if it is no longer there."""
        turn, replicas = next(self._turn), self._healthy
        for index in range(len(replicas)):
            replica = replicas[(turn + index) % len(replicas)]
            if connection := self._reach(replica):
                self.taken[replica.container] += 1
                return connection
        return None

    def _reach(self, replica: Replica) -> socket.socket | None:
        with suppress(OSError), network_of(replica.pid):
            return socket.create_connection(("127.0.0.1", 8000))
        return None

    def _follow(self) -> None:
        while not self._stopped.wait(0.25):
            states = _states(self.service)
            self._healthy = [replica for replica, state in states.items() if state == "healthy"]
            for replica in self._stores.keys() - states.keys():
                self._stores.pop(replica).close()
            for replica in states.keys() - self._stores.keys():
                with suppress(OSError):
                    with network_of(replica.pid):
                        listener = socket.create_server(("127.0.0.1", STORE_PORT))
                    self._stores[replica] = Relay(listener, self._reach_store)

    def _reach_store(self) -> socket.socket | None:
        with suppress(OSError):
            return socket.create_connection(("127.0.0.1", self._store_port))
        return None


def _states(service: str) -> dict[Replica, str]:
    """Return the service's running containers, and what the engine says of their health."""
    label = f"--filter=label=com.docker.swarm.service.name={service}"
    names = docker("ps", "--quiet", "--no-trunc", label).split()
    # One that ended meanwhile is left out of what is printed, and makes the command fail.
    command = ["docker", "inspect", "--format={{json .State}}|{{.Id}}", *names]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    states = {}
    for line in listed.splitlines() if names else ():
        text, _, container = line.rpartition("|")
        state = json.loads(text)
        if state["Running"]:
            states[Replica(container, state["Pid"])] = state.get("Health", {}).get("Status", "")
    return states


@contextmanager
def swarm(name: str) -> Iterator[None]:
    """Make this engine a swarm; remove the stack of that name and the swarm at the end."""
    docker("swarm", "init", "--advertise-addr=127.0.0.1")
    try:
        yield
    finally:
        docker("stack", "rm", name)
        deadline = time.monotonic() + 60
        of_stack = f"--filter=label=com.docker.stack.namespace={name}"
        while docker("ps", "--quiet", of_stack) and time.monotonic() < deadline:
            time.sleep(0.2)
        docker("swarm", "leave", "--force")
