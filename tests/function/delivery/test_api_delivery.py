"""Answers that travel by calls of their own: in order, edited in place, as files, once each."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from function import gunicorn_conf as server
from function.bot import Bot
from function.delivery import api_delivery as module
from function.delivery.api_delivery import ApiDelivery
from function.errors import Busy, Refused, Undelivered
from function.state.memory import Memory
from function.state.signed import Signed
from function.telegram.types import File, Identity, Json
from sandbox import Picture
from sandbox.sandbox import Outcome
from tests.conftest import message
from tests.function.conftest import ScriptedSandbox

Deliver = Callable[[Json], Any]


DOCUMENT = File("output.txt", b"x" * 10000, "text/plain; charset=utf-8")


class RecordingApi:
    """Does nothing but number the messages that it is given; `fails` may raise instead."""

    def __init__(self) -> None:
        self.calls: list[Json] = []
        self.fails: Deliver = lambda call: None

    def deliver(self, call: Json) -> Any:
        self.fails(call)
        self.calls.append(call)
        return {"message_id": 1000 + len(self.calls)}


@pytest.fixture
def api() -> RecordingApi:
    return RecordingApi()


@pytest.fixture
def delivery(scripted: ScriptedSandbox, api: Any) -> ApiDelivery:
    store = Memory()
    bot = Bot(scripted, store, Identity(), fetch=lambda file_id, most: "6*7")
    return ApiDelivery(bot, store, Signed(store, ""), api)


def sent(update_id: int, text: str, kind: str = "message", **fields: Any) -> Json:
    return {"update_id": update_id, kind: message(text, **fields)}


def said(api: RecordingApi) -> list[tuple[str, str]]:
    return [(call["method"], call.get("text", call.get("caption", ""))) for call in api.calls]


def once(error: Exception) -> Deliver:
    """Return what fails the first time."""
    failures = iter([error])

    def fail_once(call: Json) -> None:
        if failure := next(failures, None):
            raise failure

    return fail_once


def test_an_update_counts_as_taken_when_its_answer_is_there(
    delivery: ApiDelivery, api: RecordingApi
) -> None:
    begun, release = threading.Event(), threading.Event()

    def wait(call: Json) -> None:
        begun.set()
        release.wait(10)

    api.fails = wait
    with ThreadPoolExecutor() as threads:
        taken = threads.submit(delivery.answer, sent(1, "2+2"))
        begun.wait(10)
        assert not taken.done()
        release.set()
    assert said(api) == [("sendMessage", "2+2 = 2+2")]


def test_the_messages_of_a_chat_are_answered_in_turn(
    delivery: ApiDelivery, api: RecordingApi, scripted: ScriptedSandbox
) -> None:
    begun, first, turn = threading.Event(), threading.Event(), threading.Lock()

    def one_at_a_time(source: str) -> Outcome:
        if source != "9":
            assert turn.acquire(blocking=False)
            begun.set()
            first.wait(10)
            turn.release()
        return Outcome("ok", source)

    scripted.script = one_at_a_time
    with ThreadPoolExecutor() as threads:
        for number in range(5):
            threads.submit(delivery.answer, sent(number, str(number), message_id=number + 1))
            begun.wait(10)
            time.sleep(0.05)  # to be there before the next
        other = sent(9, "9", chat={"id": 77, "type": "private"})
        threads.submit(delivery.answer, other).result(10)
        assert [call["chat_id"] for call in api.calls] == [77]  # it did not wait
        first.set()
    assert [text[0] for _, text in said(api)[1:]] == ["0", "1", "2", "3", "4"]


def test_a_repeat_is_not_delivered_again(delivery: ApiDelivery, api: RecordingApi) -> None:
    delivery.answer(sent(1, "2+2"))
    delivery.answer(sent(1, "2+2"))
    assert len(api.calls) == 1


def test_an_edit_changes_the_earlier_answer(delivery: ApiDelivery, api: RecordingApi) -> None:
    delivery.answer(sent(1, "2+2", message_id=50))
    delivery.answer(sent(2, "2+3", "edited_message", message_id=50))
    delivery.answer(sent(3, "2+4", "edited_message", message_id=50))
    assert said(api)[1:] == [("editMessageText", "2+3 = 2+3"), ("editMessageText", "2+4 = 2+4")]
    assert [call["message_id"] for call in api.calls[1:]] == [1001, 1001]


def test_an_answer_that_is_gone_is_sent_anew(delivery: ApiDelivery, api: RecordingApi) -> None:
    def refuse_edits(call: Json) -> None:
        if call["method"] == "editMessageText":
            raise Refused("editMessageText", 400, "Bad Request: message to edit not found", {})

    api.fails = refuse_edits
    delivery.answer(sent(1, "2+2", message_id=50))
    delivery.answer(sent(2, "2+3", "edited_message", message_id=50))
    assert said(api)[1] == ("sendMessage", "2+3 = 2+3")
    assert api.calls[1]["reply_parameters"]["message_id"] == 50


def test_long_output_comes_as_a_file(
    delivery: ApiDelivery, api: RecordingApi, scripted: ScriptedSandbox
) -> None:
    scripted.script = lambda source: Outcome("ok", "x" * 10000)
    delivery.answer(sent(1, "f()"))
    [(method, caption)] = said(api)
    assert method == "sendDocument"
    assert len(caption) <= 1024
    assert [call["document"] for call in api.calls] == [DOCUMENT]


def test_a_python_file_is_fetched_and_run(delivery: ApiDelivery, api: RecordingApi) -> None:
    document = {"file_id": "F1", "file_name": "task.py"}
    delivery.answer(sent(1, "", document=document))
    assert said(api) == [("sendMessage", "6*7 = 6*7")]


def test_an_inline_query_is_answered(delivery: ApiDelivery, api: RecordingApi) -> None:
    query = {"id": "77", "from": {"id": 5}, "query": "2+2", "offset": ""}
    delivery.accept({"update_id": 1, "inline_query": query})
    assert [call["method"] for call in api.calls] == ["answerInlineQuery"]


def test_what_telegram_does_not_take_is_refused_and_not_run_again_when_it_comes_again(
    delivery: ApiDelivery, api: RecordingApi, scripted: ScriptedSandbox
) -> None:
    def fail(call: Json) -> None:
        raise Undelivered("sendMessage: 429 slow", 7)

    api.fails = fail
    for _ in range(2):
        with pytest.raises(Undelivered) as refused:
            delivery.answer(sent(1, "2+2"))
        assert refused.value.retry_after == 7
    api.fails = lambda call: None
    delivery.answer(sent(1, "2+2"))
    assert said(api) == [("sendMessage", "2+2 = 2+2")]
    assert scripted.programs == ["2+2"]


def test_a_setting_is_not_changed_back_where_its_answer_comes_late(
    delivery: ApiDelivery, api: RecordingApi
) -> None:
    api.fails = once(Undelivered("sendMessage: no answer"))
    with pytest.raises(Undelivered):
        delivery.answer(sent(1, "/mode"))
    delivery.answer(sent(1, "/mode"))
    delivery.answer(sent(2, "2+2"))
    assert said(api)[1] == ("sendMessage", "2+2")  # compact


def test_what_is_formatted_or_long_survives_a_failure(
    delivery: ApiDelivery, api: RecordingApi, scripted: ScriptedSandbox
) -> None:
    scripted.script = lambda source: Outcome("ok", "x" * 10000)
    api.fails = once(Undelivered("sendDocument: no answer"))
    with pytest.raises(Undelivered):
        delivery.answer(sent(1, "f()"))
    delivery.answer(sent(1, "f()"))
    assert [call["document"] for call in api.calls] == [DOCUMENT]
    assert api.calls[0]["caption_entities"]


def test_an_update_that_nobody_had_time_for_is_refused(
    delivery: ApiDelivery, api: RecordingApi, scripted: ScriptedSandbox
) -> None:
    scripted.script = lambda source: Outcome("busy")
    with pytest.raises(Busy):
        delivery.answer(sent(1, "2+2"))
    scripted.script = lambda source: Outcome("ok", "4")
    delivery.answer(sent(1, "2+2"))
    assert said(api) == [("sendMessage", "4 = 2+2")]


def test_what_will_never_be_delivered_is_taken_once(
    delivery: ApiDelivery, api: RecordingApi, scripted: ScriptedSandbox
) -> None:
    tried: list[Json] = []

    def refuse(call: Json) -> None:
        tried.append(call)
        raise Refused("sendMessage", 400, "CHAT_WRITE_FORBIDDEN", {})

    api.fails = refuse
    delivery.answer(sent(1, "1"))
    delivery.answer(sent(1, "1"))
    assert len(tried) == 1


def test_a_mistake_of_ours_does_not_stop_the_next(delivery: ApiDelivery, api: RecordingApi) -> None:
    def fail(call: Json) -> None:
        if call["text"].startswith("1"):
            raise RuntimeError("a mistake")

    api.fails = fail
    with pytest.raises(RuntimeError):
        delivery.answer(sent(1, "1"))
    delivery.answer(sent(2, "2"))
    assert said(api) == [("sendMessage", "2 = 2")]


def test_more_than_can_wait_is_refused(
    delivery: ApiDelivery, api: RecordingApi, scripted: ScriptedSandbox
) -> None:
    begun = threading.Barrier(module.MOST_AT_ONCE + 1)
    release = threading.Event()

    def wait(source: str) -> Outcome:
        begun.wait(10)
        release.wait(10)
        return Outcome("ok", "4")

    scripted.script = wait
    with ThreadPoolExecutor(module.MOST_AT_ONCE) as threads:
        for number in range(1, module.MOST_AT_ONCE + 1):
            person = {"chat": {"id": number, "type": "private"}, "from": {"id": number}}
            threads.submit(delivery.answer, sent(number, "2+2", **person))
        begun.wait(10)
        with pytest.raises(Busy) as busy:
            delivery.answer(sent(1000, "3"))
        assert busy.value.retry_after > 0
        with pytest.raises(Busy):
            delivery.make({"method": "answerInlineQuery"})
        release.set()
    assert len(api.calls) == module.MOST_AT_ONCE


def test_telegram_finds_room_and_leaves_some_to_others() -> None:
    assert 40 < module.MOST_AT_ONCE <= server.threads - 16


def test_what_asks_for_nothing_gets_nothing(delivery: ApiDelivery, api: RecordingApi) -> None:
    delivery.answer({"update_id": 1, "poll": {}})
    assert api.calls == []


PICTURE = Picture(b"\x89PNG\r\n\x1a\n", 640, 480)


def test_a_picture_is_sent_with_its_text_and_drawn_again_rather_than_kept(
    delivery: ApiDelivery, api: RecordingApi, scripted: ScriptedSandbox
) -> None:
    scripted.script = lambda source: Outcome("ok", "7", pictures=(PICTURE,))
    api.fails = once(Undelivered("sendPhoto: no answer"))
    with pytest.raises(Undelivered):
        delivery.answer(sent(1, "f()"))
    delivery.answer(sent(1, "f()"))
    [call] = api.calls
    assert (call["method"], call["caption"]) == ("sendPhoto", "7 = f()")
    assert call["photo"].content == PICTURE.png
    assert len(scripted.programs) == 2


def test_an_edited_program_changes_its_picture_and_an_album_is_sent_anew(
    delivery: ApiDelivery, api: RecordingApi, scripted: ScriptedSandbox
) -> None:
    scripted.script = lambda source: Outcome("ok", pictures=(PICTURE,) * len(source))
    delivery.answer(sent(1, "a", message_id=50))
    delivery.answer(sent(2, "b", "edited_message", message_id=50))
    delivery.answer(sent(3, "cc", "edited_message", message_id=50))
    assert [call["method"] for call in api.calls] == [
        "sendPhoto",
        "editMessageMedia",
        "sendMediaGroup",
    ]
    assert api.calls[1]["message_id"] == 1001
    assert "caption" not in api.calls[0]


def test_a_text_too_long_for_a_caption_is_a_message_of_its_own(
    delivery: ApiDelivery, api: RecordingApi, scripted: ScriptedSandbox
) -> None:
    scripted.script = lambda source: Outcome("ok", "x" * 1200, pictures=(PICTURE,))
    delivery.answer(sent(1, "f()"))
    assert [call["method"] for call in api.calls] == ["sendMessage", "sendPhoto"]
    assert api.calls[0]["text"].startswith("x" * 1200)
    assert "caption" not in api.calls[1]
