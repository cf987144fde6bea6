"""What a guest shows of a program with libraries: a value as text, and pictures, as Jupyter does.

Knows the libraries only where they are loaded already (`sys.modules`), and imports none itself.
"""

from __future__ import annotations

import io
import re
import sys
import warnings

from sandbox.fork_server.protocol import MOST_PICTURES, pack_pictures

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from sandbox.fork_server.guest import Show

_DIGITS = 11  # of a number beside its symbols, as a pocket calculator has them
_DEPTH = 3  # of collections in collections that are looked at
_WIDTH, _LINES = 36, 24  # of formulas: what a phone shows without breaking lines
# What one line of text shows badly; all else stays as it can be typed again.
_FORMULAS = ("Derivative", "Integral", "Limit", "Piecewise", "Product", "Sum")
_MOST_SIGNS = 12  # without a font that are told
_SMALLER = (1, 2, 4)  # what a picture's resolution is divided by until it fits


def shows(picture_bytes: int) -> Show:
    """Return what shows a value, with pictures of so many bytes together at most."""

    def show(value: Any, expression: str, stdout: io.TextIOWrapper) -> tuple[str, list[bytes]]:
        left_out, found = pictures(value, picture_bytes) if picture_bytes else ("", [])
        drawn = bool(found or left_out) and is_drawn(value, expression)
        if value is not None and not drawn:
            print(text_of(value), file=stdout)
        return left_out, found

    return show


def text_of(value: Any) -> str:
    """Return a value as text: symbols with their numbers beside, matrices and integrals drawn."""
    sympy = sys.modules.get("sympy")
    text = str(value)
    # A function that has no definition, as f(2), is of a class without a module.
    package = (type(value).__module__ or "sympy").partition(".")[0]
    if sympy is None or package not in ("sympy", "builtins"):
        return text
    if _is_formula(value, sympy):
        drawn: str = sympy.pretty(value, use_unicode=True, wrap_line=False)
        lines = [line.rstrip() for line in drawn.split("\n")]
        if len(lines) <= _LINES and max(map(len, lines)) <= _WIDTH:
            text = "\n".join(lines)
    try:
        numbers = _numbers(value, sympy)
    except (ArithmeticError, NotImplementedError, TypeError, ValueError):
        return text
    if numbers == str(value):
        return text
    gap = " " if "\n" not in text and len(text) <= _WIDTH else "\n"
    return f"{text}{gap}≈ {numbers}"


def _is_formula(value: Any, sympy: Any, depth: int = _DEPTH) -> bool:
    if isinstance(value, list | tuple):
        return depth > 0 and any(_is_formula(each, sympy, depth - 1) for each in value)
    if isinstance(value, sympy.MatrixBase):
        return True
    return isinstance(value, sympy.Basic) and value.has(*(getattr(sympy, n) for n in _FORMULAS))


def _numbers(value: Any, sympy: Any, depth: int = _DEPTH) -> str:
    """Return the numbers that a value or a collection stands for. Raises ValueError for none."""
    if type(value) in (int, float):
        return str(value)
    if isinstance(value, sympy.Expr) and value.is_number:
        return _number(value, sympy)
    if _is_quantity(value, sympy):
        return _short(value.evalf(_DIGITS))
    if depth and type(value) is dict:
        pairs = [
            f"{key if isinstance(key, sympy.Symbol) else _numbers(key, sympy, depth - 1)}: "
            f"{_numbers(each, sympy, depth - 1)}"
            for key, each in value.items()
        ]
        return f"{{{', '.join(pairs)}}}"
    first, last = "()" if isinstance(value, tuple | sympy.Tuple) else "[]"
    if isinstance(value, sympy.FiniteSet):
        (first, last), value = "{}", sorted(value, key=sympy.default_sort_key)
    if depth and isinstance(value, list | tuple | sympy.Tuple):
        last = ",)" if (first, len(value)) == ("(", 1) else last
        return f"{first}{', '.join(_numbers(each, sympy, depth - 1) for each in value)}{last}"
    raise ValueError("it holds more than numbers")


def _is_quantity(value: Any, sympy: Any) -> bool:
    """Tell whether a value is a number, which may be exact, of units."""
    if not isinstance(value, sympy.Expr) or value.free_symbols or value.has(sympy.Float):
        return False
    units = sys.modules.get("sympy.physics.units")
    return units is not None and value.has(units.Quantity)


