"""How log lines look: text, or one JSON object a line."""

import json
import logging
import threading
import time
from functools import lru_cache
from typing import Any

from function.observability import events


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
    logging.captureWarnings(capture=True)
    threading.excepthook = _log_end_of_thread


def _log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None:
        name = ended.thread.name if ended.thread else "a thread"
        logging.getLogger("calcubot").critical("%s ended", name, exc_info=ended.exc_value)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {**events.bound(), **getattr(record, "fields", {})}


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
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _Text(logging.Formatter):
    """Time, level and message, then key=value; further lines of a message are indented."""

    def format(self, record: logging.LogRecord) -> str:
        moment = _time(int(record.created), "%Y-%m-%d %H:%M:%S%z")
        message = record.getMessage().replace("\n", "\n    ")
        pairs = [f"{name}={_word(value)}" for name, value in _fields(record).items()]
        line = " ".join([moment, record.levelname, message, *pairs])
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _word(value: object) -> str:
    """The value, quoted where it would not be one word: a path can hold line feeds."""
    text = str(value)
    return text if text.isprintable() and " " not in text else json.dumps(text)
