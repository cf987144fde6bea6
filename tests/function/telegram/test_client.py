"""Calls to a Bot API server that is strict, busy, slow, or not there."""

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from function.errors import BotApiError, Refused, Undelivered
from function.telegram.client import BotApi
from function.telegram.types import File
from tests.bot_api_server import BotApiServer, running
from tests.ports import free_port

CALL = {"method": "sendMessage", "chat_id": 1, "text": "4"}


@pytest.fixture
def server() -> Iterator[BotApiServer]:
    with running() as state:
        yield state


@pytest.fixture
def api(server: BotApiServer) -> Iterator[BotApi]:
    client = BotApi(server.token, server.url, timeout=5)
    yield client
    client.close()


def test_a_call_returns_its_result(api: BotApi, server: BotApiServer) -> None:
    assert api.call("getMe")["username"] == server.username
    message = api.deliver(CALL)
    assert (message["message_id"], message["text"]) == (1, "4")
    assert server.made("sendMessage") == [{"chat_id": 1, "text": "4"}]


def test_a_document_travels_with_its_caption(api: BotApi, server: BotApiServer) -> None:
    entities = [{"type": "code", "offset": 0, "length": 2}]
    call = {"method": "sendDocument", "chat_id": 1, "caption": "é×", "caption_entities": entities}
    document = File("output.txt", "é\n".encode() * 9000, "text/plain; charset=utf-8")
    api.deliver(call | {"document": document})
    sent = server.calls[-1]
    assert sent.files == {"document": ("output.txt", "é\n".encode() * 9000)}
    assert sent.params == {"chat_id": 1, "caption": "é×", "caption_entities": entities}


@pytest.mark.parametrize(
    "moods",
    [
        [(429, "Too Many Requests: retry after 1", {"retry_after": 1})],
        [(500, "Internal Server Error")],
        [(502, "Bad Gateway"), (503, "Service Unavailable")],
        ["drop"],
        ["garble"],
        ["drop", "garble", (500, "")],
    ],
)
def test_what_passes_is_waited_out(api: BotApi, server: BotApiServer, moods: list[Any]) -> None:
    server.be("sendMessage", *moods)
    assert api.deliver(CALL)["text"] == "4"
    assert len(server.sent) == 1


def test_a_rate_limit_is_waited_for_as_long_as_it_says(api: BotApi, server: BotApiServer) -> None:
    server.be("sendMessage", (429, "Too Many Requests", {"retry_after": 1}))
    started = time.monotonic()
    api.deliver(CALL)
    assert time.monotonic() - started >= 1


@pytest.mark.parametrize(
    "mood", [(429, "Too Many Requests", {"retry_after": 3600}), (500, "always"), "drop", "hang"]
)
def test_what_does_not_pass_is_given_up(server: BotApiServer, mood: Any) -> None:
    server.be("sendMessage", *[mood] * 100)
    api = BotApi(server.token, server.url, timeout=1)
    started = time.monotonic()
    with pytest.raises(Undelivered, match="sendMessage"):
        api.call("sendMessage", {"chat_id": 1, "text": "4"}, answer_seconds=0.3)
    assert time.monotonic() - started < 3
    api.close()


def test_a_server_that_is_not_there_is_given_up(server: BotApiServer) -> None:
    api = BotApi(server.token, f"http://127.0.0.1:{free_port()}", timeout=0.2)
    with pytest.raises(Undelivered, match="NewConnectionError"):
        api.deliver(CALL)


def test_a_slow_server_is_waited_for(api: BotApi, server: BotApiServer) -> None:
    server.be("sendMessage", 0.5)
    assert api.deliver(CALL)["text"] == "4"
    assert len(server.sent) == 1


def test_a_chat_that_blocked_the_bot_ends_quietly(api: BotApi, server: BotApiServer) -> None:
    server.blocked.add(1)
    assert api.deliver(CALL) is None
    assert len(server.calls) == 1


def test_a_moved_chat_is_followed(api: BotApi, server: BotApiServer) -> None:
    server.migrated[-5] = -1000000000005
    message = api.deliver(CALL | {"chat_id": -5})
    assert message["chat"]["id"] == -1000000000005


