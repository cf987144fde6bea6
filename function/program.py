"""A program that was sent, and how it is shown."""

import ast
from dataclasses import dataclass

from sandbox import Unparsed


@dataclass(frozen=True)
class Program:
    """What was typed, the program that it stands for, and its tree where it is one.

    A text that was read as a calculation has the `calculation` that is shown, and its value the
    `unit`; else both are "".
    """

    typed: str
    source: str
    tree: ast.Module | Unparsed | None
    calculation: str = ""
    unit: str = ""
