"""What Telegram would not take: delivered when it does, once, in order, by whoever is there."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from function.bot import Bot
from function.delivery.api_delivery import ApiDelivery
from function.delivery.outbox import Outbox
from function.errors import Busy, Undelivered
from function.state.memory import Memory
from function.state.signed import Signed
from function.telegram.types import Identity, Json
from tests.function.conftest import ScriptedSandbox
from tests.function.delivery.test_api_delivery import RecordingApi, said, sent

CHAT = 5


class Telegram:
    """Delivers what it is given, but for the update numbers in `refused`."""

    def __init__(self) -> None:
        self.refused: dict[int, Exception] = {}
        self.answered: list[int] = []

    def answer(self, update: Json) -> None:
        if error := self.refused.get(update["update_id"]):
            raise error
        self.answered.append(update["update_id"])


def new_outbox(store: Memory, telegram: Telegram) -> Outbox:
    return Outbox(store, Signed(store, "7:secret"), telegram.answer)


def outbox_with(store: Memory, telegram: Telegram, *numbers: int, chat: int = CHAT) -> Outbox:
    outbox = new_outbox(store, telegram)
    for number in numbers:
        outbox.put({"update_id": number}, chat)
    return outbox


def retry(outbox: Outbox) -> None:
    """Try all chats whose time has come, and wait for that."""
    for chat in outbox.retry():
        chat.result(10)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds pass."""
    passed = [0.0]
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + passed[0])
    return lambda seconds: passed.__setitem__(0, passed[0] + seconds)


def test_what_waits_is_delivered_in_order_and_once() -> None:
    telegram = Telegram()
    outbox = outbox_with(Memory(), telegram, 5, 3, 4)
    retry(outbox)
    retry(outbox)
    assert telegram.answered == [5, 3, 4]
    assert outbox.status() == {"waiting": 0, "bytes": 0, "oldest_seconds": 0, "dropped": 0}


@pytest.mark.parametrize("error", [Undelivered("no answer"), Busy("updates")])
def test_a_chat_that_must_wait_longer_holds_back_no_other(
    error: Exception, later: Callable[[float], None]
) -> None:
    telegram = Telegram()
    telegram.refused = {1: error, 3: error}
    outbox = new_outbox(Memory(), telegram)
    for number in (1, 2, 3, 4):
        outbox.put({"update_id": number}, chat=number)
    retry(outbox)
    assert sorted(telegram.answered) == [2, 4]
    telegram.refused = {}
    outbox.put({"update_id": 5}, chat=5)
    later(5)
    retry(outbox)
    assert sorted(telegram.answered) == [1, 2, 3, 4, 5]


def test_a_chat_is_not_tried_before_the_time_that_telegram_named(
    later: Callable[[float], None],
) -> None:
    telegram = Telegram()
    telegram.refused = {1: Undelivered("429", 600)}
    outbox = outbox_with(Memory(), telegram, 1, 2)
    retry(outbox)
    telegram.refused = {}
    later(595)
    outbox.put({"update_id": 3}, CHAT)
    retry(outbox)
    assert telegram.answered == []
    later(6)
    retry(outbox)
    assert telegram.answered == [1, 2, 3]


def test_chats_that_hang_delay_no_other() -> None:
    hang, telegram = threading.Event(), Telegram()

    def answer(update: Json) -> None:
        if update["update_id"] < 5:
            hang.wait(10)
        telegram.answer(update)

    store = Memory()
    outbox = Outbox(store, Signed(store, ""), answer)
    for number in range(105):
        outbox.put({"update_id": number}, chat=number)
    tries = outbox.retry()
    for chat in tries[5:]:
        chat.result(10)
    assert sorted(telegram.answered) == list(range(5, 105))
    assert outbox.retry() == []  # those that hang are not tried a second time meanwhile
    hang.set()
    for chat in tries:
        chat.result(10)


def test_a_mistake_of_ours_is_not_repeated() -> None:
    telegram = Telegram()
    telegram.refused = {1: RuntimeError("a mistake")}
    outbox = outbox_with(Memory(), telegram, 1, 2)
    retry(outbox)
    telegram.refused = {}
    retry(outbox)
    assert telegram.answered == [2]


