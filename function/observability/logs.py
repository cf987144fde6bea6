"""One line an event, as text or JSON, for whoever runs the bot. No program and no output is logged.

An event is a log record with `fields`; every line of one request carries its id.
"""

import hashlib
import json
import logging
import secrets
import time
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import falcon

from sandbox import Outcome

log = logging.getLogger(__name__)

REQUEST_ID_HEADER = "X-Request-ID"
_ID_CHARACTERS = 64
_LONGEST_KEY = 64  # of BLAKE2b
_request_id: ContextVar[str] = ContextVar("request_id", default="")
_process_key = secrets.token_bytes(16)


def configure(style: str) -> None:
    """Send all log records to stderr, a line each, in `style`: text or json. Raises ValueError."""
    formatters = {"text": _Text, "json": _Json}
    if style not in formatters:
        raise ValueError(f"LOG_FORMAT is {style!r}: set it to text or json")
    # What no line has, each would pay for (the logging HOWTO, "Optimization").
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler()
    handler.setFormatter(formatters[style]())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    server = logging.getLogger("gunicorn.error")  # it has a handler and a format of its own
    server.handlers, server.propagate = [], True


def program(outcome: Outcome, sender: int, seconds: float, token: str = "") -> None:  # nosec B107
    """Log how a program ended: for whom (hashed, with the token as key), and how long it took.

    `seconds` are from the request to the answer; the outcome has those of the sandbox alone.
    """
    fields = {
        "outcome": outcome.kind,
        "rule": outcome.violations[0].rule if outcome.violations else None,
        "sender": _pseudonym(sender, token),
        "ms": round(seconds * 1000, 1),
        "program_ms": round(outcome.wall_seconds * 1000, 1),
        "cpu_ms": round(outcome.cpu_seconds * 1000, 1),
        "max_rss_kib": outcome.max_rss_kib,
    }
    log.info("program", extra={"fields": {k: v for k, v in fields.items() if v is not None}})


def _pseudonym(sender: int, token: str) -> str:
    key = token.encode()[-_LONGEST_KEY:] or _process_key
    return hashlib.blake2b(str(sender).encode(), key=key, digest_size=6).hexdigest()


class RequestId:
    """Falcon middleware: takes the caller's X-Request-ID or makes one, and returns it."""

    def process_request(self, req: falcon.Request, _resp: falcon.Response) -> None:
        """Name the request that this thread works on."""
        given = req.get_header(REQUEST_ID_HEADER) or ""
        is_plain = given.isascii() and given.isprintable() and " " not in given
        _request_id.set(given[:_ID_CHARACTERS] if is_plain and given else secrets.token_hex(6))

    def process_response(
        self, _req: falcon.Request, resp: falcon.Response, _resource: object, _succeeded: bool
    ) -> None:
        """Tell the caller the name."""
        resp.set_header(REQUEST_ID_HEADER, _request_id.get())


@lru_cache(1)
def _time(second: int, style: str) -> str:
    return time.strftime(style, time.localtime(second))


class _Json(logging.Formatter):
    """A JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(int(record.created), "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if request_id := _request_id.get():
            line["request"] = request_id
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class _Text(logging.Formatter):
    """Time, level and message, then key=value."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        fields: dict[str, Any] = {}
        if request_id := _request_id.get():
            fields["request"] = request_id
        fields |= getattr(record, "fields", {})
        pairs = [f"{name}={value}" for name, value in fields.items()]
        moment = _time(int(record.created), "%Y-%m-%d %H:%M:%S%z")
        return " ".join([moment, record.levelname, record.message, *pairs])
