"""How gunicorn runs the service, the same from tools/serve and in the image.

gunicorn --config python:function.server; every name below is one of its settings
(https://docs.gunicorn.org/en/stable/settings.html). The address is given with --bind.
"""

import contextlib
import os
import socket
import struct

from gunicorn.workers.base import Worker

from function import logs

wsgi_app = "function.app:get_app()"

# One process: one sandbox, one set of limits. Programs run in processes of their own anyway.
workers = 1
worker_class = "gthread"
threads = 64  # more than may run programs at once, so that a refusal never waits behind them
keepalive = 75  # seconds; longer than the idle time of the usual proxies

# A program in flight has its wall-clock limit left to finish in, and its answer to be sent.
graceful_timeout = 15
control_socket_disable = True
worker_tmp_dir = "/dev/shm"  # nosec B108  # the heartbeat file; must be writable, and memory is best

_STALLED_AFTER = struct.pack("ll", 10, 0)  # a timeval: seconds, microseconds; socket(7)


def on_starting(_server: object) -> None:
    """Give the server's own lines the service's format; a wrong LOG_FORMAT is told later."""
    with contextlib.suppress(ValueError):
        logs.configure(os.environ.get("LOG_FORMAT") or "text")


def post_fork(_server: object, worker: Worker) -> None:
    """Give a stalled client ten seconds for each read and write; a thread is never held longer.

    Accepted sockets inherit these options from the listening ones.
    """
    for listener in worker.sockets:
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _STALLED_AFTER)
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _STALLED_AFTER)
