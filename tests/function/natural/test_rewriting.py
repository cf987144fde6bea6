"""What is proposed for natural input; each proposal is Python, and short."""

import math
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.natural.rewriting import LONGEST, NAMES, suggest
from function.natural.typography import parses


@pytest.mark.parametrize(
    ("text", "proposal"),
    [
        # separators
        ("1 000 000", "1_000_000"),
        ("1,000,000", "1_000_000"),
        ("1.000.000", "1_000_000"),
        ("1'000'000", "1_000_000"),
        ("1,234.56 * 2", "1234.56 * 2"),
        ("1.000,50", "1000.50"),
        ("10 000 * 1,2", "10000*1.2"),
        ("1,5 * (2,5 + 3)", "1.5 * (2.5 + 3)"),
        ("3,14", "3.14"),
        ("007+1", "7+1"),
        # percentages
        ("5%", "5/100"),
        ("20 + 10%", "20*(1+10/100)"),
        ("100 + 50 - 20%", "(100 + 50)*(1-20/100)"),
        ("15% of 200", "15/100*200"),
        ("15% от 200", "15/100*200"),
        ("50 / 10%", "50 /(10/100)"),
        ("20% off 50", "50*(1-20/100)"),
        ("15% tip on 80", "15/100*80"),
        ("10% discount on 200", "200*(1-10/100)"),
        ("5 is what percent of 20", "5/20*100"),
        # symbols
        ("√2", "math.sqrt(2)"),
        ("2√(3+1)", "2*math.sqrt(3+1)"),
        ("∛8", "math.cbrt(8)"),
        ("³√27", "math.cbrt(27)"),
        ("2π", "2*math.pi"),
        ("5²", "5**2"),
        ("2⁻¹", "2**-1"),
        ("½ + ¼", "1/2 + 1/4"),
        ("1½", "(1+1/2)"),
        ("5!", "math.factorial(5)"),
        ("(2+3)!", "math.factorial(2+3)"),
        ("|-5|", "abs(-5)"),
        ("2^-1", "2**-1"),
        # functions
        ("sqrt 16", "math.sqrt(16)"),
        ("Sqrt(16)", "math.sqrt(16)"),
        ("sin 30°", "math.sin(math.radians(30))"),
        ("sin(30)", "math.sin(math.radians(30))"),
        ("sin(pi/2)", "math.sin(math.pi/2)"),
        ("sin(0.5)", "math.sin(0.5)"),
        ("ln(2)", "math.log(2)"),
        ("log(100)", "math.log10(100)"),
        ("log(8, 2)", "math.log(8, 2)"),
        ("log base 2 of 8", "math.log(8, 2)"),
        ("5 choose 2", "math.comb(5, 2)"),
        ("round 3.7", "round(3.7)"),
        # side by side
        ("(2+3)(4+5)", "(2+3)*(4+5)"),
        ("2(3)", "2*(3)"),
        ("3sin(0.5)", "3*math.sin(0.5)"),
        ("2 x 3", "2 * 3"),
        ("10:2", "10/2"),
        ("(2+3", "(2+3)"),
        # words
        ("calc 2+2", "2+2"),
        ("2 + 2 equals what", "2+2"),
        ("what's 2 plus 2?", "2+2"),
        ("сколько будет 15*12", "15*12"),
        ("计算2+2", "2+2"),
        ("7 div 2", "7 // 2"),
        ("7 mod 2", "7 % 2"),
        ("square root of 16", "math.sqrt(16)"),
        ("2 to the power of 10", "2**10"),
        ("two times three", "2 * 3"),
        ("2 million * 3", "2*10**6 * 3"),
        ("3 apples + 2 apples", "3+2"),
        # money
        ("$100 * 3", "100*3"),
        ("5 usd * 3", "5*3"),
        # units
        ("36.6 C to F", "36.6*9/5+32"),
        ("98.6 °F in celsius", "(98.6-32)*5/9"),
        ("5 miles to km", "5*1.609344"),
        ("5 km to miles", "5/1.609344"),
        ("500 ml to l", "500/1000"),
        ("90 min to hours", "90/60"),
        ("how many cm in 6 feet", "6*30.48"),
        ("5 feet 11 inches in cm", "5*30.48 + 11*2.54"),
        ("1 hour 30 minutes in minutes", "1*60 + 30"),
        ("180 degrees to radians", "math.radians(180)"),
        ("pi/4 in degrees", "math.degrees(math.pi/4)"),
        ("255 to hex", "hex(255)"),
        ("1010 binary to decimal", 'int("1010", 2)'),
        # times
        ("15:30", "dt.timedelta(hours=15, minutes=30)"),
        ("3:30 pm + 45 min", "dt.timedelta(hours=15, minutes=30) + dt.timedelta(minutes=45)"),
        (
            "45 min + 1h 20 min",
            "dt.timedelta(minutes=45) + dt.timedelta(hours=1, minutes=20)",
        ),
        ("2026-01-05", "dt.date(2026, 1, 5)"),
        ("5.1.2026 + 2 weeks", "dt.date(2026, 1, 5) + dt.timedelta(weeks=2)"),
        (
            "days between 2026-01-01 and 2026-02-01",
            "(dt.date(2026, 2, 1) - dt.date(2026, 1, 1)).days",
        ),
        ("3pm + 2h", "dt.timedelta(hours=15) + dt.timedelta(hours=2)"),
        ("12/25/2026", "dt.date(2026, 12, 25)"),
        ("today", "dt.date.today()"),
        # lists
        ("avg 3 4 5", "sum([3,4,5])/3"),
        ("average of 1, 2 and 6", "sum([1,2,6])/3"),
        ("max 3 4 5", "max(3,4,5)"),
        ("sum of 1 to 10", "sum(range(1, 11))"),
        ("median 3 1 2", "import statistics\nstatistics.median([3,1,2])"),
        # equations and fractions
        (
            "solve x^2 - 5x + 6 = 0",
            "a, b, c = 1, -5, 6\nd = b*b - 4*a*c\n(-b + d**0.5)/(2*a), (-b - d**0.5)/(2*a)",
        ),
        ("2x + 3 = 7", "4/2"),
        ("1/3 as fraction", "from fractions import Fraction\nFraction(1, 3)"),
        ("0.75 as a fraction", 'from fractions import Fraction\nFraction("0.75")'),
        # other languages
        ("if 5 > 3 then print yes", 'print("yes") if 5 > 3 else None'),
        ("if 1 = 2 then 3 else 4", "print(3) if 1 == 2 else print(4)"),
        ('print "hi"', 'print("hi")'),
        ("print 2+2", "print(2+2)"),
        ("let x = 5", "x = 5"),
        ("x = 5, y = 3", "x = 5; y = 3"),
        ("3 > 2 && 1 < 2", "3 > 2 and 1 < 2"),
        ("5 = 5", "5 == 5"),
        ("x++", "x += 1"),
        ("x := 5", "x = 5"),
        ("5 > 3 ? 1 : 0", "1 if 5 > 3 else 0"),
        ("console.log(5)", "print(5)"),
        ("round(10/3;2)", "round(10/3,2)"),
        ("(1+2i)*(3-i)", "(1+2j)*(3-1j)"),
        # chance
        ("random number between 1 and 10", "random.randint(1, 10)"),
        ("roll a dice", "random.randint(1, 6)"),
        # capitals
        ("Math.sqrt(9)", "math.sqrt(9)"),
        ("Math.PI * 2", "math.pi * 2"),
        ("PRINT(5)", "print(5)"),
        ("Import math\nmath.sqrt(9)", "import math\nmath.sqrt(9)"),
        ("For i in range(3):\n    Print(i)", "for i in range(3):\n    print(i)"),
    ],
)
def test_natural_input_has_a_proposal(text: str, proposal: str) -> None:
    assert suggest(text) == proposal


