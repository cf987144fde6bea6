import json
import logging
from collections.abc import Callable, Iterator

import falcon
import falcon.testing
import pytest

from function.http.response import RequestLog
from function.observability import events, logs
from sandbox.check.checker import Violation
from sandbox.fork_server.outcome import Outcome

TOKEN = "123:abc"
REJECTED = Outcome(
    "rejected", error="os may not be imported", violations=(Violation("import", 1, 1, "m", "os"),)
)


@pytest.fixture
def configured(
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Callable[[str], Callable[[], list[str]]]]:
    """Return a function that logs in a style, and returns one that returns the lines so far."""
    root, server = logging.getLogger(), logging.getLogger("gunicorn.error")
    kept = root.handlers, root.level, server.handlers, server.propagate
    listeners = dict(events.listeners)

    def configure(style: str) -> Callable[[], list[str]]:
        root.handlers = []  # pytest's own, which would be closed
        logs.configure(style)
        return lambda: capsys.readouterr().err.splitlines()  # noqa: PLW0108

    yield configure
    root.handlers, root.level, server.handlers, server.propagate = kept
    events.listeners.clear()
    events.listeners.update(listeners)


def test_a_program_is_one_line_without_its_text_or_its_user(configured) -> None:
    lines = configured("json")
    events.program(REJECTED, 987654321, 0.0123, TOKEN)
    [line] = lines()
    event = json.loads(line)
    assert (event["event"], event["outcome"], event["rule"]) == ("program", "rejected", "import")
    assert event["ms"] == 12.3
    assert "987654321" not in line
    assert "may not be imported" not in line


def test_a_user_has_one_name_under_one_token_and_another_under_another(configured) -> None:
    lines = configured("json")
    for sender, token in ((1, TOKEN), (1, TOKEN), (2, TOKEN), (1, "456:def")):
        events.program(Outcome("ok"), sender, 0.001, token)
    first, again, other, elsewhere = (json.loads(line)["user"] for line in lines())
    assert first == again
    assert len({first, other, elsewhere}) == 3


def test_text_has_the_same_fields(configured) -> None:
    lines = configured("text")
    events.program(Outcome("ok", cpu_seconds=0.5), 1, 0.6, TOKEN)
    [line] = lines()
    assert " INFO program " in line
    assert " outcome=ok " in line
    assert " cpu_ms=500.0 " in line


def test_a_traceback_stays_in_its_line(configured) -> None:
    lines = configured("json")
    try:
        raise RuntimeError("of ours")
    except RuntimeError:
        logging.getLogger("any").exception("failed")
    [line] = lines()
    assert "RuntimeError: of ours" in json.loads(line)["exception"]


def test_what_the_server_itself_says_is_in_the_same_format(configured) -> None:
    lines = configured("json")
    logging.getLogger("gunicorn.error").info("Listening")
    assert [json.loads(line)["event"] for line in lines()] == ["Listening"]


def test_an_unknown_format_is_refused_with_its_cure() -> None:
    with pytest.raises(ValueError, match="LOG_FORMAT is 'xml': set it to text or json"):
        logs.configure("xml")


class Hello:
    def on_get(self, _req: falcon.Request, _resp: falcon.Response) -> None:
        logging.getLogger("any").warning("hello")


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-1", True), (None, False), ("a b", False), ("é", False)]
)
def test_each_request_has_an_id_that_its_lines_and_its_caller_see(
    configured, given: str | None, kept: bool
) -> None:
    lines = configured("json")
    app = falcon.App(middleware=[RequestLog()])
    app.add_route("/", Hello())
    headers = {"X-Request-ID": given} if given else {}
    told = falcon.testing.TestClient(app).simulate_get("/", headers=headers).headers["x-request-id"]
    assert json.loads(lines()[0])["request"] == told
    assert (told == given) == kept
    assert len(told) >= 5
