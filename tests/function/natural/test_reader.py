"""How natural input is read: each reading is Python, and no word of the text is left out."""

import ast
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function import natural
from function.natural.reader import LONGEST, read
from sandbox import Policy


@pytest.mark.parametrize(
    ("text", "read_as"), [("5—1", ["5-1", "5-(-1)"]), ("5 — 1", ["5-1"]), ("5–1", ["5-1"])]
)
def test_a_dash_may_have_been_two_minus_signs(text: str, read_as: list[str]) -> None:
    assert readings(text) == read_as


def readings(text: str) -> list[str]:
    return [each.text for each in read(text).expressions]


@pytest.mark.parametrize(
    ("text", "program"),
    [
        # separators
        ("1 000 000", "1_000_000"),
        ("1,000,000", "1_000_000"),
        ("1.000.000", "1_000_000"),
        ("1'000'000", "1_000_000"),
        ("1,234.56 * 2", "1234.56*2"),
        ("1.000,50", "1000.50"),
        ("10 000 * 1,2", "10_000*1.2"),
        ("1,5 * (2,5 + 3)", "1.5*(2.5+3)"),
        ("3,14", "3.14"),
        ("007", "7"),
        ("1.234.567,5 + 0,5", "1234567.5+0.5"),
        # percentages
        ("5%", "5/100"),
        ("20 + 10%", "20*(1+10/100)"),
        ("100 + 50 - 20%", "(100+50)*(1-20/100)"),
        ("10 + 5% + 5%", "10*(1+5/100)*(1+5/100)"),
        ("50% + 50%", "50/100+50/100"),
        ("90 + (5% + 5%)", "90+(5/100+5/100)"),
        ("15% of 200", "15/100*200"),
        ("15% от 200", "15/100*200"),
        ("٢٥٪ من ٢٠٠", "25/100*200"),
        ("50 / 10%", "50/(10/100)"),
        ("20% off 50", "50*(1-20/100)"),
        ("15% tip on 80", "15/100*80"),
        ("10% discount on 200", "200*(1-10/100)"),
        ("decrease 500 by 8%", "500*(1-8/100)"),
        ("увеличить 400 на 5%", "400*(1+5/100)"),
        ("5 is what percent of 20", "5/20*100"),
        ("1/3 as percent", "1/3*100"),
        ("add 10% to 90", "90*(1+10/100)"),
        ("прибавить 10% к 90", "90*(1+10/100)"),
        ("12 less 5", "12-5"),
        ("120 plus 20% VAT", "120*(1+20/100)"),
        ("1500 + 20% НДС", "1500*(1+20/100)"),
        ("60 with 15% tip", "60*(1+15/100)"),
        ("49.99 with 20% discount", "49.99*(1-20/100)"),
        ("200 increased by 15%", "200*(1+15/100)"),
        ("percent change from 50 to 75", "(75-50)/50*100"),
        ("90 is 45% of what", "90/(45/100)"),
        ("10 % of 200 + 5 % of 100", "10/100*200+5/100*100"),
        ("el 20% de 150", "20/100*150"),
        ("80的15%", "15/100*80"),
        ("80 का 15%", "15/100*80"),
        ("۲۰٪ از ۱۵۰", "20/100*150"),
        # symbols
        ("√2", "math.sqrt(2)"),
        ("2√(3+1)", "2*math.sqrt(3+1)"),
        ("∛8", "math.cbrt(8)"),
        ("³√27", "math.cbrt(27)"),
        ("⁴√81", "81**0.25"),
        ("根号16", "math.sqrt(16)"),
        ("2的10次方", "2**10"),
        ("sqrt of 9 plus sqrt of 16", "math.sqrt(9)+math.sqrt(16)"),
        ("2π", "2*math.pi"),
        ("5²", "5**2"),
        ("-5²", "-5**2"),
        ("2⁻¹", "2**-1"),
        ("½ + ¼", "1/2+1/4"),
        ("1½", "1+1/2"),
        ("6:2½", "6/(2+1/2)"),
        ("7 - 2 3/4", "7-(2+3/4)"),
        ("5!", "math.factorial(5)"),
        ("-3!", "-math.factorial(3)"),
        ("(2+3)!", "math.factorial(2+3)"),
        ("|-5|", "abs(-5)"),
        ("2^-1", "2**-1"),
        ("2^{3+4}", "2**(3+4)"),
        ("2^3^2", "2**3**2"),
        ("2 cm + 1 in", "2+1*2.54"),
        # functions
        ("sqrt 16", "math.sqrt(16)"),
        ("Sqrt(16)", "math.sqrt(16)"),
        ("sin 30°", "math.sin(math.radians(30))"),
        ("sin(30)", "math.sin(math.radians(30))"),
        ("sin(pi/2)", "math.sin(math.pi/2)"),
        ("sin²(30°)", "math.sin(math.radians(30))**2"),
        ("(1+sin 30)*2", "(1+math.sin(math.radians(30)))*2"),
        ("ln(2)", "math.log(2)"),
        ("log_2 8", "math.log2(8)"),
        ("sin^2 30", "math.sin(math.radians(30))**2"),
        ("log(8, 2)", "math.log(8, 2)"),
        ("log base 2 of 8", "math.log(8, 2)"),
        ("root(27, 3)", "27**(1/3)"),
        ("log₁₀ 1000", "math.log10(1000)"),
        ("5 choose 2", "math.comb(5, 2)"),
        ("round 3.7", "round(3.7)"),
        ("100/7 to 2 decimals", "round(100/7, 2)"),
        ("Math.pow(2,3)", "math.pow(2, 3)"),
        ("math.sqrt(2,25)", "math.sqrt(2.25)"),
        ("arctan 1 in degrees", "math.degrees(math.atan(1))"),
        # side by side
        ("(2+3)(4+5)", "(2+3)*(4+5)"),
        ("2(3)", "2*3"),
        ("3(4)^2", "3*4**2"),
        ("2 x 3", "2*3"),
        ("10:2", "10/2"),
        ("(2+3", "2+3"),
        # words
        ("calc 2+2", "2+2"),
        ("can you tell me what 12*12 is?", "12*12"),
        ("10 times 10 = what?", "10*10"),
        ("2+2 сколько", "2+2"),
        ("от 10 отнять 3", "10-3"),
        ("combien ça fait 3 fois 4", "3*4"),
        ("12*12=多少", "12*12"),
        ("كم 5+5؟", "5+5"),
        ("2 + 2 कितना है", "2+2"),
        ("two and a half times 4", "(2+1/2)*4"),
        ("2 + 2 equals what", "2+2"),
        ("what's 2 plus 2?", "2+2"),
        ("сколько будет 15*12", "15*12"),
        ("7 div 2", "7//2"),
        ("7 mod 2", "7 % 2"),
        ("square root of 16", "math.sqrt(16)"),
        ("2 to the power of 10", "2**10"),
        ("2 в 10 степени", "2**10"),
        ("two times three", "2*3"),
        ("计算2+2", "2+2"),
        ("12除以4等于多少", "12/4"),
        ("two point five plus point five", "2.5+0.5"),
        ("zero point zero five", "0.05"),
        ("3 point 14", "3.14"),
        ("two point five million", "2500000"),
        ("zwei komma fünf mal zwei", "2.5*2"),
        ("две целых пять десятых", "2.5"),
        ("одна целая и двадцать пять сотых", "1.25"),
        ("ноль целых сто двадцать пять тысячных", "0.125"),
        ("two hundred plus 5", "200+5"),
        ("ninety-nine plus one", "99+1"),
        ("fünfundzwanzig mal zwei", "25*2"),
        ("quatre-vingt-dix plus deux", "90+2"),
        ("treinta y cinco más uno", "35+1"),
        ("сто двадцать три плюс один", "123+1"),
        ("2 million * 3", "2000000*3"),
        ("10k/5k", "10000/5000"),
        ("5 thousand 300 minus 300", "5300-300"),
        ("two thirds of 27", "2/3*27"),
        ("subtract 3 from 10", "10-3"),
        ("на 5 больше 12", "12+5"),
        # money
        ("$100 * 3", "100*3"),
        ("3 x $4.50", "3*4.50"),
        ("$2M / 4", "2000000/4"),
        ("5 usd * 3", "5*3"),
        ("5€ + 10%", "5*(1+10/100)"),
        # units
        ("36.6 C to F", "36.6*9/5+32"),
        ("98.6 °F in celsius", "(98.6-32)*5/9"),
        ("5 miles to km", "5*1.609344"),
        ("5 km to miles", "5/1.609344"),
        ("500 ml to l", "500/1000"),
        ("how many cm in 6 feet", "6*30.48"),
        ("сколько сантиметров в 2 метрах", "2*100"),
        ("1/2 cup in ml", "1/2*236.5882365"),
        ("5 feet 11 inches in cm", "(5+11/12)*30.48"),
        ("5'11\" in cm", "(5+11/12)*30.48"),
        ("5’11” in cm", "(5+11/12)*30.48"),
        ("180 degrees to radians", "math.radians(180)"),
        ("pi/4 in degrees", "math.degrees(math.pi/4)"),
        ("255 to hex", "hex(255)"),
        ("1010 binary to decimal", 'int("1010", 2)'),
        ("ff hex to binary", 'bin(int("ff", 16))'),
        ("12 km / 3 h", "12/3"),
        ("$20 / 4 kg", "20/4"),
        ("100 km per 2 hours", "100/2"),
        ("5 km / 20 min in km/h", "5/20*60"),
        (
            "10 km / 1 h 30 min",
            "10/((dt.timedelta(hours=1)+dt.timedelta(minutes=30))/dt.timedelta(hours=1))",
        ),
        ("how many feet in a mile", "1*5280"),
        # times
        ("90 min to hours", "dt.timedelta(minutes=90)/dt.timedelta(hours=1)"),
        ("3:30 pm + 45 min", "dt.timedelta(hours=15, minutes=30)+dt.timedelta(minutes=45)"),
        ("9:00-17:30", "dt.timedelta(hours=17, minutes=30)-dt.timedelta(hours=9)"),
        ("2026-01-05", "dt.date(2026, 1, 5)"),
        ("5.1.2026 + 2 weeks", "dt.date(2026, 1, 5)+dt.timedelta(weeks=2)"),
        ("2024-01-31 + 1 month", "dt.date(2024, 2, 29)"),
        (
            "days between 2026-01-01 and 2026-02-01",
            "(dt.date(2026, 2, 1)-dt.date(2026, 1, 1)).days",
        ),
        ("12/25/2026", "dt.date(2026, 12, 25)"),
        ("December 25, 2026", "dt.date(2026, 12, 25)"),
        ("24. Dezember 2026", "dt.date(2026, 12, 24)"),
        ("1 de enero de 2024 + 3 días", "dt.date(2024, 1, 1)+dt.timedelta(days=3)"),
        ("from 1 jan 2024 to 5 feb 2024", "(dt.date(2024, 2, 5)-dt.date(2024, 1, 1)).days"),
        ("today", "dt.date.today()"),
        # lists
        ("avg 3 4 5", "sum([3, 4, 5])/3"),
        ("average of 1, 2 and 6", "sum([1, 2, 6])/3"),
        ("avg 3,5 and 4,5", "sum([3.5, 4.5])/2"),
        ("max 3 4 5", "max(3, 4, 5)"),
        ("sum 100 200 300", "sum([100, 200, 300])"),
        ("sum of 1 to 10", "sum(range(1, 10+1))"),
        ("median 3 1 2", "statistics.median([3, 1, 2])"),
        # chance
        ("roll a die", "random.randint(1, 6)"),
        ("flip a coin", 'random.choice(["heads", "tails"])'),
        ("random number from 1 to 10", "random.randint(1, 10)"),
        ("random 1-100", "random.randint(1, 100)"),
        # equations and fractions
        ("solve x^2 - 5x + 6 = 0", "((5+1)/2, (5-1)/2)"),
        ("2x + 3 = 7", "4/2"),
        ("5 + ? = 12", "7"),
        ("x : 3 = 4", "12"),
        ("3(x+2)=2(x+5)", "4"),
        ("x² = 9", "(6/2, -6/2)"),
        ("x² = 2", "(8**0.5/2, -8**0.5/2)"),
        ("x² = -1", "((0+2*1j)/2, (0-2*1j)/2)"),
        ("3x+2 where x=4", "3*4+2"),
        ("1/3 as fraction", "Fraction(1, 3)"),
        ("0.75 as a fraction", "Fraction('0.75')"),
        ("2+2 = 4", "2+2 == 4"),
        ("(1+2i)*(3-i)", "(1+2j)*(3-1j)"),
    ],
)
def test_natural_input_is_read_in_one_way(text: str, program: str) -> None:
    assert readings(text) == [program]


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("1,234 + 1", ["1.234+1", "1_234+1"]),
        ("sin 5", ["math.sin(math.radians(5))", "math.sin(5)"]),
        ("6/2(1+2)", ["6/2*(1+2)", "6/(2*(1+2))"]),
        ("15:30", ["dt.timedelta(hours=15, minutes=30)", "15/30"]),
        ("log 100", ["math.log10(100)", "math.log(100)"]),
        ("log(2 8)", ["math.log(8, 2)", "math.log(2, 8)"]),
        ("log 2 8", ["math.log(8, 2)", "math.log(2, 8)"]),
        ("root(27,3)", ["math.sqrt(27.3)", "27**(1/3)"]),
        ("log(log(100), 2)", ["math.log(math.log10(100), 2)", "math.log(math.log(100), 2)"]),
        ("log 10 100", ["math.log(100, 10)", "math.log(10, 100)"]),
        ("sqrt of 9 plus 16", ["math.sqrt(9)+16", "math.sqrt(9+16)"]),
        ("корень из 9 плюс 16", ["math.sqrt(9)+16", "math.sqrt(9+16)"]),
        ("half of 10 plus 6", ["1/2*10+6", "1/2*(10+6)"]),
        ("01/02/2026", ["dt.date(2026, 1, 2)", "dt.date(2026, 2, 1)"]),
        ("6 на 7", ["6*7", "6/7"]),
        ("7 per 8", ["7*8", "7/8"]),
    ],
)
def test_two_sensible_readings_are_both_given(text: str, programs: list[str]) -> None:
    assert readings(text) == programs


