"""Workers and replicas killed under load: what was taken is answered, and the rest comes again."""

import itertools
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import urllib3

from function.delivery.lease import LEASE_SECONDS
from tests.bot_api_server import BotApiServer, running
from tests.conftest import Service, message
from tests.faults.parts import eventually, health, overload, parts
from tests.valkey import ValkeyServer, running_valkey

SECRET = "fixture-secret"
HEADERS = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
CHATS = 8
UPDATES_A_CHAT = 12
KILLED_AT = (15, 40, 65)  # answers

Start = Callable[..., Service]


@pytest.fixture
def telegram() -> Iterator[BotApiServer]:
    """A Bot API server that takes its time, so that answers are on their way at any moment."""
    with running() as server:
        choose = random.Random(1)
        server.be("sendMessage", *(choose.uniform(0.02, 0.2) for _ in range(1000)))
        yield server


@pytest.fixture
def start(start_service: Start, telegram: BotApiServer, tmp_path: Path) -> Start:
    """Return a function that starts a bot of that server's."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"TOKEN": telegram.token, "WEBHOOK_SECRET": SECRET}))
    fixed = {"CONFIG_PATH": str(config), "TELEGRAM_API_URL": telegram.url}
    return lambda **environment: start_service(**fixed, **({"DELIVERY": "api"} | environment))


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    with running_valkey(tmp_path) as server:
        yield server


def update(number: int, chat: int, text: str = "") -> dict[str, Any]:
    person = {"id": chat, "is_bot": False, "first_name": "Ada"}
    place = {"id": chat, "type": "private"}
    program = text or f"print({number}, random.random())"
    sent = message(program, message_id=number, chat=place, **{"from": person})
    return {"update_id": number, "message": sent}


def post(service: Service, sent: dict[str, Any]) -> Any:
    """Post an update; a connection that breaks is no response, hence no 200."""
    try:
        return service.request("POST", "/webhook", sent, **HEADERS, Connection="close")
    except urllib3.exceptions.HTTPError:
        return urllib3.HTTPResponse(status=0)


class Webhook:
    """Telegram's side: a chat's updates one by one, each at one replica after another until taken.

    `lost` has those that were taken and had no answer at that moment.
    """

    def __init__(self, telegram: BotApiServer, *replicas: Service) -> None:
        self._telegram = telegram
        self._replicas = itertools.cycle(replicas)
        self.lost: list[int] = []
        self.tries = 0

    def deliver(self, meanwhile: Callable[[], None]) -> None:
        """Deliver all chats' updates, with something that happens meanwhile."""
        with ThreadPoolExecutor(CHATS) as threads:
            chats = [threads.submit(self._deliver_chat, chat) for chat in range(1, CHATS + 1)]
            meanwhile()
            for chat in chats:
                chat.result()

    def _deliver_chat(self, chat: int) -> None:
        numbers = [chat * 100 + number for number in range(UPDATES_A_CHAT)]
        random.Random(chat).shuffle(numbers)
        for number in numbers:
            while post(next(self._replicas), update(number, chat)).status != 200:
                self.tries += 1
                time.sleep(0.05)
            if not answers(self._telegram)[number]:
                self.lost.append(number)


def answers(telegram: BotApiServer) -> Counter[int]:
    """Return how often each update was answered so far."""
    with telegram.lock:
        return Counter(int(text.split()[0]) for text in telegram.said)


def check_all_answered(telegram: BotApiServer, webhook: Webhook, kills: int) -> None:
    """Demand that none was lost, and that only what was under way at a kill came twice."""
    found = answers(telegram)
    assert webhook.lost == []
    assert len(found) == CHATS * UPDATES_A_CHAT
    assert found.total() - len(found) <= kills * CHATS


def test_a_worker_killed_under_load_loses_no_update(start: Start, telegram: BotApiServer) -> None:
    """With nothing but its memory: it has taken nothing that it has not answered."""
    service = start()

    def kill_workers() -> None:
        for count in KILLED_AT:
            eventually(lambda count=count: len(telegram.said) >= count, 30)  # type: ignore[misc]
            os.kill(parts(service).worker, signal.SIGKILL)

    webhook = Webhook(telegram, service)
    webhook.deliver(meanwhile=kill_workers)
    assert webhook.tries >= len(KILLED_AT)
    check_all_answered(telegram, webhook, len(KILLED_AT))


