"""How gunicorn runs the service, the same from tools/serve and in the image.

gunicorn --config python:function.gunicorn_conf; every name below is one of its settings
(https://docs.gunicorn.org/en/stable/settings.html). It listens where --bind says, else on PORT.
"""

import contextlib
import ctypes
import functools
import gc
import os
import shutil
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gunicorn import glogging

gc.disable()  # what is imported stays, and to search it for garbage takes 30 ms
import function.app  # noqa: E402  # in the master, so that another worker starts at once
from function import machine  # noqa: E402
from function.http.server import Worker  # noqa: E402
from function.observability import logs  # noqa: E402
from function.settings import Settings, SettingsError, load_settings  # noqa: E402
from sandbox import PolicyError, load_policy, longest_answer_seconds  # noqa: E402

gc.enable()

# Else each of the threads keeps a heap of its own: 134 MiB after 600 requests of 1 MiB.
with contextlib.suppress(AttributeError):  # not glibc: mallopt(3), M_ARENA_MAX
    ctypes.CDLL(None).mallopt(-8, 1)


class logger_class(glogging.Logger):  # type: ignore[misc]  # noqa: N801  gunicorn's name and types
    """gunicorn's own lines, in the service's format from the first on, and after a reload."""

    def setup(self, cfg: object) -> None:
        """Configure nothing here: see `logs`. A wrong LOG_FORMAT is refused in `on_starting`."""
        self.cfg = cfg
        self._access_log_enabled = False
        self.error_log.propagate = True
        with contextlib.suppress(ValueError):
            logs.configure("text")
            logs.configure(os.environ.get("LOG_FORMAT") or "text")


wsgi_app = "function.app:get_app()"

# One process: one sandbox, one set of limits. Programs run in processes of their own anyway.
workers = 1
worker_class = Worker
threads = machine.THREADS
keepalive = 75  # seconds; longer than the idle time of the usual proxies
worker_connections = machine.connections(1000)
graceful_timeout = 30  # of a policy that is refused when the sandbox starts
with contextlib.suppress(PolicyError, OSError):  # a program in flight may take all its time
    _policy = load_policy(Path(os.environ.get("POLICY_PATH") or Settings.policy_path))
    graceful_timeout = int(longest_answer_seconds(_policy) + 2)
control_socket_disable = True
# No header of a proxy changes anything, so no address needs to be looked up among trusted ones.
forwarded_allow_ips = "*"
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""
# The heartbeat file must be writable, and memory is best.
_folders = (folder for folder in ("/dev/shm", "/tmp") if os.access(folder, os.W_OK))  # nosec B108
worker_tmp_dir = next(_folders, None)

_STALLED_AFTER = struct.pack("ll", 10, 0)  # a timeval: seconds, microseconds; socket(7)


def on_starting(server: Any) -> None:
    """Refuse to start where something is lacking, with the reason in one line."""
    server.APP_LOAD_ERROR = function.app.CANNOT_START  # what a worker ends with that never can
    try:
        logs.configure(os.environ.get("LOG_FORMAT") or "text")
        if worker_tmp_dir is None:
            raise machine.Shortage("neither /dev/shm nor /tmp can be written: mount a tmpfs there")
        machine.check()
        if address := load_settings(os.environ).metrics:
            from function.observability import metrics

            metrics.check(address)
    except ValueError as error:
        server.log.critical("%s", error)
        sys.exit(function.app.CANNOT_START)
    with contextlib.suppress(OSError):
        folder = tempfile.mkdtemp(prefix="calcubot-")
        os.environ[function.app.LAST_GOOD_POLICY] = os.path.join(folder, "policy.yaml")
    server.reload = functools.partial(_reload, server, server.reload)
    gc.freeze()  # what is loaded is not searched again, which would copy its pages in the worker


def _reload(server: Any, reload: Callable[[], None]) -> None:
    """Replace the worker, unless its successor would be refused: that would end the service."""
    try:
        load_settings(os.environ)
    except SettingsError as error:
        server.log.error("not reloaded: %s", error)
    else:
        reload()


def on_exit(_server: object) -> None:
    """Leave nothing behind."""
    if copy := os.environ.get(function.app.LAST_GOOD_POLICY):
        shutil.rmtree(os.path.dirname(copy), ignore_errors=True)


def post_fork(_server: object, worker: Worker) -> None:
    """Give a stalled client ten seconds for each write; for reads see Connection.

    A client that has sent nothing yet is left to the kernel, tcp(7). Accepted sockets inherit
    these options from the listening ones.
    """
    for listener in worker.sockets:
        with contextlib.suppress(OSError):  # no TCP
            listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 10)
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _STALLED_AFTER)


def post_worker_init(worker: Worker) -> None:
    """Start every thread now: a worker that needs one later, and can have none, ends."""
    all_started = threading.Barrier(threads)
    try:
        for _ in range(threads):
            worker.tpool.submit(all_started.wait)
    except RuntimeError:
        all_started.abort()  # let those go that were started
        worker.log.critical("%s", machine.too_few_tasks())
        sys.exit(function.app.CANNOT_START)
