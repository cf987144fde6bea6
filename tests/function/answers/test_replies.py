"""What the bot says about each way a program can end, within Telegram's limits."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function.answers.inline import article, articles
from function.answers.replies import lines, reply
from function.calculator import Answer
from function.parts import Parts, parts, text_of
from function.parts import code as as_code
from function.telegram.lengths import units
from function.telegram.sanitise import sanitise
from sandbox.check.checker import Violation
from sandbox.policy.loader import Policy
from sandbox.sandbox import Kind, Outcome


def answered(kind: Kind = "ok", **fields: Any) -> Answer:
    return Answer(Outcome(kind), **fields)


def code(message: Parts) -> list[str]:
    """What stands in the message's entities."""
    return [text for kind, text in message if kind]


def test_an_expression_is_answered_with_its_value_before_it(policy: Policy) -> None:
    message = reply(answered(output="4", expression="2+2"), policy).message
    assert message == (as_code("4 = 2+2"),)


def test_compact_answers_are_the_value_alone(policy: Policy) -> None:
    assert (
        text_of(reply(answered(output="4", expression="2+2"), policy, compact=True).message) == "4"
    )


def test_a_program_is_answered_with_its_output(policy: Policy) -> None:
    message = reply(answered(output="  *\n ***"), policy).message
    assert message == (as_code("  *\n ***"),)
    several = reply(answered(output="1\n2", expression="f()"), policy).message
    assert text_of(several) == "1\n2"


def test_a_warning_stands_below_the_answer(policy: Policy) -> None:
    message = reply(answered(output="4", expression="2+2", warning="SyntaxWarning: x"), policy)
    assert message.message == (as_code("4 = 2+2"), *parts("\n"), as_code("SyntaxWarning: x"))
    assert text_of(reply(answered(warning="W"), policy).message) == "No output.\nW"


def test_no_output_is_said(policy: Policy) -> None:
    assert reply(answered(), policy).message == parts("No output.")


def test_a_value_that_fits_only_without_the_program_comes_whole(policy: Policy) -> None:
    answer = answered(output="7" * 4095, expression='int("7"*4095)')
    assert text_of(reply(answer, policy).message) == "7" * 4095


def test_what_is_too_long_is_cut_and_kept_for_a_document(policy: Policy) -> None:
    output = "x" * 10000
    answer = reply(answered(output=output, document=output), policy)
    assert units(text_of(answer.message)) <= 4096
    assert "characters left out" in text_of(answer.message)
    assert answer.document == output
    assert units(text_of(answer.caption)) <= 1024
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
    assert said in text_of(reply(answered(kind), policy).message)
    message = reply(answered(kind, output="first"), policy).message
    assert text_of(message).startswith("first\n")
    assert said in text_of(message)
    assert code(message) == ["first"]


def test_limits_are_those_of_the_policy(policy: Policy) -> None:
    other = replace(policy, rlimits=replace(policy.rlimits, cpu_seconds=77))
    assert "77 s" in text_of(reply(answered("cpu_limit"), other).message)


def test_an_error_stands_beneath_what_was_printed(policy: Policy) -> None:
    message = reply(answered("error", output="1\n2", error="KeyError: 5 (line 3)"), policy).message
    assert text_of(message) == "1\n2\nKeyError: 5 (line 3)"
    assert code(message) == ["1\n2", "KeyError: 5 (line 3)"]


def test_a_syntax_error_shows_the_line_and_the_place(policy: Policy) -> None:
    error = "IndentationError: unexpected indent"
    place = Violation("syntax", 1, 1, error, "")
    answer = answered("syntax_error", error=error, violations=(place,), excerpt="  x\n ^")
    message = reply(answer, policy).message
    assert text_of(message) == "  x\n ^\nIndentationError: unexpected indent (line 1)"
    assert code(message) == [text_of(message)]


def test_a_refusal_is_one_sentence(policy: Policy) -> None:
    found = Violation("import", 1, 1, "`os` may not be imported here; allowed: math", "os")
    message = reply(answered("rejected", violations=(found,)), policy).message
    assert text_of(message) == "Not run: os may not be imported here; allowed: math"
    later = reply(answered("rejected", violations=(replace(found, line=3),)), policy).message
    assert "line 3: os may not" in text_of(later)


def test_of_many_refusals_the_first_are_told(policy: Policy) -> None:
    found = tuple(
        Violation("import", n, 1, f"`m{n}` is no; allowed: math", "") for n in range(1, 9)
    )
    message = reply(answered("rejected", violations=found), policy).message
    assert text_of(message).split("\n") == [
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
    assert text_of(message) == "8 = 2^10\nPower is **."
    assert code(message) == ["8 = 2^10", "**"]


def test_a_cut_leaves_room_for_what_is_said_beneath(policy: Policy) -> None:
    answer = answered("error", output="x" * 9000, error="e" * 9000, hint=parts("h" * 9000))
    message = reply(answer, policy).message
    assert 4000 < units(text_of(message)) <= 4096
    assert text_of(message).endswith("h")


@pytest.mark.parametrize("kind", ["ok", "error", "rejected", "syntax_error", "output_limit"])
@settings(max_examples=40)
@given(texts=st.lists(st.text(st.characters(exclude_categories=()), max_size=300), min_size=6))
def test_no_text_makes_a_message_too_long_or_its_entities_wrong(
    policy: Policy, kind: Kind, texts: list[str]
) -> None:
    output, error, expression, excerpt, hint, refusal = (sanitise(text * 20) for text in texts[:6])
    answer = answered(
        kind,
        output=output,
        document=output,
        error=error,
        expression=expression,
        excerpt=excerpt,
        hint=parts(as_code(hint)) if hint else (),
        violations=(Violation("x", 1, 1, refusal, ""),),
    )
    said = reply(answer, policy)
    messages = [said.message, *([said.caption] if said.document else [])]
    messages += [each.message for each in articles(answer, policy)]
    for message in messages:
        assert 0 < units(text_of(message)) <= 4096
        assert all(code(message))


def test_a_value_gives_three_results(policy: Policy) -> None:
    found = articles(answered(output="4", expression="2+2"), policy)
    assert [text_of(each.message) for each in found] == ["4 = 2+2", "2+2 = 4", "4"]
    assert [each.title for each in found] == ["4 = 2+2", "2+2 = 4", "4"]
    assert len({each.id for each in found}) == 3


def test_results_that_say_the_same_are_one(policy: Policy) -> None:
    found = articles(answered(output="4", expression="4"), policy)
    assert [text_of(each.message) for each in found] == ["4 = 4", "4"]


def test_other_ends_give_one_result(policy: Policy) -> None:
    found = articles(answered("error", error="ZeroDivisionError: division by zero"), policy)
    assert [each.title for each in found] == ["ZeroDivisionError: division by zero"]
    assert [each.title for each in articles(answered(), policy)] == ["No output."]


def test_a_long_result_has_a_short_title_and_an_id_that_fits() -> None:
    long = article(parts("ab\ncd " * 200))
    assert units(long.title) <= 64
    assert "\n" not in long.title
    assert long.description.startswith("ab cd")
    assert 1 <= len(long.id.encode()) <= 64
    assert long.id != article(parts("ab\ncd " * 201)).id


def test_code_is_marked_as_such_and_backticks_are_characters() -> None:
    message = lines([parts("use ", as_code("a`b"), " or `c`"), parts(as_code("d"))])
    assert text_of(message) == "use a`b or `c`\nd"
    assert code(message) == ["a`b", "d"]
