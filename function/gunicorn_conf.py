"""How gunicorn runs the service, the same from tools/serve and in the image.

gunicorn --config python:function.server; every name below is one of its settings
(https://docs.gunicorn.org/en/stable/settings.html). The address is given with --bind.
"""

import contextlib
import gc
import os
import resource
import select
import shutil
import socket
import struct
import tempfile
import threading

from gunicorn.workers import gthread

gc.disable()  # what is imported stays, and to search it for garbage takes 30 ms
import function.app  # noqa: E402  # in the master, so that another worker starts at once
from function.observability import logs  # noqa: E402

gc.enable()


class Worker(gthread.ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Sees clients off in the threads that answered them, and stops in view of those who come.

    gunicorn sees them off in the thread that accepts connections, and waits up to two seconds for a
    client that does not close its end (gunicorn.util.close_graceful): so one made all others wait.

    One that stops keeps its address until its last answer, and then resets whoever has come: so it
    takes those who have come before the order, and others are refused at once, to go elsewhere.
    """

    def set_accept_enabled(self, enabled: bool) -> None:
        """Listen for connections, or no longer; when told to stop, never again."""
        super().set_accept_enabled(enabled)
        for listener in () if self.alive else self.sockets:
            taken = -1
            while taken != self.nr_conns < self.worker_connections:
                taken = self.nr_conns
                self.accept(listener)
            listener.close()

    def handle(self, conn: gthread.TConn) -> object:
        """Answer a request and those that follow at once; return whether more may come later.

        To give a connection back and take it again costs more than to answer it. Where there are
        more connections than threads, each gives its thread to the next after every answer.
        """
        more = super().handle(conn)
        while more is True and self.alive and self.nr_conns <= threads and _has_more(conn.sock):
            more = super().handle(conn)
        if not more:
            conn.close(graceful=True)
            conn.close = lambda **_: None
        return more


def _has_more(connection: socket.socket) -> bool:
    """Wait a moment for the next request; return whether it, or the end, has come."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(_SOON_MILLISECONDS))


wsgi_app = "function.app:get_app()"

# One process: one sandbox, one set of limits. Programs run in processes of their own anyway.
workers = 1
worker_class = Worker
threads = 64  # more than may run programs at once, so that a refusal never waits behind them
keepalive = 75  # seconds; longer than the idle time of the usual proxies
worker_connections = 1000

# A program in flight has its wall-clock limit left to finish in, and its answer to be sent.
graceful_timeout = 15
control_socket_disable = True
worker_tmp_dir = "/dev/shm"  # nosec B108  # the heartbeat file; must be writable, and memory is best

_SOON_MILLISECONDS = 5
_STALLED_AFTER = struct.pack("ll", 10, 0)  # a timeval: seconds, microseconds; socket(7)


def on_starting(_server: object) -> None:
    """Make room for every connection and for a copy of the policy, and give lines their format.

    A worker that runs out of descriptors ends, with all that it was about to answer. A wrong
    LOG_FORMAT is told later.
    """
    with contextlib.suppress(OSError):
        folder = tempfile.mkdtemp(prefix="calcubot-")
        os.environ[function.app.LAST_GOOD_POLICY] = os.path.join(folder, "policy.yaml")
    gc.freeze()  # what is loaded is not searched again, which would copy its pages in the worker
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError):  # the hard limit is lower
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * worker_connections), hard))
    with contextlib.suppress(ValueError):
        logs.configure(os.environ.get("LOG_FORMAT") or "text")


def on_exit(_server: object) -> None:
    """Leave nothing behind."""
    if copy := os.environ.get(function.app.LAST_GOOD_POLICY):
        shutil.rmtree(os.path.dirname(copy), ignore_errors=True)


def post_fork(_server: object, worker: Worker) -> None:
    """Give a stalled client ten seconds for each read and write; a thread is never held longer.

    A client that has sent nothing yet holds none: it is left to the kernel, tcp(7). Accepted
    sockets inherit these options from the listening ones.
    """
    for listener in worker.sockets:
        with contextlib.suppress(OSError):  # no TCP
            listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 10)
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _STALLED_AFTER)
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _STALLED_AFTER)


def post_worker_init(worker: Worker) -> None:
    """Start every thread now: a worker that needs one later, and can have none, ends."""
    all_started = threading.Barrier(threads)
    for _ in range(threads):
        worker.tpool.submit(all_started.wait)
