"""A program as text: its lines as the parser counts them, its escapes, its syntax tree."""

import ast
import bisect
import re
import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

PROGRAM_NAME = "<program>"

_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_ESCAPES = re.compile(
    r"\\(?:\\|\r?\n|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})"
    r"|([0-7]{1,3})|N\{([^{}\n]{1,100})\})|[^\x00-\x7f]"
)


class Lines:
    """The lines of a source. The parser ends them at LF, CR LF and CR, and nowhere else."""

    def __init__(self, source: str) -> None:
        self._source = source

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(end.end() for end in _LINE_ENDS.finditer(self._source))]

    def at(self, index: int) -> tuple[int, int]:
        """Return line and column, from 1, of the character at an index of the source."""
        line = bisect.bisect_right(self._starts, index)
        return line, index - self._starts[line - 1] + 1

    def of_node(self, line: int, offset: int) -> tuple[int, int]:
        """Return line and column, from 1, for a node's line and its offset in UTF-8 bytes.

        Places outside the source, which f-strings have on Python 3.11, are moved to its edge.
        """
        return self.at(self.index_of_node(line, offset))

    def index_of_node(self, line: int, offset: int) -> int:
        """Return the index in the source for the same."""
        start = 0
        if line > 1:
            start = self._starts[min(line, len(self._starts)) - 1]
        text = self._source[start : start + offset]
        if not self._source.isascii():
            text = text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")
        return min(start + len(text), len(self._source))


@dataclass(frozen=True)
class Unparsed:
    """Why a source does not parse, in the words of Python's last line; line and column from 1."""

    line: int
    column: int
    message: str


# The parser's warnings ("\d") would reach stderr, or be errors. This filter is for our file name
# alone and installed once: `warnings.catch_warnings`, around each call, is not thread-safe.
_SILENCE = ("ignore", None, Warning, re.compile(re.escape(PROGRAM_NAME)), 0)


def parse(source: str) -> ast.Module | Unparsed:
    """Return the syntax tree of a source, or the parser's complaint. Never raises."""
    if not warnings.filters or warnings.filters[0] != _SILENCE:  # another filter precedes it
        warnings.filterwarnings("ignore", module=re.escape(PROGRAM_NAME))
    try:
        return ast.parse(source, PROGRAM_NAME)
    except SyntaxError as error:
        message = f"{type(error).__name__}: {error.msg}"  # or IndentationError, or TabError
        return Unparsed(max(error.lineno or 1, 1), max(error.offset or 1, 1), message)
    except Exception as error:  # RecursionError, MemoryError, ValueError: the parser's limits
        return Unparsed(1, 1, f"SyntaxError: {str(error) or 'the program is nested too deeply'}")


def normalised(text: str) -> str:
    """Return text as Python reads names: in Unicode's form NFKC."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


@dataclass(frozen=True)
class Decoded:
    """A source with its escapes decoded, and where each changed piece ends: here, in the source."""

    text: str
    _ends: Sequence[tuple[int, int]]

    def source_index(self, index: int) -> int:
        """Return where in the source the character at an index of `text` comes from."""
        end, source_end = self._ends[bisect.bisect_right(self._ends, index, key=itemgetter(0)) - 1]
        return source_end + index - end


def decode_escapes(source: str) -> Decoded:
    """Return a source as a reader of its strings would see it, whatever prefix they have.

    Backslash escapes of all forms (also a backslash at a line's end, which joins two lines) are
    decoded, and characters that stand for others (NFKC) are replaced.
    """
    ends = [(0, 0)]
    if source.isascii() and "\\" not in source:
        return Decoded(source, ends)
    pieces: list[str] = []
    length = done = 0
    for match in _ESCAPES.finditer(source):
        before, decoded = source[done : match.start()], _decode(match)
        pieces += before, decoded
        length += len(before) + len(decoded)
        done = match.end()
        ends.append((length, done))
    return Decoded("".join([*pieces, source[done:]]), ends)


def _decode(escape: re.Match[str]) -> str:
    text = escape[0]
    hexadecimal = escape[1] or escape[2] or escape[3]
    if text[0] != "\\":
        return unicodedata.normalize("NFKC", text)
    if hexadecimal or escape[4]:
        code = int(hexadecimal or escape[4], 16 if hexadecimal else 8)
        return normalised(chr(code)) if code <= 0x10FFFF else text
    if escape[5]:
        try:
            return normalised(unicodedata.lookup(escape[5]))
        except KeyError:
            return text
    return "" if text[-1] == "\n" else text
