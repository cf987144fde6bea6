"""gunicorn's threaded worker, made to hold when clients are slow, many, or leaving."""

import contextlib
import select
import socket
import struct
import time

from gunicorn.workers import gthread

REQUEST_SECONDS = 10.0  # from a request's first byte to its last
_SPARED_SECONDS = 0.5  # for which a slow client keeps its thread where others wait for one
_SOON_MILLISECONDS = 5


class Connection(socket.socket):
    """A client's socket, from which a request must be read before a deadline.

    What comes later is not read: neither is it known where the next request would begin.
    """

    deadline = 0.0  # time.monotonic()
    waiting: set["Connection"]  # those that a thread waits for

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Read as socket.recv does; return b"", the end, when the deadline has passed."""
        with contextlib.suppress(BlockingIOError):
            if time.monotonic() < self.deadline:
                return super().recv(size, flags | socket.MSG_DONTWAIT)
        self.waiting.add(self)
        try:
            microseconds = int((self.deadline - time.monotonic()) * 1e6)
            if microseconds > 0:  # 0 would be no timeout, socket(7)
                timeval = struct.pack("ll", *divmod(microseconds, 10**6))
                self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval)
                return super().recv(size, flags)
        except BlockingIOError:
            pass
        finally:
            self.waiting.discard(self)
        self.end()
        return b""

    def end(self) -> None:
        """Let every read find the end, also one for which another thread waits now."""
        self.deadline = 0.0
        with contextlib.suppress(OSError):
            self.shutdown(socket.SHUT_RD)


class Worker(gthread.ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Closes connections in the worker thread that served them; drains the backlog on shutdown.

    gunicorn closes them in the thread that accepts connections, and waits up to two seconds for a
    client that does not close its end (gunicorn.util.close_graceful), while all others wait.

    On shutdown gunicorn keeps listening until the last answer, and then resets the connections in
    the backlog. This worker accepts these first and then closes its listening sockets: new clients
    are refused at once, and go elsewhere.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self._waiting: set[Connection] = set()

    def set_accept_enabled(self, enabled: bool) -> None:
        """Listen for connections, or no longer; on shutdown, drain the backlog and close."""
        super().set_accept_enabled(enabled)
        for listener in () if self.alive else self.sockets:
            before = -1
            while before != self.nr_conns < self.worker_connections:
                before = self.nr_conns
                self.accept(listener)
            listener.close()

    def handle(self, conn: gthread.TConn) -> object:
        """Answer a request and those that follow at once; return whether more may come later.

        A client that has sent nothing yet gets no thread. To give a connection back to the main
        thread and to take it again costs more than to answer it; where there are more connections
        than threads, each gives its thread to the next after every answer.
        """
        if not isinstance(conn.sock, Connection):
            conn.sock = Connection(fileno=conn.sock.detach())
            conn.sock.waiting = self._waiting
        if not conn.initialized and not _has_more(conn.sock):
            return gthread._DEFER
        conn.data_ready = True
        more = self._serve(conn)
        while (
            more is True
            and self.alive
            and self.nr_conns <= self.cfg.threads
            and _has_more(conn.sock)
        ):
            more = self._serve(conn)
        if not more:
            conn.sock.deadline = time.monotonic() + REQUEST_SECONDS
            conn.close(graceful=True)
            conn.close = lambda **_: None
        return more

    def _serve(self, conn: gthread.TConn) -> object:
        conn.sock.deadline = time.monotonic() + REQUEST_SECONDS
        return super().handle(conn)

    def murder_pending(self) -> None:
        """Close expired connections; and the slowest clients, where others wait for a thread."""
        super().murder_pending()
        idle = len(self.keepalived_conns) + len(self.pending_conns)
        lacking = self.nr_conns - idle - self.cfg.threads
        if lacking > 0:
            spared = time.monotonic() + REQUEST_SECONDS - _SPARED_SECONDS
            slow = [each for each in list(self._waiting) if each.deadline < spared]
            for each in sorted(slow, key=lambda each: each.deadline)[:lacking]:
                each.end()


def _has_more(connection: socket.socket) -> bool:
    """Wait a moment for the next request; return whether it, or the end, has come."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(_SOON_MILLISECONDS))
