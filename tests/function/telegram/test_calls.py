"""Method calls that answer: what Telegram needs, and nothing that it refuses."""

from function.parts import Parts, code, parts
from function.telegram.calls import answer, answer_inline_query, edit
from function.telegram.types import Address, Article, Json, Reply, Request, Results
from tests.bot_api_server import webhook_problems
from tests.function.telegram.library_types import check_against_libraries


def send_message(address: Address, message: Parts, *, edited: bool = False) -> Json:
    return answer(Request(address, 5, "run", edited=edited), Reply(message))


def test_calls_hold_what_is_needed_and_no_null() -> None:
    message = (code("4"),)
    off = {"is_disabled": True}
    marked = [{"type": "code", "offset": 0, "length": 1}]
    body = {"text": "4", "entities": marked, "link_preview_options": off}
    assert send_message(Address(5, 9, None, True), message) == {
        "method": "sendMessage",
        "chat_id": 5,
        **body,
    }
    assert send_message(Address(-100, 9, 77, False), message) == {
        "method": "sendMessage",
        "chat_id": -100,
        "message_thread_id": 77,
        "reply_parameters": {"message_id": 9, "allow_sending_without_reply": True},
        **body,
    }
    assert edit(5, 10, Reply(message)) == {
        "method": "editMessageText",
        "chat_id": 5,
        "message_id": 10,
        **body,
    }
    assert "entities" not in send_message(Address(5, 9, None, True), parts("hi"))


def test_a_private_answer_replies_where_that_is_asked_for() -> None:
    call = send_message(Address(5, 9, None, True), parts("4"), edited=True)
    assert call["reply_parameters"]["message_id"] == 9


def test_results_that_may_not_be_kept_are_personal() -> None:
    article = Article("id", "4", "", parts("4"))
    kept = answer_inline_query("77", Results((article,), 300))
    assert (kept["cache_time"], kept["is_personal"]) == (300, False)
    assert kept["results"][0]["input_message_content"]["message_text"] == "4"
    fresh = answer_inline_query("77", Results())
    assert (fresh["cache_time"], fresh["is_personal"], fresh["results"]) == (0, True, [])


def test_a_question_offers_to_reply() -> None:
    request = Request(Address(-100, 9, None, False), 5, "run")
    call = answer(request, Reply((code("Name?"),), asks=True))
    assert call["reply_markup"] == {"force_reply": True, "selective": True}
    check_against_libraries(call)
    assert webhook_problems(call) == []
