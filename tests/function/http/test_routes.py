"""Statuses, secrets and errors of each HTTP resource, over a sandbox that does as it is told."""

import base64
import json
import logging
from typing import Any

import pytest
from falcon import testing

import function
from function.app import create_app
from function.errors import Undelivered
from function.http.gateway import gateway
from function.http.response import EMPTY
from function.observability import events
from function.parts import parts
from function.settings import Settings
from function.state.memory import Memory
from function.telegram.calls import answer
from function.telegram.types import Address, Reply, Request
from sandbox import Picture
from sandbox.sandbox import Outcome
from tests.conftest import message
from tests.function.conftest import ScriptedSandbox

SECRET = "s-1"
TOKEN = "7100000001:" + "A" * 35
SECRET_HEADER = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
QUERY = {"from_user_id": 1, "inline_query_id": "77", "query": "2+2"}


def client(sandbox: ScriptedSandbox, **settings: Any) -> testing.TestClient:
    return testing.TestClient(create_app(Settings(**settings), sandbox, Memory()))


LOCAL = {"remote_addr": "127.0.0.1"}
FROM_AFAR = {"remote_addr": "203.0.113.7"}


def update(text: str, update_id: int = 1) -> dict[str, Any]:
    return {"update_id": update_id, "message": message(text)}


@pytest.mark.parametrize("path", ["/webhook", "/message", "/inline"])
@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[" * 200_000, "application/json", 400),
        (b'{"update_id": NaN}', "application/json", 400),
        (b'{"update_id": ' + b"9" * 5000 + b"}", "application/json", 400),
        (b'{"x": "\xff"}', "application/json", 400),
        (b"42", "application/json", 400),
        (b"null", "application/json", 400),
        (b" " * ((1 << 20) + 1), "application/json", 413),
        (b"a=1", "application/x-www-form-urlencoded", 415),
    ],
)
def test_a_bad_body_is_refused_with_one_line(
    scripted: ScriptedSandbox, path: str, body: bytes, content_type: str, status: int
) -> None:
    result = client(scripted).simulate_post(path, body=body, content_type=content_type)
    assert result.status_code == status
    assert list(result.json) == ["error"]
    assert "\n" not in result.text
    assert scripted.programs == []


@pytest.mark.parametrize("update_id", [None, True, "1", 1.5, [1]])
def test_an_update_without_a_number_is_refused(scripted: ScriptedSandbox, update_id: Any) -> None:
    body = update("2+2") | {"update_id": update_id}
    assert client(scripted).simulate_post("/webhook", json=body).status_code == 400
    assert scripted.programs == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"X-Telegram-Bot-Api-Secret-Token": "s"}, 401),
        ({"X-Telegram-Bot-Api-Secret-Token": "é"}, 401),
        ({"Authorization": SECRET}, 401),
        (SECRET_HEADER, 200),
    ],
)
def test_an_update_must_come_with_the_secret(
    scripted: ScriptedSandbox, headers: dict[str, str], status: int
) -> None:
    app = client(scripted, webhook_secret=SECRET)
    assert app.simulate_post("/webhook", json=update("2"), headers=headers).status_code == status
    assert len(scripted.programs) == (status == 200)


@pytest.mark.parametrize("path", ["/message", "/inline"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Basic {SECRET}"}, 401),
        ({"Authorization": f"Bearer {SECRET}"}, 200),
        ({"Authorization": SECRET}, 200),
        ({"Authorization": f"bearer {TOKEN}"}, 200),
        (SECRET_HEADER, 200),
    ],
)
def test_a_gateway_must_know_the_secret_or_the_token(
    scripted: ScriptedSandbox, path: str, headers: dict[str, str], status: int
) -> None:
    app = client(scripted, webhook_secret=SECRET, token=TOKEN)
    body = message("2+2") | QUERY
    assert app.simulate_post(path, json=body, headers=headers).status_code == status


def test_a_gateway_gets_a_text_or_nothing(scripted: ScriptedSandbox) -> None:
    app = client(scripted)
    said = app.simulate_post("/message", json=message("2+2"))
    assert said.headers["content-type"] == "application/json"
    assert (said.json["type"], said.json["body"]) == ("text", said.json["text"])
    group = message("2+2", chat={"id": -1, "type": "group"})
    assert app.simulate_post("/message", json=group).json == {"type": "empty", "body": ""}


