"""Serves the bot on this machine with gunicorn; Ctrl-C ends it."""

import argparse
import json
import os
import shlex
import socket
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

EXAMPLE: dict[str, Any] = {
    "message_id": 1,
    "date": 1,
    "chat": {"id": 1, "type": "private"},
    "from": {"id": 1, "is_bot": False, "first_name": "You"},
    "text": "2+2",
}


def question(bind: str) -> str:
    """Return a shell command that asks the service at `bind` what 2+2 is."""
    body = shlex.quote(json.dumps(EXAMPLE))
    return f"curl -s http://{bind}/message -H 'Content-Type: application/json' -d {body}"


def free_port() -> int:
    """Return a TCP port on the loopback address that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def command(bind: str) -> list[str]:
    """Return the command that serves at `bind`, HOST:PORT; to be run in ROOT."""
    return [
        sys.executable,
        "-m",
        "gunicorn",
        "--config",
        "python:function.gunicorn_conf",
        "--bind",
        bind,
    ]


def main(arguments: list[str] | None = None) -> None:
    """Replace this process with gunicorn."""
    parser = argparse.ArgumentParser(prog="serve", description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1:8000", metavar="HOST:PORT")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="instead of policy.yaml")
    options = parser.parse_args(arguments)
    if options.policy:
        if not options.policy.is_file():
            parser.error(f"--policy: no such file: {options.policy}")
        os.environ["POLICY_PATH"] = str(options.policy.resolve())
    print(
        f"Open http://{options.bind}/ in a browser, or ask it in another shell:\n"
        f"  {question(options.bind)}",
        flush=True,
    )
    os.chdir(ROOT)
    os.execv(sys.executable, command(options.bind))  # nosec B606


if __name__ == "__main__":
    main()
