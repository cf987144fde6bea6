"""What Telegram would not take: delivered when it does, once, in order, by whoever is there."""

import time
from typing import Any

import pytest

from function.answers.replies import Reply, say
from function.bot import Busy, Chat
from function.delivery.delivery import Delivery
from function.delivery.outbox import Outbox
from function.errors import Undelivered
from function.state.memory import Memory
from function.telegram.bot_api import Bot, Json
from tests.function.conftest import ScriptedSandbox
from tests.function.delivery.test_delivery import RecordingApi, said, sent


class Telegram:
    """Delivers what it is given, but for the update numbers in `refused`."""

    def __init__(self) -> None:
        self.refused: dict[int, Exception] = {}
        self.answered: list[int] = []

    def answer(self, update: Json) -> None:
        if error := self.refused.get(update["update_id"]):
            raise error
        self.answered.append(update["update_id"])


def outbox_with(store: Memory, telegram: Telegram, *numbers: int) -> Outbox:
    outbox = Outbox(store, telegram.answer)
    for number in numbers:
        outbox.put({"update_id": number})
    return outbox


def test_what_waits_is_delivered_in_order_and_once() -> None:
    telegram = Telegram()
    outbox = outbox_with(Memory(), telegram, 5, 3, 4)
    outbox.retry()
    outbox.retry()
    assert telegram.answered == [5, 3, 4]


@pytest.mark.parametrize("error", [Undelivered("no answer"), Busy(Reply(say("Busy.")), 1)])
def test_what_must_wait_longer_holds_back_nothing_else(error: Exception) -> None:
    telegram = Telegram()
    telegram.refused = {1: error, 3: error}
    outbox = outbox_with(Memory(), telegram, 1, 2, 3, 4)
    outbox.retry()
    assert telegram.answered == [2, 4]
    telegram.refused = {}
    outbox.put({"update_id": 5})
    outbox.retry()
    assert telegram.answered == [2, 4, 1, 3, 5]


def test_a_mistake_of_ours_is_not_repeated() -> None:
    telegram = Telegram()
    telegram.refused = {1: RuntimeError("a mistake")}
    outbox = outbox_with(Memory(), telegram, 1, 2)
    outbox.retry()
    telegram.refused = {}
    outbox.retry()
    assert telegram.answered == [2]


def test_another_that_shares_the_store_goes_on_with_what_one_left() -> None:
    store, telegram = Memory(), Telegram()
    outbox_with(store, telegram, 1, 2)
    other = Outbox(store, telegram.answer)
    other.retry()
    other.retry()
    assert telegram.answered == [1, 2]


def test_the_oldest_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("function.delivery.outbox.MOST_KEPT", 3)
    store, telegram = Memory(), Telegram()
    outbox_with(store, telegram, 1, 2, 3, 4, 5)
    Outbox(store, telegram.answer).retry()
    assert telegram.answered == [3, 4, 5]


def test_a_store_that_is_lost_for_a_while_loses_nothing() -> None:
    store, telegram = LostForAWhile(), Telegram()
    telegram.refused = {1: Undelivered("no answer")}
    outbox = outbox_with(store, telegram, 1)
    outbox.retry()
    store.is_lost = True
    outbox.put({"update_id": 2})
    store.is_lost = False
    telegram.refused = {}
    outbox.retry()
    assert sorted(telegram.answered) == [1, 2]


def test_nothing_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    telegram = Telegram()
    telegram.refused = {1: Undelivered("no answer")}
    outbox = outbox_with(Memory(), telegram, 1)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 7300)
    outbox.retry()
    telegram.refused = {}
    outbox.retry()
    assert telegram.answered == []


def test_a_chats_later_messages_do_not_overtake_what_waits(scripted: ScriptedSandbox) -> None:
    api: Any = RecordingApi()
    store = Memory()
    delivery = Delivery(Chat(scripted, store, Bot()), store, api)
    api.fails = refuse
    delivery.take(sent(1, "1", message_id=1))
    api.fails = lambda call: None
    delivery.take(sent(2, "2", message_id=2))
    other = {"chat": {"id": 77, "type": "private"}, "from": {"id": 77}}
    delivery.take(sent(3, "3", message_id=3, **other))
    delivery.outbox.retry()
    delivery.take(sent(4, "4", message_id=4))
    assert [text[0] for _, text in said(api)] == ["3", "1", "2", "4"]


class LostForAWhile(Memory):
    """A store that counts and keeps elsewhere while it is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.is_lost = False
        self._elsewhere = Memory()

    def count(self, key: str, seconds: float) -> int:
        return self._elsewhere.count(key, seconds) if self.is_lost else super().count(key, seconds)

    def set(self, key: str, value: str, seconds: float) -> None:
        if not self.is_lost:
            super().set(key, value, seconds)


def test_a_program_is_not_run_again_for_an_answer_that_came_late(
    scripted: ScriptedSandbox,
) -> None:
    api: Any = RecordingApi()
    store = Memory()
    delivery = Delivery(Chat(scripted, store, Bot()), store, api)
    api.fails = refuse
    delivery.take(sent(1, "2+2"))
    delivery.take({"update_id": 2, "inline_query": {"id": "7", "from": {"id": 5}, "query": "1"}})
    api.fails = lambda call: None
    delivery.outbox.retry()
    assert said(api) == [("sendMessage", "2+2 = 2+2")]  # a query is over by then
    assert scripted.programs == ["2+2", "1"]


def refuse(call: Json) -> None:
    raise Undelivered("sendMessage: no answer")