@pytest.mark.parametrize(
    "text",
    [
        "2+2",
        "foo",
        "5 + apples",
        "hello world",
        "how are you?",
        "tell me 3 things",
        "100 USD",
        "2 + * 3",
        "sin²(30)",
        "for i in range(3)\n    print(i)",
        "x = 5\ny = 2x",
        "sin",
        "max(1,5)",
        "[1,5]",
        "1,2,3",
        "12.5.3",
        "?",
        "",
        "5 usd to eur",
        "1 kg to km",
        "x^2 + y^2 = 1",
    ],
)
def test_what_cannot_be_told_has_none(text: str) -> None:
    assert suggest(text) is None


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there(name: str) -> None:
    module, _, attribute = NAMES[name].partition(".")
    assert hasattr({"math": math, "random": random}[module], attribute)


_PIECES = [*"1a -,()%.²½√π!|x=:°'_\n", "if", "then", "solve", "avg", "to", "km", "print", "of"]
_PIECES += ["sqrt", "1h"]


@given(st.lists(st.sampled_from(_PIECES), max_size=60))
def test_a_proposal_parses_whatever_was_typed(pieces: list[str]) -> None:
    for text in ("".join(pieces), " ".join(pieces)):
        assert parses(suggest(text) or "1")


@given(st.text(max_size=LONGEST))
def test_any_text_is_taken(text: str) -> None:
    suggest(text)


@pytest.mark.parametrize("piece", [*_PIECES, "1,", "1 a", "1.", "a-", "1 and ", "+1%", "Print("])
@pytest.mark.parametrize("length", [LONGEST, 16_384])
def test_time_stays_short_for_repetitions(piece: str, length: int) -> None:
    text = (piece * length)[:length]
    started = time.process_time()
    suggest(text)
    assert time.process_time() - started < 0.5
