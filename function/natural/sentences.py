"""Python for whole sentences to a calculator: units, times, lists of numbers, simple equations.

`SENTENCES` is a table that a person can extend: a pattern for the whole text, and what to make of
its parts. A builder returns None where the pattern matched and it has nothing to propose after all.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache

Builder = Callable[[re.Match[str]], str | None]

CURRENCY = (
    r"usd|eur|gbp|rub|uah|inr|jpy|cny|chf|cad|aud|pln|kzt|btc|dollars?|euros?|bucks?|rubles?|"
    r"rupees?|yen|yuan|bitcoins?|руб(?:лей|ля|ль|ли)?|доллар(?:а|ов|ы)?|евро|гривен|тенге"
)
_NUMBER = r"\d+(?:[.,]\d+)?"
_UNIT = r"[^\W\d_]+(?:/[^\W\d_]+)?"
_TO = r"(?:to|in|into|as|->|в|nach|en|a)"

UNITS: dict[str, tuple[str, str]] = {
    alias: (kind, size)
    for kind, sizes in {
        "length": {
            "mm|millimeters?|millimetres?|мм": "0.001",
            "cm|centimeters?|centimetres?|см": "0.01",
            "m|meters?|metres?|м|метр(?:а|ов|ы)?": "1",
            "km|kms|kilometers?|kilometres?|км|километр(?:а|ов|ы)?": "1000",
            "inch|inches|in|дюйм(?:а|ов|ы)?": "0.0254",
            "ft|foot|feet|фут(?:а|ов|ы)?": "0.3048",
            "yd|yards?": "0.9144",
            "mi|miles?|миль|мил[яи]": "1609.344",
        },
        "mass": {
            "mg": "0.000001",
            "g|grams?|г|грамм(?:а|ов|ы)?": "0.001",
            "kg|kgs|kilos?|kilograms?|кг|килограмм(?:а|ов|ы)?": "1",
            "t|tons?|tonnes?|тонн[аы]?": "1000",
            "oz|ounces?|унци[йяи]": "0.028349523125",
            "lb|lbs|pounds?|фунт(?:а|ов|ы)?": "0.45359237",
        },
        "volume": {
            "ml": "0.001",
            "l|liters?|litres?|л|литр(?:а|ов|ы)?": "1",
            "gal|gallons?": "3.785411784",
        },
        "time": {
            "s|secs?|seconds?|с|сек|секунд[аы]?": "1",
            "min|mins|minutes?|мин|минут[аы]?": "60",
            "h|hrs?|hours?|ч|час(?:а|ов|ы)?": "3600",
            "d|days?|дн|день|дня|дней": "86400",
            "w|weeks?|недел[ьюяи]": "604800",
        },
        "speed": {"kmh|km/h|kph|км/ч": "1", "mph": "1.609344", "m/s|mps|м/с": "3.6"},
    }.items()
    for alias, size in sizes.items()
}
"""Names of a unit (a pattern), what it measures, and how much of the kind's first unit it is."""

TEMPERATURES = {
    "CF": "{}*9/5+32",
    "FC": "({}-32)*5/9",
    "CK": "{}+273.15",
    "KC": "{}-273.15",
    "FK": "({}-32)*5/9+273.15",
    "KF": "({}-273.15)*9/5+32",
}


def rewrite(text: str) -> str | None:
    """Return the Python for a text that one of the `SENTENCES` matches as a whole, or None."""
    text = _PREFIX.sub("", text)
    for pattern, build in SENTENCES:
        if (match := compiled(pattern).fullmatch(text)) and (program := build(match)) is not None:
            return program
    return None


def _convert(match: re.Match[str]) -> str | None:
    kind, size = _unit(match["target"]) or ("", "")
    terms = []
    for amount, name in re.findall(rf"({_NUMBER})\s*({_UNIT})", match["amounts"]):
        source_kind, source_size = _unit(name) or (None, "")
        if source_kind != kind:
            return None
        terms.append(_scale(amount.replace(",", "."), source_size, size))
    return " + ".join(terms)


