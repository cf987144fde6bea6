"""What was accepted is answered once, whatever stops meanwhile: the service, or Telegram."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bot_api_server import BotApiServer, running
from tests.conftest import Service, message
from tests.faults.parts import RIGHT_AGAIN_WITHIN, eventually, is_right, parts

SECRET = "fixture-secret"


@pytest.fixture
def telegram() -> Iterator[BotApiServer]:
    with running() as server:
        yield server


def post(service: Service, number: int, text: str) -> object:
    user = {"id": number, "is_bot": False, "first_name": "Ada"}
    sent = message(text, message_id=number, chat=user | {"type": "private"}, **{"from": user})
    headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
    return service.request("POST", "/webhook", {"update_id": number, "message": sent}, **headers)


def test_an_order_to_stop_waits_for_a_slow_telegram(
    start_service: Callable[..., Service], telegram: BotApiServer, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"TOKEN": telegram.token, "WEBHOOK_SECRET": SECRET}))
    service = start_service(CONFIG_PATH=str(config), DELIVERY="api", TELEGRAM_API_URL=telegram.url)
    telegram.be("sendMessage", 2.0, (500, "Internal"), "drop", (429, "slow", {"retry_after": 1}), 2)
    with ThreadPoolExecutor() as threads:
        posted = [threads.submit(post, service, n, f"{n}+1") for n in range(1, 6)]
        eventually(lambda: not telegram.moods["sendMessage"])  # each is on its way
        service.process.terminate()
        assert [one.result().status for one in posted] == [200] * 5  # type: ignore[attr-defined]
    assert service.process.wait(20) == 0
    assert sorted(sent["text"] for sent in telegram.sent) == [
        f"{number + 1} = {number}+1" for number in range(1, 6)
    ]


def test_a_repeat_after_a_restart_gets_the_first_answer(
    start_service: Callable[..., Service], tmp_path: Path
) -> None:
    """Telegram repeats what was answered but not received, and it may come to another worker."""
    service = start_service(STORE=str(tmp_path / "state.db"))
    first = post(service, 7, "print(random.random())").data  # type: ignore[attr-defined]
    os.kill(parts(service).worker, signal.SIGKILL)
    eventually(lambda: is_right(service), RIGHT_AGAIN_WITHIN)
    second = post(service, 7, "print(random.random())").data  # type: ignore[attr-defined]
    assert json.loads(first)["text"] == json.loads(second)["text"]
