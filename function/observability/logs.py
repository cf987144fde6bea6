"""How log lines look: text, or one JSON object a line."""

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from function.observability import events

Line = Callable[[float, str, str, str, Mapping[str, Any]], str]


def configure(style: str) -> None:
    """Send log records and events to stderr, a line each, in `style`: text or json.

    Raises ValueError for another.
    """
    lines: dict[str, Line] = {"text": _text, "json": _json}
    if style not in lines:
        raise ValueError(f"LOG_FORMAT is {style!r}: set it to text or json")
    line = lines[style]
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter(line))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    threading.excepthook = _log_end_of_thread

    def log(event: str, level: int, fields: Mapping[str, Any]) -> None:
        """Write an event in half of the time that a log record takes."""
        if level >= logging.INFO:
            name, told = logging.getLevelName(level), {**events.bound(), **fields}
            with suppress(OSError):  # as a handler does
                sys.stderr.write(line(time.time(), name, "calcubot", event, told) + "\n")

    events.listeners["log"] = log


class _Formatter(logging.Formatter):
    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    def format(self, record: logging.LogRecord) -> str:
        fields = dict(events.bound())
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        told = record.created, record.levelname, record.name, record.getMessage()
        return self._line(*told, fields)


def _json(created: float, level: str, logger: str, event: str, fields: Mapping[str, Any]) -> str:
    """A JSON object."""
    moment = _time(int(created), "%Y-%m-%dT%H:%M:%S%z")
    line = {"time": moment, "level": level.lower(), "logger": logger, "event": event, **fields}
    return json.dumps(line, default=str)


def _text(created: float, level: str, _: str, event: str, fields: Mapping[str, Any]) -> str:
    """Time, level and message, then key=value; further lines are indented, or a traceback."""
    moment = _time(int(created), "%Y-%m-%d %H:%M:%S%z")
    pairs = [f"{name}={_word(value)}" for name, value in fields.items() if name != "exception"]
    message = event.replace("\n", "\n    ")
    line = " ".join([moment, level, message, *pairs])
    return f"{line}\n{fields['exception']}" if "exception" in fields else line


@lru_cache(1)
def _time(second: int, style: str) -> str:
    return time.strftime(style, time.localtime(second))


def _word(value: object) -> str:
    """The value, quoted where it would not be one word: a path can hold line feeds."""
    text = str(value)
    return text if text.isprintable() and " " not in text else json.dumps(text)


def _log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None:
        name = ended.thread.name if ended.thread else "a thread"
        logging.getLogger("calcubot").critical("%s ended", name, exc_info=ended.exc_value)
