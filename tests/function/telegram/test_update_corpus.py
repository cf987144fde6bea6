"""Every update of the corpus through the real application and the real sandbox.

The corpus says of each update what a correct bot does; `must` is not negotiable, and neither is
anything else that this bot has met once.
"""

import base64
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from falcon import testing

from function.app import create_app
from function.settings import Settings
from function.state.memory import Memory
from function.telegram.lengths import units
from function.telegram.sanitise import is_blank
from sandbox.sandbox import Outcome, Sandbox
from tests.bot_api_server import webhook_problems
from tests.function.telegram.library_types import check_against_libraries

CORPUS = Path(__file__).parents[2] / "corpus" / "updates.jsonl"
ROWS = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
SECRET = "fixture_secret_Token-1"
SETTINGS = Settings(
    token="7100000001:" + "A" * 35,
    webhook_secret=SECRET,
    bot_username="pycalc_demo_bot",
)


class WatchedSandbox:
    """The sandbox, which also remembers the programs that came as far as a guest."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.programs: list[str] = []

    def run(self, source: str, *options: Any, **named: Any) -> Outcome:
        self.programs.append(source)
        outcome = self._sandbox.run(source, *options, **named)
        if outcome.kind in ("rejected", "syntax_error"):
            self.programs.remove(source)
        return outcome

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)


def bodies(row: dict[str, Any]) -> Iterator[bytes]:
    """The request bodies of a row, one or several."""
    if "raw" in row:
        yield row["raw"].encode()
    elif "raw_base64" in row:
        yield base64.b64decode(row["raw_base64"])
    elif "raw_repeat" in row:
        repeat = row["raw_repeat"]
        yield (repeat["prefix"] + repeat["unit"] * repeat["count"] + repeat["suffix"]).encode()
    else:
        for update in row.get("sequence") or [row["update"]]:
            yield json.dumps(update).encode()


def send(client: testing.TestClient, row: dict[str, Any], body: bytes) -> testing.Result:
    headers = {"Content-Type": "application/json", "X-Telegram-Bot-Api-Secret-Token": SECRET}
    headers |= row.get("headers", {})
    return client.simulate_request(
        row.get("http_method", "POST"),
        row.get("endpoint", "/webhook"),
        headers={name: value for name, value in headers.items() if value is not None},
        body=body,
    )


def each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def call_in(result: testing.Result) -> dict[str, Any]:
    """The Bot API call, or what the gateway is told; {} for neither."""
    return result.json if result.status_code == 200 and result.content else {}


def check_call(expect: dict[str, Any], call: dict[str, Any]) -> None:
    """The members that an answer must have, and those that it must not."""
    if "method" in expect:
        assert call.get("method") in each(expect["method"])
    if expect.get("silent"):
        assert not {"text", "results"} & call.keys()
    if not call:
        return
    if "method" in call:
        check_against_libraries(call)
        assert webhook_problems(call) == []
    found = {
        "chat_id": call.get("chat_id"),
        "reply_to": call.get("reply_parameters", {}).get("message_id"),
        "message_thread_id": call.get("message_thread_id"),
        "inline_query_id": call.get("inline_query_id"),
        "gateway_type": call.get("type"),
    }
    for key in found.keys() & expect.keys():
        assert found[key] == expect[key], key
    if "text" in call:
        check_text(expect, call["text"])
    if "results" in call:
        check_results(expect, call)
    if expect.get("inert"):
        [entity] = call["entities"]
        assert entity["type"] in ("pre", "code")
        assert (entity["offset"], entity["length"]) == (0, units(call["text"]))
        assert call["link_preview_options"] == {"is_disabled": True}


def check_text(expect: dict[str, Any], text: str) -> None:
    assert units(text) <= 4096
    assert not is_blank(text)
    assert all(part in text for part in each(expect.get("text_contains", [])))
    assert not any(part in text for part in each(expect.get("text_not_contains", [])))
    assert any(part in text for part in each(expect.get("text_any", "")))
    assert re.search(expect.get("text_regex", ""), text)
    assert "text_not_regex" not in expect or not re.search(expect["text_not_regex"], text)


def check_results(expect: dict[str, Any], call: dict[str, Any]) -> None:
    results = call["results"]
    texts = [result["input_message_content"]["message_text"] for result in results]
    for text in texts:
        check_text({}, text)
    assert not any(is_blank(result["title"]) for result in results)
    assert expect.get("min_results", 0) <= len(results) <= expect.get("results_max", 50)
    assert not expect.get("results_contain") or any(expect["results_contain"] in t for t in texts)
    assert call["cache_time"] <= expect.get("cache_time_max", 300)


@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in ROWS])
def test_an_update_is_answered_as_the_corpus_expects(row: dict[str, Any], sandbox: Sandbox) -> None:
    expect = row["expect"]
    watched = WatchedSandbox(sandbox)
    client = testing.TestClient(create_app(SETTINGS, watched, Memory()))
    for body in bodies(row):
        start = time.monotonic()
        result = send(client, row, body)
        assert time.monotonic() - start < expect.get("max_seconds", 10)
        assert result.status_code in each(expect["status"])
        check_call(expect, result.json if result.status_code == 200 and result.content else {})
    if expect.get("runs") is not None:
        assert bool(watched.programs) is expect["runs"]
    if "runs_total" in expect:
        assert len(watched.programs) == expect["runs_total"]
    if "program" in expect:
        assert watched.programs == [expect["program"]]
    if "program_len" in expect:
        assert len(watched.programs[0]) == expect["program_len"]
