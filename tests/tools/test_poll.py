"""Answering by asking a Bot API server for updates."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from function.errors import Undelivered
from function.telegram.client import BotApi
from tests.bot_api_server import BotApiServer, Json, running
from tests.conftest import message
from tools import poll
from tools.serve import ROOT

Start = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def server() -> Iterator[BotApiServer]:
    with running() as state:
        yield state


@pytest.fixture
def start(server: BotApiServer, tmp_path: Path) -> Iterator[Start]:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"TOKEN": server.token}))
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "CONFIG_PATH": str(config),
        "TELEGRAM_API_URL": server.url,
        "STORE": str(tmp_path / "state.db"),
    }
    processes: list[subprocess.Popen[str]] = []

    def run() -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "tools.poll"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()


def update(number: int, text: str) -> Json:
    return {"update_id": number, "message": message(text, message_id=number)}


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def texts(server: BotApiServer) -> list[str]:
    return [each["text"] for each in server.sent]


def end(process: "subprocess.Popen[str]") -> str:
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 0, output
    assert "Traceback" not in output
    return output


def test_updates_are_answered_and_then_confirmed(start: Start, server: BotApiServer) -> None:
    server.updates = [update(1, "2+2"), update(2, "print(3)")]
    process = start()
    wait_for(lambda: len(server.sent) == 2)
    server.updates.append(update(3, "/help"))
    wait_for(lambda: len(server.sent) == 3)
    output = end(process)
    assert texts(server)[:2] == ["4 = 2+2", "3"]
    assert server.updates == []
    assert f"@{server.username}" in output
    asked = server.made("getUpdates")
    assert asked[0]["allowed_updates"] == ["message", "edited_message", "inline_query"]
    assert [each["offset"] for each in asked[:1] + asked[-1:]] == [0, 4]


def test_an_update_is_confirmed_only_after_its_answer(start: Start, server: BotApiServer) -> None:
    server.updates = [update(1, "2+2")]
    server.be("sendMessage", "hang")
    process = start()
    wait_for(lambda: any(call.method == "getUpdates" for call in server.calls))
    time.sleep(1)
    process.kill()
    process.wait()
    assert [each["offset"] for each in server.made("getUpdates")] == [0]
    process = start()
    wait_for(lambda: texts(server) == ["4 = 2+2"])
    end(process)
    assert server.updates == []


def test_what_telegram_does_not_take_is_not_confirmed(start: Start, server: BotApiServer) -> None:
    server.updates = [update(1, "2+2"), update(2, "2+3")]
    server.be("sendMessage", (429, "slow", {"retry_after": 30}))
    process = start()
    wait_for(lambda: len(server.made("sendMessage")) == 1)
    assert "Traceback" not in end(process)
    assert [one["update_id"] for one in server.updates] == [1, 2]
    process = start()
    wait_for(lambda: len(server.sent) == 2)
    end(process)
    assert texts(server) == ["4 = 2+2", "5 = 2+3"]


def test_an_update_that_never_works_does_not_hold_back_the_others_for_ever(
    server: BotApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        """Fails with the first update, and is told to end during the second."""

        def answer(self, update: Json) -> None:
            tried.append(update["update_id"])
            if update["update_id"] == 1:
                raise Undelivered("sendMessage: 500", 1)
            signal.raise_signal(signal.SIGTERM)
            finished.append(update["update_id"])

    monkeypatch.setattr(poll.time, "sleep", lambda seconds: None)
    tried: list[int] = []
    finished: list[int] = []
    server.updates = [update(1, "2+2"), update(2, "2+3")]
    api: Any = BotApi(server.token, server.url)
    delivery: Any = Failing()
    with kept_handlers(), pytest.raises(KeyboardInterrupt):
        poll.answer_all(api, delivery)
    assert tried == [1] * poll.TRIES + [2]
    assert finished == [2]
    assert server.updates == []


@contextmanager
def kept_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_an_answer_in_hand_is_finished_on_interrupt(start: Start, server: BotApiServer) -> None:
    server.updates = [update(1, "sum(range(3*10**6))"), update(2, "2+2")]
    server.be("sendMessage", 1.0)
    process = start()
    wait_for(lambda: any(call.method == "getUpdates" for call in server.calls))
    time.sleep(0.3)
    end(process)
    assert len(server.sent) + len(server.updates) == 2
    assert server.sent


def test_a_server_that_fails_is_asked_again(start: Start, server: BotApiServer) -> None:
    server.be("getUpdates", "drop", (502, "Bad Gateway"), (429, "later", {"retry_after": 1}))
    server.updates = [update(1, "2+2")]
    process = start()
    wait_for(lambda: texts(server) == ["4 = 2+2"])
    end(process)


def test_waiting_ends_at_once_on_interrupt(start: Start, server: BotApiServer) -> None:
    server.be("getUpdates", "hang")
    process = start()
    wait_for(lambda: "getMe" in [call.method for call in server.calls])
    time.sleep(0.5)
    started = time.monotonic()
    end(process)
    assert time.monotonic() - started < 5


def test_a_second_interrupt_changes_nothing(start: Start, server: BotApiServer) -> None:
    server.be("getUpdates", "hang")
    process = start()
    wait_for(lambda: "getMe" in [call.method for call in server.calls])
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    end(process)


def test_without_a_token_it_cannot_begin(start: Start, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    output, _ = (process := start()).communicate(timeout=30)
    assert process.returncode == 2
    assert "No TOKEN" in output


@pytest.mark.parametrize(
    ("mood", "said"),
    [
        ((401, "Unauthorized"), "copy it anew from @BotFather"),
        ((409, "Conflict: terminated by other getUpdates request"), "end that one first"),
    ],
)
def test_a_refusal_is_explained(
    start: Start, server: BotApiServer, mood: tuple[int, str], said: str
) -> None:
    server.be("getUpdates", mood)
    output, _ = (process := start()).communicate(timeout=30)
    assert process.returncode == 1
    assert said in output
    assert server.token not in output


def test_a_webhook_in_the_way_is_named(start: Start, server: BotApiServer) -> None:
    server.webhook = {"url": "https://example.org/webhook"}
    output, _ = (process := start()).communicate(timeout=30)
    assert process.returncode == 1
    assert "tools/webhook delete" in output
