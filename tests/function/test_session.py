"""What the bot keeps of a user in a chat: the last answer, and a program that waits for input."""

from typing import Any

import pytest

from function import natural
from function.bot import Bot
from function.errors import Busy
from function.parts import text_of
from function.state.memory import Memory
from function.telegram.types import Identity, Reply
from sandbox.sandbox import Outcome, Sandbox
from tests.function.conftest import ScriptedSandbox

ASKS = "n = int(input('How many? '))\nn * int(input('Each? '))"
GROUP = {"id": -100, "type": "supergroup"}
BOT = {"id": 7, "is_bot": True, "username": "calc_bot"}


@pytest.fixture
def bot(sandbox: Sandbox) -> Any:
    bot = Bot(sandbox, Memory(), Identity(7, "calc_bot"), reader=natural)
    yield bot
    bot.close()


def answered(bot: Bot, text: str, user: int = 5, **fields: Any) -> Reply | None:
    chat = {"id": user, "type": "private"}
    message = {"message_id": 9, "from": {"id": user}, "chat": chat, "text": text, "date": 1}
    request = bot.read({"message": message | fields})
    return request and bot.reply(request)


def said(bot: Bot, text: str, user: int = 5, **fields: Any) -> str:
    reply = answered(bot, text, user, **fields)
    return text_of(reply.message) if reply else ""


def test_the_last_answer_is_the_users_own_in_this_chat(bot: Bot) -> None:
    assert said(bot, "6*7") == "42 = 6*7"
    assert said(bot, "_ + 1") == "43 = 42 + 1"
    assert said(bot, "ans * 2") == "86 = 43 * 2"
    assert said(bot, "10% of ans") == "8.6 = 10/100*86"
    assert "NameError" in said(bot, "_", user=6)
    assert "SyntaxError" in said(bot, "10% of ans", user=6)
    assert "NameError" in said(bot, "/cl _", chat=GROUP)


def test_what_cannot_be_gone_on_with_takes_the_last_answer_away(bot: Bot) -> None:
    said(bot, "6*7")
    said(bot, "1/0")
    assert said(bot, "_") == "42 = 42"
    said(bot, "[1, 2]")
    assert "NameError" in said(bot, "_")


def test_several_lines_of_sums_are_answered_line_by_line(bot: Bot) -> None:
    assert said(bot, "2+2\n3+3") == "4\n6"
    assert said(bot, "2+2\n1/0\n3").startswith("4\nZeroDivisionError")
    assert said(bot, "x = 2\nx + 1") == "3"
    assert said(bot, "2 # two\n\n1, 2") == "2\n(1, 2)"
    assert said(bot, "15% of 80\n2+2").split("\n")[1] == "4"


def test_a_program_in_a_fence_is_no_answer_to_a_question(bot: Bot) -> None:
    answered(bot, ASKS)
    assert said(bot, "```\n6*7\n```") == "42 = 6*7"


def test_a_program_that_asks_is_answered_by_the_next_message(bot: Bot) -> None:
    first = answered(bot, ASKS)
    assert first is not None
    assert first.asks
    assert text_of(first.message).startswith("How many?\n")
    second = answered(bot, "6")
    assert second is not None
    assert second.asks
    assert "Each?" in text_of(second.message)
    assert said(bot, "7") == "How many? Each? 42"
    assert said(bot, "7") == "7 = 7"  # the conversation is over


def test_several_lines_may_be_sent_at_once(bot: Bot) -> None:
    answered(bot, ASKS)
    assert said(bot, "6\n7") == "How many? Each? 42"


def test_an_answer_that_nobody_had_time_for_is_read_again(
    scripted: ScriptedSandbox,
) -> None:
    bot = Bot(scripted, Memory(), Identity(7, "calc_bot"), reader=natural)
    scripted.script = lambda source: Outcome("error", "", "EOFError: EOF when reading a line")
    answered(bot, "input() * 2")
    scripted.script = lambda source: Outcome("busy")
    with pytest.raises(Busy):
        answered(bot, "6")
    scripted.script = lambda source: Outcome("ok", "66")
    answered(bot, "6")
    assert scripted.programs == ["input() * 2"] * 3


def test_another_user_or_a_command_is_no_answer_to_the_question(bot: Bot) -> None:
    answered(bot, ASKS)
    assert said(bot, "6", user=6) == "6 = 6"
    assert said(bot, "/cl 6") == "6 = 6"
    assert said(bot, "6") == "6 = 6"


def test_in_a_group_a_reply_to_the_bot_is_the_answer(bot: Bot) -> None:
    answered(bot, "/cl 'Hi ' + input('Name? ')", chat=GROUP)
    reply = {"chat": GROUP, "reply_to_message": {"message_id": 10, "from": BOT, "chat": GROUP}}
    assert answered(bot, "thanks", user=6, **reply) is None
    assert said(bot, "Ada", **reply) == "Name? Hi Ada"
    assert answered(bot, "thanks", **reply) is None


def test_lines_may_come_with_the_program(bot: Bot) -> None:
    assert said(bot, f"{ASKS}\ninput:\n6\n7") == "How many? Each? 42"
    assert said(bot, f"```\n{ASKS}\n```\nInput:\n6\n7") == "How many? Each? 42"
    assert "waits for input" in said(bot, f"{ASKS}\ninput:\n6")
    assert said(bot, "7") == "How many? Each? 42"


def test_what_reads_sys_stdin_asks_for_its_lines(bot: Bot) -> None:
    assert "waits for input" in said(bot, "import sys\nsum(map(int, sys.stdin))")
    assert said(bot, "1\n2\n3") == "6"
    assert "waits for input" in said(bot, "from sys import stdin\nprint(stdin.read())")
    assert said(bot, "7") == "7"


def test_an_eof_of_the_programs_own_is_its_error(bot: Bot) -> None:
    assert said(bot, "raise EOFError('EOF when reading a line')").startswith("EOFError")
