"""Serves the bot on this machine with gunicorn; Ctrl-C ends it.

Settings are in the environment (see function/README.md). Exits with 0 so ended, 1 if it cannot
listen, 2 if it cannot start; the log says why.
"""

import argparse
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from function import __version__
from function.settings import SettingsError, load_settings

ROOT = Path(__file__).resolve().parent.parent

EXAMPLE: dict[str, Any] = {
    "message_id": 1,
    "date": 1,
    "chat": {"id": 1, "type": "private"},
    "from": {"id": 1, "is_bot": False, "first_name": "You"},
    "text": "2+2",
}


def question(bind: str, *, needs_secret: bool) -> str:
    """Return a shell command that asks the service at `bind` what 2+2 is."""
    body = shlex.quote(json.dumps(EXAMPLE))
    secret = '-H "Authorization: Bearer $WEBHOOK_SECRET" ' if needs_secret else ""
    return f"curl -s http://{bind}/message {secret}-H 'Content-Type: application/json' -d {body}"


def command(bind: str) -> list[str]:
    """Return the command that serves at `bind`, HOST:PORT; to be run in ROOT."""
    gunicorn = [sys.executable, "-m", "gunicorn", "--config", "python:function.gunicorn_conf"]
    return [*gunicorn, "--bind", bind]


def main(arguments: list[str] | None = None) -> None:
    """Replace this process with gunicorn."""
    parser = argparse.ArgumentParser(prog="serve", description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1:8000", metavar="HOST:PORT")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="instead of policy.yaml")
    parser.add_argument("--version", action="version", version=__version__)
    options = parser.parse_args(arguments)
    port = re.fullmatch(r"(?:[\w.-]+|\[[\w:.]+\]):(\d+)", options.bind)
    if not port or int(port[1]) > 65535:
        parser.error(f"--bind: {options.bind} is not HOST:PORT, such as 127.0.0.1:8000")
    if options.policy:
        if not options.policy.is_file():
            parser.error(f"--policy: no such file: {options.policy}")
        os.environ["POLICY_PATH"] = str(options.policy)
    for name in ("CONFIG_PATH", "POLICY_PATH", "STORE"):  # as the caller means them
        if (path := os.environ.get(name)) and "://" not in path:
            os.environ[name] = os.path.abspath(path)
    if os.environ.get("LOG_FORMAT") != "json":
        try:
            needs_secret = bool(load_settings(os.environ).webhook_secret)
        except SettingsError:  # the service says so in its log
            needs_secret = False
        asked = question(options.bind, needs_secret=needs_secret)
        where = f"Open http://{options.bind}/ in a browser"
        print(f"{where}, or ask it in another shell:\n  {asked}", flush=True)
    os.chdir(ROOT)
    os.execv(sys.executable, command(options.bind))  # nosec B606


if __name__ == "__main__":
    main()