def test_another_that_shares_the_store_goes_on_with_what_one_left() -> None:
    store, telegram = Memory(), Telegram()
    outbox_with(store, telegram, 1, 2)
    other = new_outbox(store, telegram)
    for _ in range(2):
        other.adopt()
        retry(other)
    assert telegram.answered == [1, 2]


@pytest.mark.parametrize(("name", "most"), [("MOST_UPDATES", 3), ("MOST_BYTES", 120)])
def test_the_oldest_go_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(f"function.delivery.outbox.{name}", most)
    store, telegram = Memory(), Telegram()
    outbox = new_outbox(store, telegram)
    for number in (1, 2, 3, 4, 5):
        outbox.put({"update_id": number}, chat=number % 2)
    assert outbox.status()["waiting"] == 3
    assert outbox.status()["dropped"] == 2
    assert outbox.status()["bytes"] <= 120
    other = new_outbox(store, telegram)
    other.adopt()
    retry(other)
    assert sorted(telegram.answered) == [3, 4, 5]


@pytest.mark.parametrize(
    "row", ["{not json", "[1]", "{}", '{"chat": 5, "update": {}}', "[" * 100_000, "5"]
)
@pytest.mark.parametrize("is_signed", [True, False])
def test_a_row_that_cannot_be_read_is_deleted_and_holds_back_nothing(
    row: str, is_signed: bool
) -> None:
    store, telegram = Memory(), Telegram()
    outbox_with(store, telegram, 1, 2)
    if is_signed:
        Signed(store, "7:secret").set("outbox:1", row, 100)
    else:
        store.set("outbox:1", row, 100)
    other = new_outbox(store, telegram)
    other.adopt()
    retry(other)
    assert telegram.answered == [2]
    assert store.get("outbox:1") is None


def test_a_count_that_is_no_number_stops_nothing() -> None:
    store, telegram = Memory(), Telegram()
    store.set("outbox", "abc", 1000)
    outbox = outbox_with(store, telegram, 1)
    outbox.adopt()
    retry(outbox)
    assert telegram.answered == [1]


def test_a_store_that_is_lost_for_a_while_loses_nothing(later: Callable[[float], None]) -> None:
    store, telegram = LostForAWhile(), Telegram()
    telegram.refused = {1: Undelivered("no answer")}
    outbox = outbox_with(store, telegram, 1)
    retry(outbox)
    store.is_lost = True
    outbox.put({"update_id": 2}, CHAT)
    store.is_lost = False
    telegram.refused = {}
    later(5)
    retry(outbox)
    assert sorted(telegram.answered) == [1, 2]


def test_nothing_waits_for_ever(later: Callable[[float], None]) -> None:
    telegram = Telegram()
    telegram.refused = {1: Undelivered("no answer")}
    outbox = outbox_with(Memory(), telegram, 1)
    later(7300)
    retry(outbox)
    telegram.refused = {}
    retry(outbox)
    assert telegram.answered == []


def test_a_chats_later_messages_do_not_overtake_what_waits(
    scripted: ScriptedSandbox, later: Callable[[float], None]
) -> None:
    api: Any = RecordingApi()
    store = Memory()
    delivery = ApiDelivery(Bot(scripted, store, Identity()), store, Signed(store, ""), api)
    api.fails = refuse
    delivery.accept(sent(1, "1", message_id=1))
    api.fails = lambda call: None
    delivery.accept(sent(2, "2", message_id=2))
    other = {"chat": {"id": 77, "type": "private"}, "from": {"id": 77}}
    delivery.accept(sent(3, "3", message_id=3, **other))
    later(5)
    retry(delivery.outbox)
    delivery.accept(sent(4, "4", message_id=4))
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
    scripted: ScriptedSandbox, later: Callable[[float], None]
) -> None:
    api: Any = RecordingApi()
    store = Memory()
    delivery = ApiDelivery(Bot(scripted, store, Identity()), store, Signed(store, ""), api)
    api.fails = refuse
    delivery.accept(sent(1, "2+2"))
    delivery.accept({"update_id": 2, "inline_query": {"id": "7", "from": {"id": 5}, "query": "1"}})
    api.fails = lambda call: None
    later(5)
    retry(delivery.outbox)
    assert said(api) == [("sendMessage", "2+2 = 2+2")]  # a query is over by then
    assert scripted.programs == ["2+2", "1"]


def refuse(call: Json) -> None:
    raise Undelivered("sendMessage: no answer")
