"""What Telegram would not take: delivered when it does, once, in order, by whoever is there."""

from typing import Any

import pytest

from function.bot_api import Undelivered
from function.chat import Busy, Chat
from function.delivery import Delivery
from function.outbox import Outbox
from function.replies import Reply, say
from function.store import Memory
from function.telegram import Bot, Json
from tests.function.conftest import ScriptedSandbox
from tests.function.test_delivery import RecordingApi, said, sent


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
    Outbox(store, telegram.answer).retry()
    assert telegram.answered == [1, 2]


def test_the_oldest_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("function.outbox.MOST_KEPT", 3)
    telegram = Telegram()
    outbox_with(Memory(), telegram, 1, 2, 3, 4, 5).retry()
    assert telegram.answered == [3, 4, 5]


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
