"""A week of updates in a minute: repeated, out of order, and over connections that break."""

import http.client
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.bot_api_server import BotApiServer, Json, running, webhook_problems
from tests.conftest import Service

SECRET = "fixture-secret"
CHATS = 40
UPDATES_A_CHAT = 20
CONNECTIONS = 16
REPEATED = 0.15  # of the updates, after they were answered
BROKEN = 0.15  # of the attempts: half before the update is sent wholly, half before the answer
LOST = "lost"  # an attempt whose connection the other side broke


class Telegram:
    """The server's side of a webhook: a chat's updates one by one, each until it is taken."""

    def __init__(self, url: str, seed: int, broken: float = BROKEN) -> None:
        self._broken = broken
        self._host = url.removeprefix("http://")
        self._random = random.Random(seed)
        self.attempts: Counter[str] = Counter()
        self.answers: dict[int, list[Any]] = {}
        self._lock = threading.Lock()

    def deliver(self, updates: Iterable[Json]) -> None:
        """Deliver the updates of a chat."""
        for update in updates:
            self._until_taken(update)
            if self._random.random() < REPEATED:
                self._until_taken(update)

    def _until_taken(self, update: Json) -> None:
        while True:
            status, answer = self._attempt(update)
            with self._lock:
                self.attempts[str(status)] += 1
                if status == 200:
                    self.answers.setdefault(update["update_id"], []).append(answer)
            if status == 200:
                return
            assert status in (503, "cut", "broken", LOST), (status, answer)
            if status in (503, LOST):
                time.sleep(0.1)

    def _attempt(self, update: Json) -> tuple[int | str, Any]:
        body = json.dumps(update).encode()
        connection = http.client.HTTPConnection(self._host, timeout=60)
        headers = {"Content-Type": "application/json", "X-Telegram-Bot-Api-Secret-Token": SECRET}
        fate = self._random.random() / self._broken if self._broken else 1
        try:
            if fate < 0.5:
                connection.putrequest("POST", "/webhook")
                for name, value in (headers | {"Content-Length": str(len(body))}).items():
                    connection.putheader(name, value)
                connection.endheaders(body[: len(body) // 2])
                return "broken", None
            connection.request("POST", "/webhook", body, headers)
            if fate < 1:
                time.sleep(self._random.random() / 20)
                return "cut", None
            response = connection.getresponse()
            content = response.read()
            return response.status, json.loads(content) if content else None
        except (OSError, http.client.HTTPException):
            return LOST, None
        finally:
            if connection.sock and fate < 1:  # reset, as a machine does that goes away
                linger = b"\1\0\0\0\0\0\0\0"
                connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.close()


def week(seed: int) -> list[list[Json]]:
    """Return the updates of every chat; `update_id` rises over all of them, as Telegram's does."""
    choose = random.Random(seed)
    chats: list[list[Json]] = [[] for _ in range(CHATS)]
    for number in range(1, CHATS * UPDATES_A_CHAT + 1):
        chat = choose.randrange(CHATS)
        content = choose.choices([program, edit, query, membership], [70, 10, 10, 10])[0]
        chats[chat].append({"update_id": number} | content(number, chat + 1, chats[chat]))
    for updates in chats:
        for index in range(len(updates) - 1):
            both = updates[index : index + 2]
            if all("message" in one for one in both) and choose.random() < 0.2:
                updates[index : index + 2] = both[::-1]
    return chats


def program(number: int, chat: int, _: list[Json]) -> Json:
    text = f"print({number}, random.random())"
    sender = {"id": chat, "is_bot": False, "first_name": "Ada"}
    place = {"id": chat, "type": "private"}
    return {"message": {"message_id": number, "chat": place, "from": sender, "text": text}}


def edit(number: int, chat: int, earlier: list[Json]) -> Json:
    messages = [update["message"] for update in earlier if "message" in update]
    if not messages:
        return program(number, chat, earlier)
    return {"edited_message": messages[-1] | {"text": f"print({number}, random.random())"}}


def query(number: int, chat: int, _: list[Json]) -> Json:
    sender = {"id": chat, "is_bot": False, "first_name": "Ada"}
    return {"inline_query": {"id": str(number), "from": sender, "query": f"{number}+1"}}


def membership(number: int, chat: int, _: list[Json]) -> Json:
    return {"my_chat_member": {"chat": {"id": chat, "type": "private"}, "date": number}}


def replay(service: Service, chats: list[list[Json]], seed: int) -> Telegram:
    telegram = Telegram(service.url, seed)
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(telegram.deliver, chats))
    assert telegram.answers.keys() == {update["update_id"] for chat in chats for update in chat}
    assert not telegram.attempts[LOST]
    assert telegram.attempts["cut"] > 20
    assert telegram.attempts["broken"] > 20
    assert "Traceback" not in service.logs()
    return telegram


def test_in_responses_each_update_is_answered_once_and_none_is_lost(
    start_service: Callable[..., Service], tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"WEBHOOK_SECRET": SECRET}))
    chats = week(seed=1)
    telegram = replay(start_service(CONFIG_PATH=str(config)), chats, seed=2)
    for update in (update for chat in chats for update in chat):
        number = update["update_id"]
        answer, *repeated = telegram.answers[number]
        assert webhook_problems(answer) == []
        assert all(one == answer for one in repeated)  # a second run would print another number
        if "my_chat_member" in update:
            assert answer is None
        elif "inline_query" in update:
            assert answer["inline_query_id"] == str(number)
            assert str(number + 1) in answer["results"][0]["input_message_content"]["message_text"]
        else:
            assert answer["text"].startswith(f"{number} ")


def test_by_calls_each_update_is_answered_once_and_none_is_lost(
    start_service: Callable[..., Service], tmp_path: Path
) -> None:
    moods = [None] * 40 + ["drop", (500, "Internal"), "garble", (429, "slow", {"retry_after": 1})]
    choose = random.Random(3)
    with running() as server:
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"TOKEN": server.token, "WEBHOOK_SECRET": SECRET}))
        environment = {"DELIVERY": "api", "TELEGRAM_API_URL": server.url}
        service = start_service(CONFIG_PATH=str(config), **environment)
        chats = week(seed=4)
        for method in ("sendMessage", "editMessageText"):
            server.be(method, *choose.choices(moods, k=CHATS * UPDATES_A_CHAT))
        replay(service, chats, seed=5)
        edits = [one for chat in chats for one in chat if "edited_message" in one]
        sent = [one for chat in chats for one in chat if "message" in one]
        expected = Counter(one["update_id"] for one in edits + sent)
        deadline = time.monotonic() + 30  # some wait in the outbox
        while done(server) != expected and time.monotonic() < deadline:
            time.sleep(0.2)
        assert done(server) == expected
        assert len(server.sent) == len(sent)  # edits changed what was there


def done(server: BotApiServer) -> Counter[int]:
    """Return how often each update's answer was sent, or put into an earlier one."""
    with server.lock:
        return Counter(int(text.split()[0]) for text in server.said)