def test_a_chat_that_moves_in_circles_is_left(api: BotApi, server: BotApiServer) -> None:
    server.migrated |= {-5: -6, -6: -5}
    with pytest.raises(Refused, match="upgraded"):
        api.deliver(CALL | {"chat_id": -5})
    assert len(server.calls) < 10


def test_bad_entities_are_left_out(api: BotApi, server: BotApiServer) -> None:
    entities = [{"type": "code", "offset": 0, "length": 99}]
    assert api.deliver(CALL | {"entities": entities})["text"] == "4"
    assert "entities" not in server.made("sendMessage")[-1]


def test_a_text_that_is_too_long_is_sent_plainly_and_shorter(
    api: BotApi, server: BotApiServer
) -> None:
    entities = [{"type": "code", "offset": 0, "length": 5000}]
    api.deliver(CALL | {"text": "7" * 5000, "entities": entities})
    assert server.sent[-1]["text"] == "7" * 2500 + "…"
    assert "entities" not in server.sent[-1]


@pytest.mark.parametrize(
    ("description", "name", "value"),
    [
        ("message to be replied not found", "reply_parameters", {"message_id": 7}),
        ("message thread not found", "message_thread_id", 7),
        ("TOPIC_CLOSED", "message_thread_id", 7),
        ("can't parse entities: unsupported start tag", "parse_mode", "HTML"),
    ],
)
def test_a_place_that_is_gone_is_left_out(
    api: BotApi, server: BotApiServer, description: str, name: str, value: Any
) -> None:
    server.be("sendMessage", (400, f"Bad Request: {description}"))
    assert api.deliver(CALL | {name: value})["text"] == "4"
    assert name not in server.made("sendMessage")[-1]


@pytest.mark.parametrize("description", ["Bad Request: chat not found", "Unauthorized"])
def test_what_cannot_be_cured_is_refused_at_once(
    api: BotApi, server: BotApiServer, description: str
) -> None:
    server.be("sendMessage", (400, description))
    with pytest.raises(Refused, match=description):
        api.deliver(CALL)
    assert len(server.calls) == 1


def test_an_edit_that_changes_nothing_is_no_failure(api: BotApi, server: BotApiServer) -> None:
    edit = {"method": "editMessageText", "chat_id": 1, "message_id": 1, "text": "4"}
    with pytest.raises(Refused, match="not found"):
        api.deliver(edit)
    api.deliver(CALL)
    assert api.deliver(edit | {"text": "5"})["text"] == "5"
    assert api.deliver(edit | {"text": "5"}) is None


def test_a_file_is_fetched_up_to_the_limit(api: BotApi, server: BotApiServer) -> None:
    server.files = {
        "small": "print('é')".encode(),
        "marked": b"\xef\xbb\xbf2+2",
        "large": b"#" * 101,
        "binary": b"\xff\xfe\x00",
    }
    assert api.fetch_text("small", 100) == "print('é')"
    assert api.fetch_text("marked", 100) == "2+2"
    for name in ("large", "binary", "absent"):
        with pytest.raises(ValueError, match=r".+"):
            api.fetch_text(name, 100)


@pytest.mark.parametrize("mood", ["drop", (500, "no"), (401, "Unauthorized"), "garble", "hang"])
def test_the_token_is_in_no_error_and_no_log(
    server: BotApiServer, mood: Any, caplog: pytest.LogCaptureFixture
) -> None:
    api = BotApi(server.token, server.url, timeout=0.1)
    server.be("*", *[mood] * 9)
    with caplog.at_level(logging.DEBUG), pytest.raises(BotApiError) as raised:
        api.call("getMe", answer_seconds=0.2)
    error: BaseException | None = raised.value
    while error is not None:
        assert "AAfixture" not in f"{error!r} {error}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert "AAfixture" not in caplog.text
    assert "AAfixture" not in repr(api)


def test_many_threads_share_the_connections(api: BotApi, server: BotApiServer) -> None:
    threads = [threading.Thread(target=api.deliver, args=[CALL]) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.sent) == 32
