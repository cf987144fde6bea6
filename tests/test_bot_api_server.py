"""The strict server is strict: what it must refuse, and what it must not."""

from typing import Any

import pytest

from tests.bot_api_server import problems, shown, webhook_problems


def sent(text: Any, **params: Any) -> list[str]:
    return problems("sendMessage", {"chat_id": 1, "text": text, **params})


def entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("4", {}),
        ("x" * 4096, {}),
        ("😀" * 4096, {}),
        ("  *\n ***", {"entities": [entity("pre", 0, 8, language="text")]}),
        ("4 = 2+2\nnote", {"entities": [entity("code", 0, 7)]}),
        ("😀4", {"entities": [entity("code", 2, 1)]}),
        ("4", {"reply_parameters": {"message_id": 1, "allow_sending_without_reply": True}}),
        ("4", {"message_thread_id": 5, "link_preview_options": {"is_disabled": True}}),
    ],
)
def test_a_good_message_is_taken(text: str, params: dict[str, Any]) -> None:
    assert sent(text, **params) == []


@pytest.mark.parametrize(
    ("text", "params", "reason"),
    [
        ("", {}, "non-empty"),
        (" \n\u00a0\u200b\u2800\u3000\u3164", {}, "non-empty"),
        ("x" * 4097, {}, "too long"),
        ("😀" * 4097, {}, "too long"),
        ("a\tb", {}, "control"),
        ("a\x00b", {}, "control"),
        ("a\u202eb", {}, "dropped"),
        ("\ud83d", {}, "UTF-8"),
        (None, {}, "null"),
        (4, {}, "not a text"),
        ("4", {"parse_mode": None}, "null"),
        ("4", {"entities": [entity("code", 0, 2)]}, "after the end"),
        ("4", {"entities": [entity("code", 0, 0)]}, "length positive"),
        ("4", {"entities": [entity("code", -1, 1)]}, "length positive"),
        ("😀4", {"entities": [entity("code", 1, 1)]}, "within a character"),
        ("abc", {"entities": [entity("pre", 0, 2), entity("bold", 1, 2)]}, "overlaps"),
        ("abc", {"entities": [entity("monospace", 0, 2)]}, "known type"),
        ("4", {"reply_parameters": {"message_id": 0}}, "message_id"),
        ("4", {"reply_parameters": {"message_id": 1, "allow": True}}, "no allow"),
        ("4", {"message_thread_id": 0}, "positive"),
        ("4", {"disable_web_page_preview": True}, "no parameter"),
        ("4", {"chat_id": True}, "chat not found"),
        ("4", {"chat_id": 1 << 60}, "chat not found"),
    ],
)
def test_a_bad_message_is_refused(text: Any, params: dict[str, Any], reason: str) -> None:
    assert reason in "; ".join(sent(text, **params))


def article(**changes: Any) -> dict[str, Any]:
    content = {"message_text": "4"}
    return {"type": "article", "id": "1", "title": "4", "input_message_content": content} | changes


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ([article()], ""),
        ([], ""),
        ([article(id="a"), article(id="b")], ""),
        ([article(), article()], "DUPLICATE"),
        ([article(id="é" * 33)], "RESULT_ID_INVALID"),
        ([article(id="")], "RESULT_ID_INVALID"),
        ([article(title=" \u200b")], "TITLE_EMPTY"),
        ([article(input_message_content={"message_text": " "})], "non-empty"),
        ([article(input_message_content={"message_text": "x" * 4097})], "too long"),
        ([article(id=str(n)) for n in range(51)], "50"),
    ],
)
def test_inline_results_are_judged(results: list[Any], reason: str) -> None:
    found = problems("answerInlineQuery", {"inline_query_id": "1", "results": results})
    assert reason in "; ".join(found)
    assert bool(found) == bool(reason)


@pytest.mark.parametrize("reply", [None, {}, {"method": "sendMessage", "chat_id": 1, "text": "4"}])
def test_a_webhook_may_answer_so(reply: Any) -> None:
    assert webhook_problems(reply) == []


@pytest.mark.parametrize(
    "reply",
    [{"method": "getMe"}, {"method": "setWebhook", "url": "https://a.b"}, {"text": "4"}, ["x"]],
)
def test_a_webhook_may_not_answer_so(reply: Any) -> None:
    assert webhook_problems(reply) != []


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://example.org/webhook", True),
        ("https://example.org:8443/webhook", True),
        ("http://example.org/webhook", False),
        ("https://example.org:8704/webhook", False),
    ],
)
def test_a_webhook_must_be_https_on_a_known_port(url: str, good: bool) -> None:
    assert (problems("setWebhook", {"url": url}) == []) == good


def test_what_people_see_is_cleaned_and_trimmed() -> None:
    assert shown(" a\tb\r\n ") == "a b"
    assert shown("  a ", protected=True) == "  a"
