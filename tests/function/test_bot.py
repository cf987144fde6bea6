"""What the bot says of itself, remembers of people, and does about queries that take long."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from function.bot import CACHE_SECONDS, Busy, Chat
from function.state.memory import Memory
from function.telegram.bot_api import Bot, InlineQuery, Place, Request
from sandbox.sandbox import Outcome
from tests.function.conftest import ScriptedSandbox

PRIVATE = Place(5, 9, None, private=True)
GROUP = Place(-100, 9, None, private=False)


@pytest.fixture
def chat(scripted: ScriptedSandbox) -> Any:
    chat = Chat(scripted, Memory(), Bot(1, "calc_bot"))
    yield chat
    chat.close()


def said(chat: Chat, wish: Any, text: str = "", place: Place = PRIVATE, sender: int = 5) -> str:
    return chat.reply(Request(place, sender, wish, text)).message.text


def results(chat: Chat, text: str, offset: str = "") -> dict[str, Any]:
    return chat.results(InlineQuery("77", 5, text, offset))


def test_help_shows_examples_imports_and_limits_of_the_policy(chat: Chat) -> None:
    text = said(chat, "start")
    for part in ("2+2", "/cl", "@calc_bot", "statistics", "2 s", "8 s", "512 MiB", "16 KiB"):
        assert part in text
    assert text == said(chat, "help")
    assert len(text) < 4096


def test_the_mode_is_each_persons_own_and_changes_back(chat: Chat) -> None:
    assert said(chat, "run", "2+2") == "2+2 = 2+2"
    assert "compact" in said(chat, "mode")
    assert said(chat, "run", "2+2") == "2+2"
    assert said(chat, "run", "2+2", sender=6) == "2+2 = 2+2"
    assert "full" in said(chat, "mode")
    assert said(chat, "run", "2+2") == "2+2 = 2+2"


def test_the_mode_is_not_changed_in_a_group(chat: Chat) -> None:
    assert "in private" in said(chat, "mode", place=GROUP)
    assert said(chat, "run", "2+2") == "2+2 = 2+2"


@pytest.mark.parametrize("wish", ["privacy", "usage", "unknown_command", "no_text", "document"])
def test_every_wish_has_an_answer_that_runs_nothing(
    chat: Chat, scripted: ScriptedSandbox, wish: str
) -> None:
    assert said(chat, wish)
    assert scripted.programs == []


def test_a_file_is_fetched_up_to_the_source_limit_and_run(scripted: ScriptedSandbox) -> None:
    def fetch(file_id: str, most: int) -> str:
        if file_id == "binary":
            raise ValueError
        return f"{file_id!r}, {most}"

    chat = Chat(scripted, Memory(), Bot(), fetch=fetch)
    limit = scripted.policy.limits.source_bytes
    assert said(chat, "document", "F1") == f"'F1', {limit} = 'F1', {limit}"
    assert "too long or no text" in said(chat, "document", "binary")


def test_a_busy_sandbox_is_told_to_the_caller(chat: Chat, scripted: ScriptedSandbox) -> None:
    scripted.script = lambda source: Outcome("busy")
    with pytest.raises(Busy, match="try again"):
        said(chat, "run", "2+2")
    with pytest.raises(Busy):
        results(chat, "2+2")


@pytest.mark.parametrize("text", ["", "  ", "2+", "math.sqrt(", "what this"])
def test_unfinished_queries_get_no_results_and_run_nothing(
    chat: Chat, scripted: ScriptedSandbox, text: str
) -> None:
    assert results(chat, text)["results"] == []
    assert scripted.programs == []
    if text.strip():
        assert results(chat, text)["cache_time"] == 0


def test_there_is_no_second_page(chat: Chat) -> None:
    assert results(chat, "2+2", offset="50")["results"] == []


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("2+2", True),
        ("math.sqrt(2) + 1.5e3", True),
        ("sum(range(10))", True),
        ("random.random()", False),
        ("dt.date.today()", False),
        ("id(1)", False),
        ("{'a', 'b'}", False),
        ("x = 5", False),
    ],
)
def test_only_results_that_are_always_the_same_are_kept(
    chat: Chat, text: str, is_kept: bool
) -> None:
    call = results(chat, text)
    assert (call["cache_time"] == CACHE_SECONDS) is is_kept
    assert call["is_personal"] is not is_kept


def test_a_slow_query_is_answered_within_two_seconds(chat: Chat, scripted: ScriptedSandbox) -> None:
    release = threading.Event()

    def wait(source: str) -> Outcome:
        release.wait(10)
        return Outcome("ok", "late")

    scripted.script = wait
    start = time.monotonic()
    call = results(chat, "while True: pass")
    release.set()
    assert time.monotonic() - start < 2
    assert "private" in call["results"][0]["title"]
    assert call["cache_time"] == 0


def test_a_sender_who_runs_too_much_is_told_so(chat: Chat, scripted: ScriptedSandbox) -> None:
    limits = replace(scripted.policy.limits, sender_concurrent=1, queue_seconds=0)
    scripted.policy = replace(scripted.policy, limits=limits)
    started, release = threading.Event(), threading.Event()

    def wait(source: str) -> Outcome:
        started.set()
        release.wait(10)
        return Outcome("ok", "late")

    scripted.script = wait
    with ThreadPoolExecutor() as threads:
        first = threads.submit(said, chat, "run", "f()")
        started.wait(10)
        assert "still running" in said(chat, "run", "2+2")
        assert "still running" in results(chat, "2+2")["results"][0]["title"]
        release.set()
        assert "late" in first.result()
