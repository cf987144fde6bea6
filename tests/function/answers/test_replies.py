"""What the bot says about each way a program can end, within Telegram's limits."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function.answers.replies import EMPTY, article, articles, compose, gateway, reply, say
from function.answers.visible import units, visible
from function.calculator import Answer
from function.parts import code as as_code
from function.parts import parts
from function.telegram.bot_api import Entity, Message, Place, send_message
from sandbox.check.checker import Violation
from sandbox.policy.loader import Policy
from sandbox.sandbox import Kind, Outcome


def answered(kind: Kind = "ok", **fields: Any) -> Answer:
    return Answer(Outcome(kind), **fields)


def code(message: Message) -> list[str]:
    """What stands in the message's entities."""
    encoded = message.text.encode("utf-16-le")
    return [
        encoded[entity.offset * 2 : (entity.offset + entity.length) * 2].decode("utf-16-le")
        for entity in message.entities
    ]


def test_an_expression_is_answered_with_its_value_before_it(policy: Policy) -> None:
    message = reply(answered(output="4", expression="2+2"), policy).message
    assert message == Message("4 = 2+2", (Entity("code", 0, 7),))


def test_compact_answers_are_the_value_alone(policy: Policy) -> None:
    assert reply(answered(output="4", expression="2+2"), policy, compact=True).message.text == "4"


def test_a_program_is_answered_with_its_output(policy: Policy) -> None:
    message = reply(answered(output="  *\n ***"), policy).message
    assert message == Message("  *\n ***", (Entity("pre", 0, 8),))
    lines = reply(answered(output="1\n2", expression="f()"), policy).message
    assert lines.text == "1\n2"


def test_no_output_is_said(policy: Policy) -> None:
    assert reply(answered(), policy).message == Message("No output.")


def test_a_value_that_fits_only_without_the_program_comes_whole(policy: Policy) -> None:
    answer = answered(output="7" * 4095, expression='int("7"*4095)')
    assert reply(answer, policy).message.text == "7" * 4095


def test_what_is_too_long_is_cut_and_kept_for_a_document(policy: Policy) -> None:
    output = "x" * 10000
    answer = reply(answered(output=output), policy)
    assert units(answer.message.text) <= 4096
    assert "characters left out" in answer.message.text
    assert answer.document == output
    assert units(answer.caption.text) <= 1024
    assert reply(answered(output="x" * 4096), policy).document == ""


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("cpu_limit", "limit of 2 s"),
        ("wall_limit", "limit of 8 s"),
        ("memory_limit", "memory than the 512 MiB"),
        ("output_limit", "limit of 64 KiB"),
        ("crashed", "crashed"),
        ("busy", "try again in a few seconds"),
        ("unavailable", "try again in a minute"),
    ],
)
def test_each_end_has_its_own_sentence_with_the_limit(
    policy: Policy, kind: Kind, said: str
) -> None:
    assert said in reply(answered(kind), policy).message.text
    message = reply(answered(kind, output="first"), policy).message
    assert message.text.startswith("first\n")
    assert said in message.text
    assert code(message) == ["first"]


def test_limits_are_those_of_the_policy(policy: Policy) -> None:
    other = replace(policy, rlimits=replace(policy.rlimits, cpu_seconds=77))
    assert "77 s" in reply(answered("cpu_limit"), other).message.text


def test_an_error_stands_beneath_what_was_printed(policy: Policy) -> None:
    message = reply(answered("error", output="1\n2", error="KeyError: 5 (line 3)"), policy).message
    assert message.text == "1\n2\nKeyError: 5 (line 3)"
    assert code(message) == ["1\n2", "KeyError: 5 (line 3)"]


def test_a_syntax_error_shows_the_line_and_the_place(policy: Policy) -> None:
    error = "IndentationError: unexpected indent"
    place = Violation("syntax", 1, 1, error, "")
    answer = answered("syntax_error", error=error, violations=(place,), excerpt="  x\n ^")
    message = reply(answer, policy).message
    assert message.text == "  x\n ^\nIndentationError: unexpected indent (line 1)"
    assert code(message) == [message.text]