def _scale(amount: str, source: str, target: str) -> str:
    """Convert an amount with one exact number if there is one, rather an integer."""
    ratio = Fraction(source) / Fraction(target)
    if ratio == 1:
        return amount
    for sign, factor in sorted(
        (("*", ratio), ("/", 1 / ratio)), key=lambda one: one[1].denominator
    ):
        if (number := _decimal(factor)) is not None:
            return f"{amount}{sign}{number}"
    return f"{amount}*{source}/{target}"


def _unit(name: str) -> tuple[str, str] | None:
    return next(
        (unit for names, unit in UNITS.items() if re.fullmatch(names, name, re.IGNORECASE)), None
    )


def _decimal(number: Fraction) -> str | None:
    """Write a number exactly in at most twelve decimals, or not at all."""
    if (number * 10**12).denominator != 1 or number < Fraction(1, 1000):
        return None
    return f"{float(number):.12f}".rstrip("0").rstrip(".")


def _temperature(match: re.Match[str]) -> str | None:
    formula = TEMPERATURES.get((match["source"][0] + match["target"][0]).upper())
    return formula and formula.format(match["amount"].replace(",", "."))


_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?(?:\s*([ap])\.?m\b\.?)?", re.IGNORECASE)
_HOUR = re.compile(r"(\d{1,2})\s*([ap])\.?m\b\.?", re.IGNORECASE)
_ISO_DATE = re.compile(r"(?P<y>\d{4})-(?P<m>\d\d?)-(?P<d>\d\d?)(?!\d)")
_DOTTED_DATE = re.compile(r"(?P<d>\d\d?)[./](?P<m>\d\d?)[./](?P<y>\d{4})(?!\d)")
_DURATION = re.compile(
    r"(?P<amount>\d+(?:\.\d+)?)\s*(?P<unit>[^\W\d_]+)(?:\s*(?:,|and|и)\s+(?=\d)|\s*)", re.IGNORECASE
)
_UNIT_OF_SIZE = {
    "604800": "weeks",
    "86400": "days",
    "3600": "hours",
    "60": "minutes",
    "1": "seconds",
}


def _times(match: re.Match[str]) -> str | None:
    """Build a sum of clock times, durations and dates; None where anything else is in it."""
    text, position, parts = match[0], 0, []
    while position < len(text):
        if text[position] in "+-":
            parts.append(text[position])
            position += 1
        elif text[position] == " ":
            position += 1
        else:
            built, position = _moment(text, position)
            if built is None:
                return None
            parts.append(built)
    return " ".join(parts)


def _moment(text: str, position: int) -> tuple[str | None, int]:
    for pattern in (_ISO_DATE, _DOTTED_DATE):
        if date := pattern.match(text, position):
            year, month, day = (int(date[part]) for part in "ymd")
            if month > 12:
                month, day = day, month
            return f"dt.date({year}, {month}, {day})", date.end()
    if hour := _HOUR.match(text, position):
        return f"dt.timedelta(hours={_hours(hour[1], hour[2])})", hour.end()
    if clock := _CLOCK.match(text, position):
        minutes, seconds = int(clock[2]), int(clock[3] or 0)
        hours = _hours(clock[1], clock[4])
        rest = f", seconds={seconds}" if clock[3] else ""
        return f"dt.timedelta(hours={hours}, minutes={minutes}{rest})", clock.end()
    arguments: list[str] = []
    while duration := _DURATION.match(text, position):
        kind, size = _unit(duration["unit"]) or ("", "")
        if duration["unit"].lower() == "m":
            kind, size = "time", "60"
        if kind != "time":
            break
        arguments.append(f"{_UNIT_OF_SIZE[size]}={duration['amount']}")
        position = duration.end()
    return (f"dt.timedelta({', '.join(arguments)})" if arguments else None), position


def _hours(hour: str, half: str | None) -> int:
    return int(hour) % 12 + (12 if half in ("p", "P") else 0) if half else int(hour)


def _days_between(match: re.Match[str]) -> str | None:
    first, _ = _moment(match["first"], 0)
    second, _ = _moment(match["second"], 0)
    return f"({second} - {first}).days" if first and second else None