def _number(value: Any, sympy: Any) -> str:
    """Return the number that an expression without symbols stands for. Raises ValueError."""
    if value.is_Float or value.is_Integer:
        return str(value)
    # Of two kinds evalf has no number, or takes a second.
    value = value.replace(sympy.Integral, sympy.Integral)  # a NonElementaryIntegral
    roots = value.atoms(sympy.ComplexRootOf)
    number = value.xreplace({root: root.eval_approx(15) for root in roots}).evalf(_DIGITS)
    if not (number.is_finite and number.is_number):
        raise ValueError("it is no number")
    if not number.is_Float:
        # Of a real root, Cardano's formula leaves an imaginary part of nearly nothing.
        real, imaginary = number.as_real_imag()
        number = real if abs(imaginary) < abs(real) * 10**-_DIGITS else number
    return _short(number)


def _short(number: Any) -> str:
    """Return `0.50000000000` as `0.5`, `1.0*I` as `I`."""
    short = re.sub(r"(\.\d*?)0+(?!\d)", r"\1", str(number))
    return re.sub(r"\b1\*(?=I)", "", re.sub(r"\.(?!\d)", "", short))


def pictures(value: Any, limit: int) -> tuple[str, list[bytes]]:
    """Return what to say of what is missing, and PNGs of at most `limit` bytes together.

    They are the last value's own picture, if it has one, then every figure that is open. What a
    library raises while it draws is raised.
    """
    found: list[bytes] = []
    left_out = ""
    left = limit
    with warnings.catch_warnings(record=True) as said:
        warnings.filterwarnings("always", "Glyph ")
        for number, attempts in enumerate(_drawings(value)):
            if number == MOST_PICTURES:
                left_out = f"Only the first {MOST_PICTURES} pictures are shown."
                break
            png = next((png for png in attempts if len(pack_pictures([png])) <= left), None)
            if png is None:
                left_out = f"A picture is left out: it is larger than {limit // 1024} KiB."
            else:
                found.append(png)
                left -= len(pack_pictures([png]))
    return "\n".join(filter(None, (left_out, _missing_signs(said)))), found


def _missing_signs(said: Iterable[warnings.WarningMessage]) -> str:
    codes = (re.match(r"Glyph (\d+)", str(each.message)) for each in said)
    signs = "".join(dict.fromkeys(chr(int(code[1])) for code in codes if code))
    return f"No font here has {signs[:_MOST_SIGNS]}: boxes stand for them." if signs else ""


def _drawings(value: Any) -> Iterator[Iterator[bytes]]:
    """Yield each picture, as the ways to have it: the best, then smaller ones."""
    draw = getattr(value, "_repr_png_", None)
    own = draw() if draw is not None and not isinstance(value, type) else None
    if isinstance(own, bytes):
        yield iter([own])
    figures = []
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    if (module := sys.modules.get("matplotlib.figure")) and isinstance(value, module.Figure):
        figures += [value] * (value not in figures)
    for figure in figures:
        yield _encoded(figure)


def _encoded(figure: Any) -> Iterator[bytes]:
    edges = None
    for divisor in _SMALLER:
        file = io.BytesIO()
        how = {"format": "png", "dpi": figure.dpi / divisor}
        figure.savefig(file, bbox_inches=edges, **how)
        if edges is None and _is_cut(figure):
            edges, file = "tight", io.BytesIO()
            figure.savefig(file, bbox_inches=edges, **how)
        yield file.getvalue()


def _is_cut(figure: Any) -> bool:
    """Tell whether something small that was drawn, such as a label, goes on beyond an edge.

    To look at the edges takes no time; matplotlib would have to lay out all of it once more.
    """
    pixels = sys.modules["numpy"].asarray(figure.canvas.buffer_rgba())
    edges = (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1])
    return any(0 < (edge != pixels[0, 0]).any(axis=1).mean() < 0.5 for edge in edges)


def is_drawn(value: Any, expression: str) -> bool:
    """Tell whether a value is part of the pictures, so that its text says nothing.

    `plt.plot` returns lines, `plt.hist` arrays and bars, `plt.axis` numbers.
    """
    parts = value.values() if isinstance(value, dict) else value
    parts = [value, *parts] if isinstance(value, dict | list | tuple) else [value]
    if any(isinstance(part, list) and part and _is_artist(part[0]) for part in parts):
        return True
    is_call = re.match(r"\s*(?:plt\.|(?:ax|fig)\w*(?:\[[^\]]*\])*\.\w+\()", expression)
    return is_call is not None or any(map(_is_artist, parts))


def _is_artist(value: Any) -> bool:
    module = f"{type(value).__module__}."
    return module.startswith(("matplotlib.", "mpl_toolkits.", "sympy.plotting.", "PIL."))
