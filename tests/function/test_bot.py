"""What the bot says of itself, remembers of people, and does about queries that take long."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from function.bot import CACHE_SECONDS, Bot
from function.errors import Busy
from function.parts import text_of
from function.state.memory import Memory
from function.telegram.types import Address, Identity, InlineQuery, Request, Results
from sandbox.sandbox import Outcome
from tests.function.conftest import ScriptedSandbox

PRIVATE = Address(5, 9, None, private=True)
GROUP = Address(-100, 9, None, private=False)


@pytest.fixture
def bot(scripted: ScriptedSandbox) -> Any:
    bot = Bot(scripted, Memory(), Identity(1, "calc_bot"))
    yield bot
    bot.close()


def said(bot: Bot, action: Any, text: str = "", address: Address = PRIVATE, user: int = 5) -> str:
    return text_of(bot.reply(Request(address, user, action, text)).message)


def results(bot: Bot, text: str, offset: str = "") -> Results:
    return bot.results(InlineQuery("77", 5, text, offset))


def test_help_shows_examples_imports_and_limits_of_the_policy(bot: Bot) -> None:
    text = said(bot, "start")
    for part in ("2+2", "/cl", "@calc_bot", "statistics", "2 s", "8 s", "512 MiB", "16 KiB"):
        assert part in text
    assert text == said(bot, "help")
    assert len(text) < 4096


def test_the_mode_is_each_persons_own_and_changes_back(bot: Bot) -> None:
    assert said(bot, "run", "2+2") == "2+2 = 2+2"
    assert "compact" in said(bot, "mode")
    assert said(bot, "run", "2+2") == "2+2"
    assert said(bot, "run", "2+2", user=6) == "2+2 = 2+2"
    assert "full" in said(bot, "mode")
    assert said(bot, "run", "2+2") == "2+2 = 2+2"


def test_the_mode_is_not_changed_in_a_group(bot: Bot) -> None:
    assert "in private" in said(bot, "mode", address=GROUP)
    assert said(bot, "run", "2+2") == "2+2 = 2+2"


@pytest.mark.parametrize("action", ["privacy", "usage", "unknown_command", "no_text", "document"])
def test_every_wish_has_an_answer_that_runs_nothing(
    bot: Bot, scripted: ScriptedSandbox, action: str
) -> None:
    assert said(bot, action)
    assert scripted.programs == []


def test_a_file_is_fetched_up_to_the_source_limit_and_run(scripted: ScriptedSandbox) -> None:
    def fetch(file_id: str, most: int) -> str:
        if file_id == "binary":
            raise ValueError
        return f"{file_id!r}, {most}"

    bot = Bot(scripted, Memory(), Identity(), fetch=fetch)
    limit = scripted.policy.limits.source_bytes
    assert said(bot, "document", "F1") == f"'F1', {limit} = 'F1', {limit}"
    assert "too long or no text" in said(bot, "document", "binary")


def test_a_busy_sandbox_is_told_to_the_caller(bot: Bot, scripted: ScriptedSandbox) -> None:
    scripted.script = lambda source: Outcome("busy")
    with pytest.raises(Busy, match="busy"):
        said(bot, "run", "2+2")
    with pytest.raises(Busy):
        results(bot, "2+2")


@pytest.mark.parametrize("text", ["", "  ", "2+", "math.sqrt(", "what this"])
def test_unfinished_queries_get_no_results_and_run_nothing(
    bot: Bot, scripted: ScriptedSandbox, text: str
) -> None:
    assert results(bot, text).articles == ()
    assert scripted.programs == []
    if text.strip():
        assert results(bot, text).cache_seconds == 0


def test_there_is_no_second_page(bot: Bot) -> None:
    assert results(bot, "2+2", offset="50").articles == ()


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
def test_only_results_that_are_always_the_same_are_kept(bot: Bot, text: str, is_kept: bool) -> None:
    call = results(bot, text)
    assert (call.cache_seconds == CACHE_SECONDS) is is_kept
    assert True


def test_a_slow_query_is_answered_within_two_seconds(bot: Bot, scripted: ScriptedSandbox) -> None:
    release = threading.Event()

    def wait(source: str) -> Outcome:
        release.wait(10)
        return Outcome("ok", "late")

    scripted.script = wait
    start = time.monotonic()
    call = results(bot, "while True: pass")
    release.set()
    assert time.monotonic() - start < 2
    assert "private" in call.articles[0].title
    assert call.cache_seconds == 0


def test_a_sender_who_runs_too_much_is_told_so(bot: Bot, scripted: ScriptedSandbox) -> None:
    limits = replace(scripted.policy.limits, sender_concurrent=1, queue_seconds=0)
    scripted.policy = replace(scripted.policy, limits=limits)
    started, release = threading.Event(), threading.Event()

    def wait(source: str) -> Outcome:
        started.set()
        release.wait(10)
        return Outcome("ok", "late")

    scripted.script = wait
    with ThreadPoolExecutor() as threads:
        first = threads.submit(said, bot, "run", "f()")
        started.wait(10)
        assert "still running" in said(bot, "run", "2+2")
        assert "still running" in results(bot, "2+2").articles[0].title
        release.set()
        assert "late" in first.result()
