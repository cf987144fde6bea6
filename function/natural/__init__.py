"""What people type that is not Python: a side building, on which nothing leans.

It is a Reader of function.calculator, which app hands to the bot.
"""

import ast

from function.natural.hints import hint
from function.natural.typography import readings
from sandbox import parse

__all__ = ["hint", "read"]


def read(text: str) -> tuple[str, ast.Module] | None:
    """The program that a text that is no Python was before it was typeset, and its tree."""
    for reading in dict.fromkeys(readings(text)):
        tree = parse(reading) if reading else None
        if isinstance(tree, ast.Module):
            return reading, tree
    return None