@pytest.mark.parametrize(
    "text",
    [
        *("foo", "5 + apples", "hello world", "how are you?", "tell me 3 things", "100 USD", "sin"),
        *("2 dice", "two point", "2.5 point 2", "two point twenty five", "5'30\""),
        *("две целых пять", "одна целая пять семь десятых"),
        *("2 + * 3", "1,2,3", "12.5.3", "?", "", "1 kg to km", "x^2 + y^2 = 1", "[1,5]", "2x+1"),
        *("5 apples + 3 pears", "the answer is 42", "2 plus banana", "two plus", "3/4x", "7 of 9"),
        *("31 february 2024", "3 mar 25", "3 may", "from 1 to 10", "100 km / 50 km/h"),
        *("five of hearts", "five six", "ten four", "3 + 4 maybe 5", "+7 (000) 000-00-00"),
        *("50 cent", "5 cents", "x: 2x+3=7", "increased by 5", "[1,5+2]", "20% tax"),
        *("10%!", "% of 80", "tan 90", "(1,2)", "42", "pi r", "for i in range(3)\n    print(i)"),
        *(
            "in 5 minutes",
            "remind me in 5 minutes",
            "192.168.0.1",
            "5 usd to eur",
            "- milliarde ³ √",
            "2 1/²5",
        ),
    ],
)
def test_what_says_nothing_or_too_much_is_not_read(text: str) -> None:
    assert readings(text) == []


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("5 usd to eur", "exchange"),
        ("5 usd + 3 eur", "exchange"),
        ("derivative of x^2", "algebra"),
        ("plot x^2", "draw"),
        ("2 plus banana", ""),
    ],
)
def test_a_refusal_has_its_reason_where_one_is_known(text: str, refusal: str) -> None:
    assert read(text).refusal == refusal


