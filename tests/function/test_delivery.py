"""Answers that travel by calls of their own: in order, edited in place, as files, tried again."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from function import delivery as module
from function.bot_api import Refused, Undelivered
from function.chat import Busy, Chat
from function.delivery import Delivery
from function.store import Memory
from function.telegram import Bot, Json
from sandbox.sandbox import Outcome
from tests.conftest import message
from tests.function.conftest import ScriptedSandbox

Deliver = Callable[[Json], Any]


class RecordingApi:
    """Does nothing but number the messages that it is given; `fails` may raise instead."""

    def __init__(self) -> None:
        self.calls: list[Json] = []
        self.files: list[Any] = []
        self.fails: Deliver = lambda call: None

    def deliver(self, call: Json, files: Any = None) -> Any:
        self.fails(call)
        self.calls.append(call)
        self.files.append(files)
        return {"message_id": 1000 + len(self.calls)}


@pytest.fixture
def api() -> RecordingApi:
    return RecordingApi()


@pytest.fixture
def delivery(scripted: ScriptedSandbox, api: Any) -> Iterator[Delivery]:
    store = Memory()
    chat = Chat(scripted, store, Bot(), fetch=lambda file_id, most: "6*7")
    started = Delivery(chat, store, api)
    yield started
    started.close()


def sent(update_id: int, text: str, kind: str = "message", **fields: Any) -> Json:
    return {"update_id": update_id, kind: message(text, **fields)}


def said(api: RecordingApi) -> list[tuple[str, str]]:
    return [(call["method"], call.get("text", call.get("caption", ""))) for call in api.calls]


def test_taken_updates_are_answered_before_the_end(delivery: Delivery, api: RecordingApi) -> None:
    for number in range(20):
        delivery.take(sent(number, str(number), chat={"id": number + 1, "type": "private"}))
    delivery.close()
    assert sorted(call["chat_id"] for call in api.calls) == list(range(1, 21))


def test_the_messages_of_a_chat_are_answered_in_turn(
    delivery: Delivery, api: RecordingApi, scripted: ScriptedSandbox
) -> None:
    first, turn = threading.Event(), threading.Lock()

    def one_at_a_time(source: str) -> Outcome:
        if source != "9":
            assert turn.acquire(blocking=False)
            first.wait(10)
            time.sleep(0.02)
            turn.release()
        return Outcome("ok", source)

    scripted.script = one_at_a_time
    for number in range(5):
        delivery.take(sent(number, str(number), message_id=number + 1))
    delivery.take(sent(9, "9", chat={"id": 77, "type": "private"}))
    deadline = time.monotonic() + 10
    while not api.calls and time.monotonic() < deadline:
        time.sleep(0.01)
    assert api.calls[0]["chat_id"] == 77  # another chat does not wait
    first.set()
    delivery.close()
    assert [text[0] for _, text in said(api)[1:]] == ["0", "1", "2", "3", "4"]


def test_a_repeat_is_not_delivered_again(delivery: Delivery, api: RecordingApi) -> None:
    delivery.answer(sent(1, "2+2"))
    delivery.answer(sent(1, "2+2"))
    assert len(api.calls) == 1


def test_an_edit_changes_the_earlier_answer(delivery: Delivery, api: RecordingApi) -> None:
    delivery.answer(sent(1, "2+2", message_id=50))
    delivery.answer(sent(2, "2+3", "edited_message", message_id=50))
    delivery.answer(sent(3, "2+4", "edited_message", message_id=50))
    assert said(api)[1:] == [("editMessageText", "2+3 = 2+3"), ("editMessageText", "2+4 = 2+4")]
    assert [call["message_id"] for call in api.calls[1:]] == [1001, 1001]


def test_an_answer_that_is_gone_is_sent_anew(delivery: Delivery, api: RecordingApi) -> None:
    def refuse_edits(call: Json) -> None:
        if call["method"] == "editMessageText":
            raise Refused("editMessageText", 400, "Bad Request: message to edit not found", {})

    api.fails = refuse_edits
    delivery.answer(sent(1, "2+2", message_id=50))
    delivery.answer(sent(2, "2+3", "edited_message", message_id=50))
    assert said(api)[1] == ("sendMessage", "2+3 = 2+3")
    assert api.calls[1]["reply_parameters"]["message_id"] == 50


def test_long_output_comes_as_a_file(
    delivery: Delivery, api: RecordingApi, scripted: ScriptedSandbox
) -> None:
    scripted.script = lambda source: Outcome("ok", "x" * 10000)
    delivery.answer(sent(1, "f()"))
    [(method, caption)] = said(api)
    assert method == "sendDocument"
    assert len(caption) <= 1024
    assert api.files == [{"document": ("output.txt", b"x" * 10000)}]


def test_a_python_file_is_fetched_and_run(delivery: Delivery, api: RecordingApi) -> None:
    document = {"file_id": "F1", "file_name": "task.py"}
    delivery.answer(sent(1, "", document=document))
    assert said(api) == [("sendMessage", "6*7 = 6*7")]


def test_an_inline_query_is_answered(delivery: Delivery, api: RecordingApi) -> None:
    query = {"id": "77", "from": {"id": 5}, "query": "2+2", "offset": ""}
    delivery.answer({"update_id": 1, "inline_query": query})
    assert [call["method"] for call in api.calls] == ["answerInlineQuery"]


@pytest.mark.parametrize(
    "error", [Undelivered("sendMessage: no answer"), Busy(module.Reply(module.say("full")), 0)]
)
def test_what_fails_for_a_while_is_tried_again(
    delivery: Delivery, api: RecordingApi, error: Exception
) -> None:
    failures = iter([error, error])

    def fail_twice(call: Json) -> None:
        if failure := next(failures, None):
            raise failure

    api.fails = fail_twice
    delivery.answer(sent(1, "2+2"))
    assert said(api) == [("sendMessage", "2+2 = 2+2")]


def test_who_cannot_be_served_is_told_so_in_the_end(
    delivery: Delivery,
    api: RecordingApi,
    scripted: ScriptedSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    scripted.script = lambda source: Outcome("busy")
    delivery.answer(sent(1, "2+2"))
    assert "try again" in said(api)[0][1]


@pytest.mark.parametrize(
    "error", [Refused("sendMessage", 400, "CHAT_WRITE_FORBIDDEN", {}), RuntimeError("a mistake")]
)
def test_what_fails_for_good_does_not_stop_the_next(
    delivery: Delivery, api: RecordingApi, error: Exception
) -> None:
    def fail(call: Json) -> None:
        if call["text"].startswith("1"):
            raise error

    api.fails = fail
    delivery.take(sent(1, "1"))
    delivery.take(sent(2, "2"))
    delivery.close()
    assert said(api) == [("sendMessage", "2 = 2")]


def test_more_than_can_wait_is_refused(
    delivery: Delivery, scripted: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    release = threading.Event()

    def wait(source: str) -> Outcome:
        release.wait(10)
        return Outcome("ok", "4")

    scripted.script = wait
    delivery.take(sent(1, "1"))
    delivery.take(sent(2, "2"))
    with pytest.raises(Busy):
        delivery.take(sent(3, "3"))
    release.set()


def test_what_asks_for_nothing_is_not_kept(delivery: Delivery, api: RecordingApi) -> None:
    delivery.take({"update_id": 1, "poll": {}})
    delivery.close()
    assert api.calls == []
