"""Functions that inline queries may call without an import."""

from math import factorial as fact

__all__ = ["fact", "nf"]


def nf(value: float, digits: int = 2) -> str:
    """Return a number with thousands separated by spaces and `digits` decimals: 1 234.50."""
    return f"{value:,.{digits}f}".replace(",", " ")
