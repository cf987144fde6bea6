"""A service of one's own to measure: started, waited for, and stopped."""

import http.client
import json
import os
import signal
import subprocess  # nosec B404
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port
from tools import serve


@dataclass(frozen=True)
class Service:
    """A gunicorn that answers; `launch_seconds` is how long its first right answer took."""

    pid: int
    port: int
    log: Path
    launch_seconds: float


@contextmanager
def serving(folder: Path, app: str | None = None) -> Iterator[Service]:
    """Run a service whose log goes to `folder`, with another application if `app` names it."""
    port = free_port()
    command = serve.command(f"127.0.0.1:{port}") + ([app] if app else [])
    config = folder / "config.json"
    config.write_text("{}")  # no token
    environment = os.environ | {"CONFIG_PATH": str(config)}
    log = folder / f"{port}.log"
    with log.open("wb") as output:
        begin = time.perf_counter()
        process = subprocess.Popen(  # nosec B603
            command, stdout=output, stderr=output, env=environment, cwd=serve.ROOT
        )
    try:
        while (answer := ask(port, "2+2")) != "4 = 2+2":
            if answer or process.poll() is not None or time.perf_counter() > begin + 60:
                raise SystemExit(f"The service answers {answer!r} to 2+2:\n{log.read_text()}")
            time.sleep(0.001)
        yield Service(process.pid, port, log, time.perf_counter() - begin)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def ask(port: int, text: str, user: int = 1) -> str:
    """Return the answer to a private message; nothing where nobody answers."""
    person = {"id": user}
    fields = {"from": serve.EXAMPLE["from"] | person, "chat": serve.EXAMPLE["chat"] | person}
    body = json.dumps(serve.EXAMPLE | fields | {"text": text})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/message", body, {"Content-Type": "application/json"})
        answer: str = json.load(connection.getresponse()).get("body", "")
        return answer
    except (OSError, http.client.HTTPException, ValueError):
        return ""
    finally:
        connection.close()