def test_a_replica_killed_under_load_loses_no_update(
    start: Start, telegram: BotApiServer, valkey: ValkeyServer
) -> None:
    one, other = (start(STORE=valkey.address) for _ in range(2))

    def kill_one() -> None:
        eventually(lambda: len(telegram.said) >= KILLED_AT[1], 30)
        os.killpg(one.process.pid, signal.SIGKILL)

    webhook = Webhook(telegram, one, other)
    webhook.deliver(meanwhile=kill_one)
    assert webhook.tries
    check_all_answered(telegram, webhook, kills=1)


def test_an_order_to_stop_under_load_loses_no_update_and_answers_none_twice(
    start: Start, telegram: BotApiServer, valkey: ValkeyServer
) -> None:
    one, other = (start(STORE=valkey.address) for _ in range(2))

    def stop_one() -> None:
        eventually(lambda: len(telegram.said) >= KILLED_AT[1], 30)
        one.process.terminate()

    webhook = Webhook(telegram, one, other)
    webhook.deliver(meanwhile=stop_one)
    check_all_answered(telegram, webhook, kills=0)
    assert one.process.wait(20) == 0


@pytest.mark.parametrize("delivery", ["reply", "api"])
def test_an_update_at_two_replicas_at_once_is_run_once_and_answered_once(
    start: Start, telegram: BotApiServer, valkey: ValkeyServer, delivery: str
) -> None:
    replicas = [start(STORE=valkey.address, DELIVERY=delivery) for _ in range(2)]
    before = served(replicas)
    numbers = range(1, 11)
    with ThreadPoolExecutor(2) as threads:
        for number in numbers:
            sent = update(number, number, f"print({number}, sum(range(10**6)), random.random())")
            both = list(threads.map(post, replicas, [sent, sent]))
            assert [response.status for response in both] == [200, 200]
            assert both[0].data == both[1].data
    assert served(replicas) == before + len(numbers)
    assert answers(telegram) == Counter(numbers if delivery == "api" else [])


def served(replicas: list[Service]) -> int:
    """Return how many programs were run."""
    return sum(health(service)["sandbox"]["guests"]["served"] for service in replicas)


def test_what_a_replica_died_over_is_taken_over_by_the_one_that_waits_for_it(
    start: Start, telegram: BotApiServer, valkey: ValkeyServer
) -> None:
    one, other = (start(STORE=valkey.address) for _ in range(2))
    telegram.moods["sendMessage"].appendleft("hang")
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(post, one, update(1, 1))
        eventually(lambda: telegram.moods["sendMessage"][0] != "hang")
        time.sleep(LEASE_SECONDS + 1)  # it lasts as long as its holder lives
        second = threads.submit(post, other, update(1, 1))
        time.sleep(1)
        assert not second.done()
        os.killpg(one.process.pid, signal.SIGKILL)
        killed = time.monotonic()
        assert second.result().status == 200
    assert time.monotonic() - killed < (LEASE_SECONDS + 2) * overload()
    assert first.result().status != 200
    assert answers(telegram) == Counter([1])


def test_what_telegram_would_not_take_is_answered_later_by_the_next_worker(
    start: Start, telegram: BotApiServer, tmp_path: Path
) -> None:
    service = start(STORE=str(tmp_path / "store.db"))
    flooded = (429, "Too Many Requests: retry after 600", {"retry_after": 600})
    telegram.moods["sendMessage"].appendleft(flooded)
    assert post(service, update(1, 1)).status == 200
    assert answers(telegram) == Counter()
    os.kill(parts(service).worker, signal.SIGKILL)
    eventually(lambda: answers(telegram) == Counter([1]), 30)


def test_while_telegram_is_slow_updates_are_refused_and_health_is_not(
    start: Start, telegram: BotApiServer
) -> None:
    service = start()
    telegram.moods["sendMessage"].extendleft([2.0] * 80)
    refused: list[str] = []
    slow = threading.Event()

    def deliver(number: int) -> None:
        while (response := post(service, update(number, number))).status != 200:
            assert response.status == 503
            refused.append(response.headers["Retry-After"])
            slow.set()
            time.sleep(int(response.headers["Retry-After"]))

    with ThreadPoolExecutor(80) as threads:
        delivered = [threads.submit(deliver, number) for number in range(1, 81)]
        assert slow.wait(20)
        started = time.monotonic()
        assert health(service)["status"] == "ok"
        assert time.monotonic() - started < overload()
        for one in delivered:
            one.result()
    assert answers(telegram) == Counter(range(1, 81))
