"""What a guest shows of a program with libraries: a value as text, and pictures, as Jupyter does.

Knows the libraries only where they are loaded already (`sys.modules`), and imports none itself.
Standard library only: the process that forks guests loads this module.
"""

from __future__ import annotations

import io
import re
import sys

from sandbox.fork_server.protocol import MOST_PICTURES, pack_pictures

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from sandbox.fork_server.guest import Show

_DIGITS = 11  # of a number beside its symbols, as a pocket calculator has them
_WIDTH, _LINES = 36, 24  # of formulas: what a phone shows without breaking lines
# What one line of text shows badly; all else stays as it can be typed again.
_FORMULAS = ("Derivative", "Integral", "Limit", "Piecewise", "Product", "Sum")
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
    """Return a value as text: symbols with their number beside, matrices and integrals drawn."""
    sympy = sys.modules.get("sympy")
    text = str(value)
    if sympy is None or type(value).__module__.partition(".")[0] not in ("sympy", "builtins"):
        return text
    if _is_formula(value, sympy):
        drawn: str = sympy.pretty(value, use_unicode=True, wrap_line=False)
        lines = [line.rstrip() for line in drawn.split("\n")]
        if len(lines) <= _LINES and max(map(len, lines)) <= _WIDTH:
            text = "\n".join(lines)
    number = _number(value, sympy)
    gap = "\n" if "\n" in text else " "
    return f"{text}{gap}≈ {number}" if number else text


def _is_formula(value: Any, sympy: Any) -> bool:
    if isinstance(value, sympy.MatrixBase):
        return True
    return isinstance(value, sympy.Basic) and value.has(*(getattr(sympy, n) for n in _FORMULAS))


def _number(value: Any, sympy: Any) -> str:
    """Return the number that symbols, or all of a list, stand for; "" where there is none."""
    items = value if isinstance(value, list | tuple) else [value]
    if not items or not all(isinstance(one, sympy.Expr) and one.is_number for one in items):
        return ""
    if all(one.is_Float or one.is_Integer for one in items):
        return ""
    numbers = [one if one.is_Integer else one.evalf(_DIGITS) for one in items]
    if not all(one.is_finite and one.is_number for one in numbers):
        return ""
    texts = [_without_zeros(str(one)) for one in numbers]
    number = f"[{', '.join(texts)}]" if isinstance(value, list | tuple) else texts[0]
    return "" if number == str(value) else number


def _without_zeros(number: str) -> str:
    """`0.50000000000` as `0.5`, `1.0*I` as `I`."""
    short = re.sub(r"(\.\d*?)0+(?!\d)", r"\1", number)
    return re.sub(r"\b1\*(?=I)", "", re.sub(r"\.(?!\d)", "", short))


def pictures(value: Any, limit: int) -> tuple[str, list[bytes]]:
    """Return a sentence on what is left out, and PNGs of at most `limit` bytes together.

    They are the last value's own picture, if it has one, then every figure that is open. What a
    library raises while it draws is raised.
    """
    found: list[bytes] = []
    left_out = ""
    total = 0
    for number, attempts in enumerate(_drawings(value)):
        if number == MOST_PICTURES:
            left_out = f"Only the first {MOST_PICTURES} pictures are shown."
            break
        room = limit - total - len(pack_pictures([b""]))
        png = next((png for png in attempts if len(png) <= room), None)
        if png is None:
            left_out = f"A picture is left out: it is larger than {limit // 1024} KiB."
        else:
            found.append(png)
            total += len(pack_pictures([png]))
    return left_out, found


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
    for divisor in _SMALLER:
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=figure.dpi / divisor)
        yield file.getvalue()


def is_drawn(value: Any, expression: str) -> bool:
    """Tell whether a value is part of the pictures, so that its text says nothing.

    `plt.plot` returns lines, `plt.hist` arrays and bars, `plt.axis` numbers.
    """
    parts = value.values() if isinstance(value, dict) else value
    parts = [value, *parts] if isinstance(value, dict | list | tuple) else [value]
    if any(isinstance(part, list) and part and _is_artist(part[0]) for part in parts):
        return True
    return any(map(_is_artist, parts)) or expression.lstrip().startswith("plt.")


def _is_artist(value: Any) -> bool:
    module = type(value).__module__
    return module.startswith(("matplotlib.", "mpl_toolkits.", "sympy.plotting.", "PIL."))
