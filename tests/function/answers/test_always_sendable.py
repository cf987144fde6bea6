"""Whatever a person types and whatever a program prints, Telegram takes the answer."""

import json
from typing import Any

import pytest
from falcon import testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from function.app import create_app
from function.settings import Settings
from function.state.memory import Memory
from sandbox.check.checker import Violation
from sandbox.sandbox import Outcome
from tests.bot_api_server import webhook_problems
from tests.conftest import message
from tests.function.conftest import ScriptedSandbox
from tests.function.telegram.library_types import check_against_libraries

ODD = "\x00\t\r\n\x1b[]\xad\u0301\u030a\u200b\u200d\u202e\u2028\u2800\ud83d\ude00\ufeff`0:A 😀"
texts = st.text(max_size=200) | st.text(st.characters(exclude_categories=()) | st.sampled_from(ODD))
printed = st.binary().map(lambda raw: raw.decode("utf-8", "replace")) | texts
lengthened = st.builds(lambda text, times: text * times, printed, st.sampled_from([1, 50, 3000]))
outcomes = st.builds(
    Outcome,
    kind=st.sampled_from(
        ["ok", "error", "rejected", "syntax_error", "cpu_limit", "output_limit", "crashed"]
    ),
    output=lengthened,
    error=lengthened,
    violations=st.tuples(
        st.builds(Violation, st.just("r"), st.integers(1, 9), st.integers(1, 99), texts, texts)
    ),
    pictures=st.just(()),
)
often = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def check(app: testing.TestClient, update: dict[str, Any]) -> None:
    body = json.dumps(update)  # falcon's own cannot write lone surrogates
    headers = {"Content-Type": "application/json"}
    result = app.simulate_post("/webhook", body=body, headers=headers)
    assert result.status_code == 200
    if result.content:
        check_against_libraries(result.json)
        assert webhook_problems(result.json) == []


@pytest.fixture
def app(scripted: ScriptedSandbox) -> testing.TestClient:
    return testing.TestClient(create_app(Settings(bot_username="calc_bot"), scripted, Memory()))


update_ids = iter(range(1, 1 << 30))


@often
@given(texts.map(lambda text: (text * 4096)[:4096]) | texts, outcomes)
def test_an_answer_to_any_text_with_any_output_is_taken(
    app: testing.TestClient, scripted: ScriptedSandbox, text: str, outcome: Outcome
) -> None:
    scripted.script = lambda source: outcome
    check(app, {"update_id": next(update_ids), "message": message(text)})


@often
@given(texts.map(lambda text: text[:256]), outcomes)
def test_results_for_any_query_with_any_output_are_taken(
    app: testing.TestClient, scripted: ScriptedSandbox, text: str, outcome: Outcome
) -> None:
    scripted.script = lambda source: outcome
    query = {"id": "1", "from": {"id": 5}, "query": text, "offset": ""}
    check(app, {"update_id": next(update_ids), "inline_query": query})


@often
@given(st.text(max_size=60), st.booleans())
def test_an_answer_in_a_group_is_taken(app: testing.TestClient, text: str, topic: bool) -> None:
    chat = {"id": -1001987654321, "type": "supergroup"}
    thread = {"message_thread_id": 77, "is_topic_message": topic}
    group = message(f"/cl {text}", chat=chat, **thread)
    check(app, {"update_id": next(update_ids), "message": group})
