"""Texts that phones, chat clients and consoles have changed."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.natural.typography import normalise, parses


@pytest.mark.parametrize(
    ("typed", "program"),
    [
        ("2−3", "2-3"),
        ("5–3", "5-3"),
        ("6×7", "6*7"),
        ("6 ÷ 2", "6 / 2"),
        ("3 ≤ 4", "3 <= 4"),
        ("2\u00a0+\u202f2", "2 + 2"),
        ("2\u200b+2", "2+2"),
        ("２＋２", "2+2"),
        ("٢+٢", "2+2"),
        ("2️⃣+2", "2+2"),
        ("x = 10\nx —= 3\nx", "x = 10\nx -= 3\nx"),
        ("1 « 3", "1 << 3"),
        ("print(“hello”)", 'print("hello")'),
        ("‘a’ + ‘b’", "'a' + 'b'"),
        ("print(«привет»)", 'print("привет")'),
        ("print(“«a»”)", 'print("«a»")'),
        ("print(“””a\nb”””)", 'print("""a\nb""")'),
        ('print("a”)', 'print("a")'),
        ("f“{d[‘a’]}”", "f\"{d['a']}\""),
        ("x[…]", "x[...]"),
        ("def f() → int: pass", "def f() -> int: pass"),
    ],
)
def test_typeset_characters_become_pythons_own(typed: str, program: str) -> None:
    assert normalise(typed) == program


@pytest.mark.parametrize(
    ("typed", "program"),
    [
        ("= 2+2", "2+2"),
        ("2+2=", "2+2"),
        ("2+2 = ?", "2+2"),
        ("¿2+2?", "2+2"),
        ("2+2 🙂", "2+2"),
        ('🧮 print("😀"*3)', 'print("😀"*3)'),
        ("👨\u200d👩\u200d👧 sum(range(5)) 👍🏽", "sum(range(5))"),
        (">>> 2+2", "2+2"),
        (">>> x = 3\n>>> x * 2\n6", "x = 3\nx * 2"),
        (
            ">>> for i in range(2):\n...     print(i)\n...\n0\n1",
            "for i in range(2):\n    print(i)\n",
        ),
        ("In [1]: x = (1 +\n   ...: 2)\nIn [2]: x\nOut[2]: 3", "x = (1 +\n2)\nx"),
        ("`2+2`", "2+2"),
        ("``` python\nprint(1+1)\n```", "print(1+1)"),
        ("~~~\nprint(6)\n~~~", "print(6)"),
        ("````\n2+2\n````", "2+2"),
        ("\ufeff2+2", "2+2"),
        ("2&lt;3", "2<3"),
        ("2\\*3", "2*3"),
        ("**2+2**", "2+2"),
        ("> x = 1\n> x", "x = 1\nx"),
        ("1. x = 5\n2. print(x)", "x = 5\nprint(x)"),
        ("Print(5)", "print(5)"),
        ("Import math\nMath.sqrt(9)", "import math\nmath.sqrt(9)"),
        ("For i in range(3):\n    Print(i)", "for i in range(3):\n    print(i)"),
        ("```python\nprint(1+1)\n```", "print(1+1)"),
        ("```2+2```", "2+2"),
        ("  x = 1\n  x", "x = 1\nx"),
        ("   x = 1\nx", "x = 1\nx"),
        ("x = 1\n  y = 2\n  x+y", "x = 1\ny = 2\nx+y"),
    ],
)
def test_what_surrounds_a_program_is_dropped(typed: str, program: str) -> None:
    assert (normalise(typed) or "").strip() == program.strip()


@pytest.mark.parametrize(
    ("typed", "program"),
    [
        ("print(“a — b” × 2)  # ×", 'print("a — b" * 2)  # ×'),
        ("‘“×”’ × 2", "'“×”' * 2"),
        ("“it’s” + ‘’", "\"it’s\" + ''"),
        ('"""×\n“"""  × 2', '"""×\n“"""  * 2'),
        (r"'\'×' × 2", r"'\'×' * 2"),
    ],
)
def test_text_inside_literals_and_comments_stays_as_typed(typed: str, program: str) -> None:
    assert normalise(typed) == program


@pytest.mark.parametrize(
    "text",
    [
        "2+2",
        "x = '×'",
        "print('“')",
        "# ×\n1",
        "2^10",
        "π = 3\nπ",
        "",
        "5%",
        "😀+1",
        "30°",
        "🙂",
        "2.5.4",
    ],
)
def test_what_parses_or_cannot_be_made_to_is_left_alone(text: str) -> None:
    assert normalise(text) is None


@given(st.text())
def test_the_result_parses_and_differs_for_any_text(text: str) -> None:
    program = normalise(text)
    if program is not None:
        assert parses(program)
        assert program != text


@given(st.text(alphabet="“”‘’'\"«»—×\\#\n (1+a)`>.=?٢🙂"))
def test_the_result_parses_for_texts_of_the_characters_that_are_mapped(text: str) -> None:
    assert parses(normalise(text) or "1")


@pytest.mark.parametrize("text", ["(" * 99_999, "\ud83d + 1", "1\x00", "-" * 99_999])
def test_texts_that_break_parsers_are_no_programs(text: str) -> None:
    assert normalise(text) is None


@pytest.mark.parametrize("unit", ['"""\\', *"“'`🙂=٢", "«a", ">>> ", "\n—", "#×\n("])
def test_time_grows_with_the_length_only(unit: str) -> None:
    text = unit * (16_384 // len(unit)) + " ("
    started = time.process_time()
    normalise(text)
    assert time.process_time() - started < 1


DOCTEST = 'def f(n):\n    """Add.\n\n    >>> 2 + 2\n    4\n    """\n    return n'


@pytest.mark.parametrize(
    ("typed", "program"),
    [
        (">>> >>> 2+2", "2+2"),
        ("In [1]: x = 3\nIn [2]: x * 2\nOut[2]: 6", "x = 3\nx * 2"),
        ("In [1]: for i in x:\n   ...:     i\n   ...: \n", "for i in x:\n    i\n"),
        (
            'Python 3.12.1 (main)\n[GCC 12.2] on linux\nType "help" for more.\n>>> 2+2\n4',
            "2+2",
        ),
    ],
)
def test_a_text_that_begins_as_a_console_does_is_a_transcript(typed: str, program: str) -> None:
    assert (normalise(typed) or "").strip() == program.strip()


@pytest.mark.parametrize("program", [DOCTEST, f"{DOCTEST} / 0\nf(1)", f"{DOCTEST} + (1\nf(1)"])
def test_prompts_within_a_program_make_no_transcript_of_it(program: str) -> None:
    assert normalise(program) is None