def test_a_refusal_is_one_sentence(policy: Policy) -> None:
    found = Violation("import", 1, 1, "`os` may not be imported here; allowed: math", "os")
    message = reply(answered("rejected", violations=(found,)), policy).message
    assert message.text == "Not run: os may not be imported here; allowed: math"
    later = reply(answered("rejected", violations=(replace(found, line=3),)), policy).message
    assert "line 3: os may not" in later.text


def test_of_many_refusals_the_first_are_told(policy: Policy) -> None:
    found = tuple(
        Violation("import", n, 1, f"`m{n}` is no; allowed: math", "") for n in range(1, 9)
    )
    message = reply(answered("rejected", violations=found), policy).message
    assert message.text.split("\n") == [
        "Not run:",
        "line 1: m1 is no; allowed: math",
        "line 2: m2 is no",
        "line 3: m3 is no",
        "… and 5 more.",
    ]
    assert code(message) == ["m1", "m2", "m3"]


def test_a_hint_stands_last_with_its_code_marked(policy: Policy) -> None:
    answer = answered(output="8", expression="2^10", hint=parts("Power is ", as_code("**"), "."))
    message = reply(answer, policy).message
    assert message.text == "8 = 2^10\nPower is **."
    assert code(message) == ["8 = 2^10", "**"]


def test_a_cut_leaves_room_for_what_is_said_beneath(policy: Policy) -> None:
    answer = answered("error", output="x" * 9000, error="e" * 9000, hint=parts("h" * 9000))
    message = reply(answer, policy).message
    assert 4000 < units(message.text) <= 4096
    assert message.text.endswith("h")


@pytest.mark.parametrize("kind", ["ok", "error", "rejected", "syntax_error", "output_limit"])
@settings(max_examples=40)
@given(texts=st.lists(st.text(st.characters(exclude_categories=()), max_size=300), min_size=6))
def test_no_text_makes_a_message_too_long_or_its_entities_wrong(
    policy: Policy, kind: Kind, texts: list[str]
) -> None:
    output, error, expression, excerpt, hint, refusal = (visible(text * 20) for text in texts[:6])
    answer = answered(
        kind,
        output=output,
        error=error,
        expression=expression,
        excerpt=excerpt,
        hint=parts(as_code(hint)),
        violations=(Violation("x", 1, 1, refusal, ""),),
    )
    said = reply(answer, policy)
    messages = [said.message, *([said.caption] if said.document else [])]
    messages += [each.message for each in articles(answer, policy)]
    for message in messages:
        assert 0 < units(message.text) <= 4096
        assert all(code(message))


def test_a_value_gives_three_results(policy: Policy) -> None:
    found = articles(answered(output="4", expression="2+2"), policy)
    assert [each.message.text for each in found] == ["4 = 2+2", "2+2 = 4", "4"]
    assert [each.title for each in found] == ["4 = 2+2", "2+2 = 4", "4"]
    assert len({each.id for each in found}) == 3


def test_results_that_say_the_same_are_one(policy: Policy) -> None:
    found = articles(answered(output="4", expression="4"), policy)
    assert [each.message.text for each in found] == ["4 = 4", "4"]


def test_other_ends_give_one_result(policy: Policy) -> None:
    found = articles(answered("error", error="ZeroDivisionError: division by zero"), policy)
    assert [each.title for each in found] == ["ZeroDivisionError: division by zero"]
    assert [each.title for each in articles(answered(), policy)] == ["No output."]


def test_a_long_result_has_a_short_title_and_an_id_that_fits() -> None:
    long = article(say("ab\ncd " * 200))
    assert units(long.title) <= 64
    assert "\n" not in long.title
    assert long.description.startswith("ab cd")
    assert 1 <= len(long.id.encode()) <= 64
    assert long.id != article(say("ab\ncd " * 201)).id


def test_the_gateway_gets_the_text_as_body() -> None:
    call = send_message(Place(5, 9, None, True), say("4"))
    body = gateway(call)
    assert (body["type"], body["body"], body["text"]) == ("text", "4", "4")
    assert "method" not in body
    assert gateway(None) == EMPTY == {"type": "empty", "body": ""}


def test_code_is_marked_as_such_and_backticks_are_characters() -> None:
    message = compose([parts("use ", as_code("a`b"), " or `c`"), parts(as_code("d"))])
    assert message.text == "use a`b or `c`\nd"
    assert code(message) == ["a`b", "d"]