PICTURE = Picture(b"\x89PNG\r\n\x1a\n", 640, 480)


def test_a_picture_is_the_webhooks_response_as_a_form(scripted: ScriptedSandbox) -> None:
    scripted.script = lambda source: Outcome("ok", "7", pictures=(PICTURE,))
    result = client(scripted).simulate_post("/webhook", json=update("f()"))
    kind, _, boundary = result.headers["content-type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    parts = result.content.split(f"--{boundary}".encode())
    assert any(b'name="method"' in part and b"sendPhoto" in part for part in parts)
    assert any(b'name="caption"' in part and b"7 = f()" in part for part in parts)
    assert any(b"image/png" in part and PICTURE.png in part for part in parts)


def test_a_gateway_gets_pictures_beside_the_text(scripted: ScriptedSandbox) -> None:
    scripted.script = lambda source: Outcome("ok", pictures=(PICTURE,))
    said = client(scripted).simulate_post("/message", json=message("f()")).json
    assert "picture" in said["body"]
    assert "caption" not in said
    [picture] = said["pictures"]
    assert picture["type"] == "image/png"
    assert base64.b64decode(picture["data"]) == PICTURE.png


def test_what_to_say_beneath_pictures_is_their_caption(scripted: ScriptedSandbox) -> None:
    scripted.script = lambda source: Outcome("ok", "7", pictures=(PICTURE,))
    said = client(scripted).simulate_post("/message", json=message("f()")).json
    assert said["caption"] == "7 = f()"
    assert said["caption_entities"] == [{"type": "code", "offset": 0, "length": 7}]


def test_a_query_is_told_where_pictures_can_be_had(scripted: ScriptedSandbox) -> None:
    for output in ("", "7"):
        scripted.script = lambda source, output=output: Outcome("ok", output, pictures=(PICTURE,))
        [result] = client(scripted).simulate_post("/inline", json=QUERY).json["results"]
        assert "in a chat with me" in result["input_message_content"]["message_text"]


def test_a_gateways_query_gets_results(scripted: ScriptedSandbox) -> None:
    results = client(scripted).simulate_post("/inline", json=QUERY).json["results"]
    assert [each["title"] for each in results] == ["2+2 = 2+2", "2+2"]
    assert client(scripted).simulate_post("/inline", json={"query": "2"}).status_code == 400


def test_an_update_that_asks_for_nothing_gets_an_empty_answer(scripted: ScriptedSandbox) -> None:
    result = client(scripted).simulate_post("/webhook", json={"update_id": 1, "poll": {}})
    assert (result.status_code, result.content) == (200, b"")


@pytest.mark.parametrize("kind", ["busy", "unavailable"])
def test_when_nothing_can_run_telegram_is_told_to_come_again(
    scripted: ScriptedSandbox, kind: Any
) -> None:
    app = client(scripted)
    scripted.script = lambda source: Outcome(kind, error="full")
    result = app.simulate_post("/webhook", json=update("2+2"))
    assert result.status_code == 503
    assert int(result.headers["retry-after"]) > 0
    assert "try again" in result.json["error"]
    assert "try again" in app.simulate_post("/message", json=message("2+2")).json["body"]
    scripted.script = lambda source: Outcome("ok", "4")
    assert app.simulate_post("/webhook", json=update("2+2")).json["text"] == "4 = 2+2"


class SilentApi:
    """A Bot API server that is not there."""

    def deliver(self, call: Any) -> Any:
        raise Undelivered("sendMessage: no answer", 7)

    def fetch_text(self, file_id: str, max_bytes: int) -> str:
        raise Undelivered("getFile: no answer")


def test_what_cannot_be_delivered_is_taken_lest_it_block_its_chat(
    scripted: ScriptedSandbox,
) -> None:
    api: Any = SilentApi()
    app = testing.TestClient(create_app(Settings(), scripted, Memory(), api))
    for path, body in (("/webhook", update("2+2")), ("/inline", QUERY)):
        assert app.simulate_post(path, json=body).status_code == 200
    document = {"file_id": "F1", "file_name": "task.py"}
    said = app.simulate_post("/message", json=message("", document=document)).json["body"]
    assert "try again" in said.lower()


@pytest.mark.filterwarnings("ignore")
def test_a_mistake_of_ours_is_logged_without_the_text_and_taken(
    scripted: ScriptedSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(source: str) -> Outcome:
        raise RuntimeError("a mistake")

    scripted.script = fail
    result = client(scripted).simulate_post("/webhook", json=update("a_private_thing"))
    assert result.status_code == 200
    assert "method" not in result.json
    assert "a mistake" in caplog.text
    assert "a_private_thing" not in caplog.text


def test_health_tells_an_operator_more_than_anybody(scripted: ScriptedSandbox) -> None:
    app = client(scripted, webhook_secret=SECRET, token=TOKEN)
    from_here = app.simulate_get("/health", **LOCAL)
    assert from_here.json["open"] is False
    assert from_here.json["versions"]["calcubot"] == function.__version__
    through_a_proxy = {"X-Forwarded-For": "203.0.113.7"}
    wrong = {"Authorization": "Bearer wrong"}
    for origin, headers in ((FROM_AFAR, {}), (FROM_AFAR, wrong), (LOCAL, through_a_proxy)):
        assert app.simulate_get("/health", headers=headers, **origin).json == {"status": "ok"}
    for secret in (SECRET, TOKEN):
        known = {"Authorization": f"Bearer {secret}"}
        assert "policy" in app.simulate_get("/health", headers=known, **FROM_AFAR).json
    trial = client(scripted)
    assert trial.simulate_get("/health", **LOCAL).json["open"] is True
    assert trial.simulate_get("/health", **FROM_AFAR).json == {"status": "ok"}


def test_liveness_does_not_depend_on_what_readiness_tells(scripted: ScriptedSandbox) -> None:
    app = client(scripted)
    assert app.simulate_get("/health/ready").status_code == 200
    scripted.status = lambda: {"serving": False}  # type: ignore[method-assign]
    assert app.simulate_get("/health/ready").status_code == 503
    assert app.simulate_get("/health/live").status_code == 200


@pytest.mark.parametrize("path", ["/health", "/health/ready", "/health/live", "/test"])
def test_head_is_answered_where_get_is(scripted: ScriptedSandbox, path: str) -> None:
    app = client(scripted)
    result = app.simulate_head(path)
    assert (result.status_code, result.content) == (200, b"")
    assert result.headers["content-length"] == app.simulate_get(path).headers["content-length"]


def test_what_is_refused_is_logged_once_with_what_joins_it(
    scripted: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int, Any]] = []
    monkeypatch.setitem(events.listeners, "test", lambda *event: told.append(event))
    app = client(scripted, webhook_secret=SECRET)
    for path in ("/webhook", "/message", "/inline", "/nowhere"):
        app.simulate_post(path, json=update("2+2"))
    refused = [fields for _, level, fields in told if level >= logging.INFO]
    assert [(each["status"], each["path"]) for each in refused] == [
        (401, "/webhook"),
        (401, "/message"),
        (401, "/inline"),
        (404, "/nowhere"),
    ]
    assert SECRET not in str(told)


def test_health_tells_whether_programs_can_run(scripted: ScriptedSandbox) -> None:
    app = client(scripted, token=TOKEN, webhook_secret=SECRET)
    health = app.simulate_get("/health")
    assert health.status_code == 200
    assert health.json["status"] == "ok"
    assert health.json["policy"]["sha256"] == scripted.policy.sha256
    assert health.json["store"] == {"kind": "memory", "state": "ok"}
    assert TOKEN not in health.text
    scripted.status = lambda: {"serving": False}  # type: ignore[method-assign]
    assert app.simulate_get("/health").status_code == 503

    def fail() -> dict[str, Any]:
        raise RuntimeError

    scripted.status = fail  # type: ignore[method-assign]
    assert app.simulate_get("/health").status_code == 503


def test_the_service_says_that_it_runs(scripted: ScriptedSandbox) -> None:
    assert client(scripted).simulate_get("/test").json == {"status": "ok"}


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nothing", 404), ("GET", "/message", 405)]
)
def test_other_paths_and_methods_are_refused_with_one_line(
    scripted: ScriptedSandbox, method: str, path: str, status: int
) -> None:
    result = client(scripted).simulate_request(method, path)
    assert result.status_code == status
    assert list(json.loads(result.text)) == ["error"]


def test_the_gateway_gets_the_text_as_body() -> None:
    call = answer(Request(Address(5, 9, None, True), 5, "run"), Reply(parts("4")))
    body = gateway(call)
    assert (body["type"], body["body"], body["text"]) == ("text", "4", "4")
    assert "method" not in body
    assert EMPTY == {"type": "empty", "body": ""}