@pytest.mark.parametrize(
    ("text", "output", "value"),
    [
        ("sin 30", "0.49999999999999994", "0.5"),
        ("sin 180", "1.2246467991473532e-16", "0"),
        ("15% of 80", "12.0", "12"),
        ("2 km + 350 m", "2.35", "2.35 km"),
        ("5€ + 10%", "5.5", "5.5 €"),
        ("10^20", "100000000000000000000", "100000000000000000000"),
        ("10^-20", "1e-20", "1e-20"),
        ("median 1 2", "1.5", "1.5"),
        ("x² = 9", "(3.0, -3.0)", "(3, -3)"),
        ("√16\n100+10%", "4.0\n110.00000000000001", "4\n110"),
        ("```\n5!\n1,5 × 3\n```", "120\n4.5", "120\n4.5"),
    ],
)
def test_a_value_is_shown_as_on_a_calculator(
    text: str, output: str, value: str, policy: Policy
) -> None:
    program = natural.read(text, policy)
    assert program is not None
    assert natural.shown(program, f"{output}\n") == value


def test_months_are_counted_from_today() -> None:
    (today,), (later,) = readings("today + 0 months"), readings("today + 13 months")
    assert int(later[8:12]) - int(today[8:12]) in (1, 2)


_PIECES = [*"1a -,()%.²½√π!|x=:°'_\n", "if", "then", "solve", "avg", "to", "km", "print", "of"]
_PIECES += ["sqrt", "1h", "five", "hundred", "from", "на", "в", "usd", "2026-01-05", "10:30"]


@given(st.lists(st.sampled_from(_PIECES), max_size=60))
def test_a_reading_is_an_expression_whatever_was_typed(pieces: list[str]) -> None:
    for text in ("".join(pieces), " ".join(pieces)):
        for each in read(text).expressions:
            ast.parse(each.text, mode="eval")


@given(st.text(max_size=LONGEST))
def test_any_text_may_be_read(text: str) -> None:
    read(text)


@pytest.mark.parametrize(
    "piece", [*_PIECES, "1,", "1 a", "1.", "a-", "1 and ", "+1%", "(", "√", "-"]
)
@pytest.mark.parametrize("length", [LONGEST, 16_384])
def test_time_stays_short_for_repetitions(piece: str, length: int) -> None:
    text = (piece * length)[:length]
    started = time.process_time()
    read(text)
    assert time.process_time() - started < 0.5
