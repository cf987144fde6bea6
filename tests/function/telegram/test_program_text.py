"""Which part of a message is the program."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.telegram.program_text import Span, code_spans, find_program


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("2+2", "2+2"),
        ("```\n3*7\n```", "3*7"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("```py print(1)```", "print(1)"),
        ("```2+2```", "2+2"),
        ("```python\nprint(1)", "print(1)"),
        ("look at this\n```\na = 1\na\n```\nwhat is it?", "a = 1\na"),
        ("```\na = 1\n```\nand then\n```\na\n```", "a = 1\na"),
        ("`2+5`", "2+5"),
        ("``2+5``", "2+5"),
        ("print('_x_ `tick` ```py\\nx```')", "print('_x_ `tick` ```py\\nx```')"),
        ("````\n3*7\n````", "3*7"),
        ("~~~python\n3*7\n~~~", "3*7"),
        ("\ufeffprint(1)", "print(1)"),
        ('"""\n```\n2+2\n```\n"""\nprint(5)', '"""\n```\n2+2\n```\n"""\nprint(5)'),
        ('"""\n```\n2+2\n```\n"""\nprint(5', '"""\n```\n2+2\n```\n"""\nprint(5'),
        ("   2+2", "2+2"),
        ("    a = 1\n    if a:\n        print(a)\n", "a = 1\nif a:\n    print(a)"),
        ("\n\n\nif 1:\n    print(2)\n\n", "if 1:\n    print(2)"),
        ("a = 1\r\na", "a = 1\na"),
        ("``````", ""),
        (" \n ", ""),
    ],
)
def test_a_program_is_found_in_plain_text(text: str, program: str) -> None:
    assert find_program(text) == program


@pytest.mark.parametrize(
    ("text", "spans", "program"),
    [
        ("run a=1 now", [Span("code", 4, 7)], "a=1"),
        ("run a=1 or b=2", [Span("code", 4, 7), Span("code", 11, 14)], "a=1\nb=2"),
        ("a=1;b=2", [Span("code", 0, 3), Span("code", 4, 7)], "a=1;b=2"),
        ("first\na=1\nthen\na", [Span("pre", 6, 9), Span("pre", 15, 16)], "a=1\na"),
        ("see x: 1+1", [Span("code", 4, 5), Span("pre", 7, 10)], "1+1"),
    ],
)
def test_formatted_code_amid_prose_is_the_program(
    text: str, spans: list[Span], program: str
) -> None:
    assert find_program(text, spans) == program


def test_only_the_part_after_a_command_counts() -> None:
    assert find_program("/cl 1+1", [Span("pre", 0, 7)], begin=3) == "1+1"


@pytest.mark.parametrize(
    ("text", "entity", "code"),
    [
        ("🧮 print(1)", ("pre", 3, 8), "print(1)"),
        ("👨‍👩‍👧 sum([]) 🙂", ("code", 9, 7), "sum([])"),
        ("😀+1", ("code", 1, 2), None),  # begins inside a surrogate pair
        ("2+2", ("code", 0, 4), None),  # ends outside the text
        ("2+2", ("code", -1, 2), None),
        ("2+2", ("bold", 0, 3), None),
    ],
)
def test_entities_count_utf16_units(
    text: str, entity: tuple[str, int, int], code: str | None
) -> None:
    found = [text[span.start : span.stop] for span in code_spans(text, [entity])]
    assert found == ([code] if code else [])


def test_spans_that_overlap_hold_no_more_than_the_text() -> None:
    text = "a" * 1000
    spans = code_spans(text, [("pre", 1 + index % 7, 990) for index in range(300)])
    assert spans == [Span("pre", 1, 997)]


@given(
    st.text(alphabet=st.sampled_from("`p1+\n \ud83d😀"), max_size=60),
    st.lists(st.tuples(st.sampled_from(["pre", "code"]), st.integers(-3, 60), st.integers(-3, 60))),
)
def test_any_text_with_any_entities_gives_a_program(
    text: str, entities: list[tuple[str, int, int]]
) -> None:
    program = find_program(text, code_spans(text, entities))
    assert program == program.strip()
