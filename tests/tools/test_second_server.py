"""Polling against a Bot API server that somebody else wrote: npm's telegram-test-api."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.conftest import message
from tests.ports import free_port
from tools.serve import ROOT

TOKEN = "7100000001:AAfixture-token_0123456789abcdefghi"
SERVER = """
const module = require('telegram-test-api');
const Server = module.default || module;
new Server({port: Number(process.argv[1]), host: '127.0.0.1', protocol: 'http'}).start();
"""


@pytest.fixture
def server() -> Iterator[str]:
    node = shutil.which("node")
    found = node and subprocess.run(
        [node, "-e", "require.resolve('telegram-test-api')"], capture_output=True, check=False
    )
    if not node or not found or found.returncode:
        pytest.skip("optional: npm install telegram-test-api, and set NODE_PATH to node_modules")
    port = free_port()
    process = subprocess.Popen([node, "-e", SERVER, str(port)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while True:
        try:
            post(f"http://127.0.0.1:{port}/getUpdates", {})
            break
        except urllib3.exceptions.HTTPError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.wait()


def post(url: str, body: Any) -> Any:
    return urllib3.request("POST", url, json=body, retries=False).json()


def test_another_server_gets_the_answer(server: str, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"TOKEN": TOKEN}))
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "CONFIG_PATH": str(config),
        "TELEGRAM_API_URL": server,
    }
    post(f"{server}/sendMessage", {"botToken": TOKEN, **message("2+2")})
    process = subprocess.Popen([sys.executable, "-m", "tools.poll"], cwd=tmp_path, env=environment)
    try:
        answers: list[Any] = []
        deadline = time.monotonic() + 20
        while not answers and time.monotonic() < deadline:
            time.sleep(0.1)
            answers = post(f"{server}/getUpdates", {"token": TOKEN, "chatId": 1})["result"]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert answers[0]["message"]["text"] == "4 = 2+2"