_LISTS = {
    "avg|average|mean|среднее|promedio|media|moyenne|durchschnitt": "sum([{all}])/{count}",
    "sum|total|add|сумма|сложи|suma|somme|summe": "sum([{all}])",
    "max|maximum|biggest|largest|максимум": "max({all})",
    "min|minimum|smallest|минимум": "min({all})",
    "median|медиана|mediana": "import statistics\nstatistics.median([{all}])",
    "mode|мода": "import statistics\nstatistics.mode([{all}])",
    "stdev|std|standard deviation": "import statistics\nstatistics.stdev([{all}])",
    "variance|var": "import statistics\nstatistics.variance([{all}])",
    "product|multiply": "math.prod([{all}])",
    "gcd|hcf|нод": "math.gcd({all})",
    "lcm|нок": "math.lcm({all})",
    "sort": "sorted([{all}])",
}


def _list(match: re.Match[str]) -> str | None:
    numbers = re.findall(r"-?\d+(?:\.\d+)?", match["numbers"])
    form = next(
        form for names, form in _LISTS.items() if re.fullmatch(names, match["name"], re.IGNORECASE)
    )
    return form.format(all=",".join(numbers), count=len(numbers)) if len(numbers) > 1 else None


_TERM = re.compile(
    r"(?P<sign>[-+]?)(?P<factor>\d+(?:\.\d+)?)?\*?(?P<x>[a-z](?P<square>\^2|\*\*2|²)?)?"
)


def _solve(match: re.Match[str]) -> str | None:
    """Build the program for a linear or quadratic equation in one unknown."""
    left, right = _polynomial(match["left"]), _polynomial(match["right"])
    if left is None or right is None:
        return None
    a, b, c = (_decimal_or_int(one - other) for one, other in zip(left, right, strict=True))
    if a != "0":
        return f"a, b, c = {a}, {b}, {c}\nd = b*b - 4*a*c\n(-b + d**0.5)/(2*a), (-b - d**0.5)/(2*a)"
    return f"{_decimal_or_int(right[2] - left[2])}/{b}" if b != "0" else None


def _polynomial(text: str) -> tuple[Fraction, Fraction, Fraction] | None:
    text = text.replace(" ", "").lower()
    powers, position = [Fraction(0)] * 3, 0
    if len(set(re.findall(r"[^\W\d_]", text))) > 1:
        return None
    while position < len(text):
        term = _TERM.match(text, position)
        if not term or not (term["factor"] or term["x"]) or (position and not term["sign"]):
            return None
        power = 0 if term["square"] else 1 if term["x"] else 2
        powers[power] += Fraction((term["sign"] or "") + (term["factor"] or "1"))
        position = term.end()
    return powers[0], powers[1], powers[2]


