"""The service with DELIVERY=api: gunicorn, real calls, and a strict Bot API server with moods.

What was taken is answered: no test here waits for an answer after the update's status.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bot_api_server import BotApiServer, running
from tests.conftest import Service, message

SECRET = "fixture-secret"


@pytest.fixture
def telegram() -> Iterator[BotApiServer]:
    with running() as server:
        yield server


@pytest.fixture
def service(
    start_service: Callable[..., Service], telegram: BotApiServer, tmp_path: Path
) -> Service:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"TOKEN": telegram.token, "WEBHOOK_SECRET": SECRET}))
    return start_service(CONFIG_PATH=str(config), DELIVERY="api", TELEGRAM_API_URL=telegram.url)


def post(service: Service, update_id: int, kind: str = "message", **fields: Any) -> int:
    """Post an update and return the status; the body must be empty."""
    update = {"update_id": update_id, kind: fields}
    headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
    response = service.request("POST", "/webhook", update, **headers)
    assert response.data == b"" or response.status != 200
    return int(response.status)


def send(service: Service, update_id: int, text: str, kind: str = "message", **fields: Any) -> int:
    return post(service, update_id, kind, **message(text, **fields))


def test_the_service_learns_its_name_and_answers_by_a_call(
    service: Service, telegram: BotApiServer
) -> None:
    assert len(telegram.made("getMe")) == 1
    group = {"id": -100123, "type": "supergroup"}
    assert send(service, 1, f"/cl@{telegram.username} 2+2", chat=group) == 200
    [call] = telegram.made("sendMessage")
    assert (call["chat_id"], call["text"]) == (-100123, "4 = 2+2")


def test_an_edit_changes_the_answer_in_place(service: Service, telegram: BotApiServer) -> None:
    send(service, 1, "2+2", message_id=50)
    send(service, 2, "2+3", "edited_message", message_id=50)
    send(service, 3, "2+3", "edited_message", message_id=50)
    assert [sent["text"] for sent in telegram.sent] == ["5 = 2+3"]
    assert len(telegram.calls) == 3  # getMe, sendMessage, editMessageText


def test_long_output_comes_as_a_file(service: Service, telegram: BotApiServer) -> None:
    send(service, 1, 'print("x" * 10000)')
    [document] = [call for call in telegram.calls if call.method == "sendDocument"]
    assert document.files == {"document": ("output.txt", b"x" * 10000)}


def test_a_python_file_is_fetched_and_run(service: Service, telegram: BotApiServer) -> None:
    telegram.files["F1"] = b"for i in range(3):\r\n    print(i)\r\n"
    telegram.files["F2"] = b"#" * 20000
    chat = message("")["chat"]
    for number, file_id in enumerate(telegram.files):
        document = {"file_id": file_id, "file_name": "task.py"}
        post(service, number, message_id=1, chat=chat, document=document)
    assert [sent["text"].split()[0] for sent in telegram.sent] == ["0", "This"]


def test_an_inline_query_is_answered_from_a_gateway_too(
    service: Service, telegram: BotApiServer
) -> None:
    post(service, 1, "inline_query", id="77", query="2+2", offset="", **{"from": {"id": 5}})
    query = {"from_user_id": 5, "inline_query_id": "78", "query": "2+2"}
    service.request("POST", "/inline", query, Authorization=f"Bearer {SECRET}")
    assert [call["inline_query_id"] for call in telegram.made("answerInlineQuery")] == ["77", "78"]


@pytest.mark.parametrize(
    "mood",
    [
        (429, "Too Many Requests: retry after 1", {"retry_after": 1}),
        (500, "Internal Server Error"),
        "drop",
        "garble",
    ],
)
def test_a_mood_of_the_server_delays_the_answer_and_no_more(
    service: Service, telegram: BotApiServer, mood: Any
) -> None:
    telegram.be("sendMessage", mood)
    assert send(service, 1, "2+2") == 200
    assert [sent["text"] for sent in telegram.sent] == ["4 = 2+2"]


def test_what_telegram_takes_no_answer_to_is_taken_and_answered_when_it_does(
    service: Service, telegram: BotApiServer
) -> None:
    telegram.be("sendMessage", (429, "Too Many Requests: retry after 4", {"retry_after": 4}))
    send(service, 1, "print(random.random())")
    deadline = time.monotonic() + 30
    while not telegram.sent and time.monotonic() < deadline:
        time.sleep(0.1)
    first, second = telegram.made("sendMessage")
    assert first == second  # the program did not run again
    assert len(telegram.sent) == 1


def test_a_closed_chat_is_left_and_a_moved_one_followed(
    service: Service, telegram: BotApiServer
) -> None:
    telegram.blocked.add(5)
    telegram.migrated[-7] = -1007
    send(service, 1, "2+2", chat={"id": 5, "type": "private"})
    send(service, 2, "/cl 2+3", chat={"id": -7, "type": "group"})
    assert [(sent["chat_id"], sent["text"]) for sent in telegram.sent] == [(-1007, "5 = 2+3")]
    assert "Traceback" not in service.logs()