def _decimal_or_int(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else str(float(number))


def _as_fraction(match: re.Match[str]) -> str:
    value = match["value"].strip()
    if parts := re.fullmatch(r"(\d+)\s*/\s*(\d+)", value):
        value = f"{parts[1]}, {parts[2]}"
    elif re.fullmatch(r"[\d.]+", value):
        value = f'"{value}"'
    return f"from fractions import Fraction\nFraction({value})"


_BASES = {"b": ("bin", 2), "h": ("hex", 16), "o": ("oct", 8)}


def _to_base(match: re.Match[str]) -> str:
    return f"{_BASES[match['base'][0].lower()][0]}({match['value']})"


def _from_base(match: re.Match[str]) -> str:
    return f'int("{match["digits"]}", {_BASES[match["base"][0].lower()][1]})'


def _condition(match: re.Match[str]) -> str:
    test = re.sub(r"(?<![<>=!])=(?!=)", "==", match["test"].strip())
    return f"{_print(match['yes'])} if {test} else {_print(match['no']) if match['no'] else None}"


def _print(value: str) -> str:
    value = re.sub(r"\Aprint\b\s*", "", value.strip(), flags=re.IGNORECASE).strip()
    is_quoted = value[:1] in ("'", '"') and value[-1:] == value[:1]
    if is_quoted or re.fullmatch(r"[\d\s.+*/%()-]+", value):
        return f"print({value})"
    return f'print("{value}")' if re.fullmatch(r"[^\"\\(]+", value) else f"print({value})"


def _form(template: str) -> Builder:
    return lambda match: template.format(**match.groupdict())


_PREFIX = re.compile(
    r"\A(?:(?:please|convert|calc|calculate|compute|evaluate|what is|what's|whats|how much is|show|"
    r"give me|tell me|the|переведи|посчитай|вычисли|сколько будет|cuánto es)[\s:,]+)+",
    re.IGNORECASE,
)
_AS = r"(?:as|to|in|into)\s+"
_SCALE = r"c|f|k|celsius|fahrenheit|kelvin"
_DEGREES = r"(?:°|deg(?:rees?)?)"
_BASE = r"(?P<base>bin(?:ary)?|hex(?:adecimal)?|oct(?:al)?)"


def _row(build: Builder, *pattern: str) -> tuple[str, Builder]:
    return "".join(pattern), build


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern at its first use: all of them together would delay the start by 40 ms."""
    return re.compile(pattern, re.IGNORECASE)


SENTENCES: tuple[tuple[str, Builder], ...] = (
    # units and times
    _row(
        _temperature,
        rf"(?P<amount>-?{_NUMBER})\s*(?:°|degrees?\s|deg\s)?\s*(?P<source>{_SCALE})\s+",
        rf"{_TO}\s+(?:°|degrees\s)?\s*(?P<target>{_SCALE})",
    ),
    _row(
        _convert,
        rf"(?P<amounts>{_NUMBER}\s*{_UNIT}(?:,?\s*{_NUMBER}\s*{_UNIT})*)\s+",
        rf"{_TO}\s+(?P<target>{_UNIT})",
    ),
    _row(_form("math.radians({angle})"), rf"(?P<angle>{_NUMBER})\s*{_DEGREES}\s+{_AS}rad(?:ians)?"),
    _row(
        lambda match: f"math.degrees({match['angle'].replace('pi', 'math.pi')})",
        rf"(?P<angle>[\d.*/+-]*(?:pi)?[\d.*/+-]*)\s*(?:rad(?:ians)?)?\s+{_AS}{_DEGREES}",
    ),
    _row(
        _convert,
        rf"how many (?P<target>{_UNIT}) (?:are )?(?:there )?in ",
        rf"(?P<amounts>{_NUMBER}\s*{_UNIT})",
    ),
    _row(_times, r"\d[\w.:/,+ -]*"),
    _row(
        _days_between,
        r"(?:how many )?days (?:between|from)\s+(?P<first>[\d./-]+)\s+",
        r"(?:and|to|until)\s+(?P<second>[\d./-]+)",
    ),
    _row(_form("dt.date.today()"), r"today(?:'s date)?|date(?: today)?|сегодня"),
    _row(_form("dt.datetime.now()"), r"now|time(?: now)?|what time is it|сейчас"),
    # lists of numbers
    _row(
        _list,
        rf"(?P<name>{'|'.join(_LISTS)})(?: of)?[\s:(\[]+",
        r"(?P<numbers>[-\d.,;\s]+(?:and [\d.]+)?)[)\]]*",
    ),
    _row(
        lambda match: f"sum(range({match['low']}, {int(match['high']) + 1}))",
        r"sum (?:of )?(?:(?:all )?numbers )?(?:from )?(?P<low>\d+) to (?P<high>\d{1,9})",
    ),
    _row(_form("{value}**2"), rf"(?:the )?square of (?P<value>{_NUMBER})"),
    _row(_form("{value}**3"), rf"(?:the )?cube of (?P<value>{_NUMBER})"),
    # equations, fractions, percentages, bases
    _row(
        _solve,
        r"(?:solve|find x|roots?(?: of)?|реши(?:ть)?)?[\s:]*",
        r"(?P<left>[^=]*[a-z][^=]*)=(?P<right>[^=]+)",
    ),
    _row(_as_fraction, rf"(?P<value>.+?)\s+{_AS}(?:a\s+)?fractions?"),
    _row(_form("{value}*100"), rf"(?P<value>.+?)\s+{_AS}(?:a\s+)?(?:percent(?:age)?|%)"),
    _row(
        _form("{price}*(1-{rate}/100)"),
        rf"(?P<rate>{_NUMBER})\s*% (?:off|discount (?:on|of|from)) (?P<price>{_NUMBER})",
    ),
    _row(
        _form("{part}/{whole}*100"),
        rf"(?P<part>{_NUMBER}) is what (?:%|percent(?:age)?) of (?P<whole>{_NUMBER})",
    ),
    _row(
        _form("{part}/{whole}*100"),
        rf"what (?:%|percent(?:age)?) of (?P<whole>{_NUMBER}) is (?P<part>{_NUMBER})",
    ),
    _row(_to_base, rf"(?P<value>\w+)\s+{_AS}{_BASE}"),
    _row(_to_base, rf"{_BASE}\s+(?P<value>\d+)"),
    _row(_from_base, rf"(?P<digits>[0-9a-f]+)\s+(?:from\s+)?{_BASE}(?:\s+{_AS}dec(?:imal)?)?"),
    _row(_from_base, rf"{_BASE}\s+(?P<digits>[0-9a-f]+)\s+{_AS}dec(?:imal)?"),
    _row(_form("int({digits})"), rf"(?P<digits>0[xbo][0-9a-f]+)\s+{_AS}dec(?:imal)?"),
    # functions with two arguments
    _row(_form("math.comb({n}, {k})"), r"(?P<n>\d+)\s*(?:choose|c)\s*(?P<k>\d+)"),
    _row(_form("math.comb({n}, {k})"), r"ncr\s*(?P<n>\d+)[\s,]+(?P<k>\d+)"),
    _row(_form("math.perm({n}, {k})"), r"(?P<n>\d+)\s*p\s*(?P<k>\d+)"),
    _row(
        _form("math.log({value}, {base})"),
        r"log(?:arithm)?(?:\s*_\s*|\s+base\s+)(?P<base>\d+)\s*(?:of\s+|\(|\s)\s*",
        rf"(?P<value>{_NUMBER})\)?",
    ),
    _row(
        _form("math.log({value}, {base})"),
        rf"log(?:arithm)?\s*(?:of\s+)?\(?(?P<value>{_NUMBER})\)?\s+(?:to\s+)?base\s+(?P<base>\d+)",
    ),
    # chance
    _row(
        _form("random.randint({low}, {high})"),
        r"(?:a )?random(?: number| int(?:eger)?)?(?: (?:between|from))?\s+",
        r"(?P<low>\d+)(?:\s*(?:-|to|and)\s*|\s+)(?P<high>\d+)",
    ),
    _row(_form("random.random()"), r"(?:a )?random(?: number)?"),
    _row(_form("random.randint(1, 6)"), r"(?:roll|throw)(?: (?:a|the))? (?:dice|die)|dice"),
    _row(_form('random.choice(["heads", "tails"])'), r"(?:flip|toss)(?: (?:a|the))? coin|coin"),
    # other languages
    _row(
        _condition,
        r"if\s+(?P<test>.+?)\s*(?:\bthen\b|,)\s*(?P<yes>.+?)",
        r"(?:\s*\b(?:else|otherwise)\b\s*(?P<no>.+))?",
    ),
    _row(
        _form("{name} = {value}"),
        r"(?:let|var|const|int|float|double|set)\s+(?P<name>[a-z_]\w*)\s*=\s*(?P<value>[^=;]+);?",
    ),
    _row(_form("{name} = {value}"), r"(?P<name>[a-z_]\w*)\s*:=\s*(?P<value>[^=;]+);?"),
    _row(
        _form("{yes} if {test} else {no}"),
        r"(?P<test>[^?]+?)\s*\?\s*(?P<yes>[^?:]+?)\s*:\s*(?P<no>[^?:]+)",
    ),
    _row(
        lambda match: re.sub(r",\s*", "; ", match[0]),
        r"[a-z_]\w*\s*=[^=,;]+(?:,\s*[a-z_]\w*\s*=[^=,;]+)+",
    ),
    _row(
        lambda match: _print(match["value"]),
        r"(?:print|echo|say)\s+(?P<value>[^()=]+|\(.*\)\s*\S.*)",
    ),
    _row(_form("{name} {sign}= 1"), r"(?P<name>[a-z_]\w*)(?P<sign>[-+])(?P=sign)"),
)
