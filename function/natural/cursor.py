"""A text as tokens, and the place in it that a parser has reached."""

import re
from collections.abc import Callable

from function.natural.lexicon import Token, dated, tokens
from function.natural.terms import NoReadingError, Term
from function.natural.typography import plain

END = Token("", {})

_TIGHT_DASH = re.compile(r"(?<=[\w.)])—(?=[\w.(])")  # that phones make of `5--1`
_MILLION = re.compile(r"(?<=\d)M\b")  # `$2M`; what is in small letters is in metres or minutes
_INCHES = re.compile(r"(\d)[’′] ?(\d+)[”″]")  # quotes, as phones write them


class Choice(Exception):
    """Several ways to go on, each sensible, of which none is chosen yet."""

    def __init__(self, name: str, options: tuple[str, ...]) -> None:
        self.name, self.options = name, options


class Cursor:
    """Goes through the tokens of a text, with the choices that are given.

    `comma` is one: what it stands for between digits. `able` names the abilities of a program,
    `unknown` is the unknown that was met, `notes` tells what Python would read otherwise.
    """

    def __init__(self, text: str, chosen: dict[str, str], able: frozenset[str]) -> None:
        self.chosen, self.able = chosen, able
        self.place, self.unknown = 0, ""
        self.notes: set[str] = set()
        self.is_alone = self.in_list = False
        if _TIGHT_DASH.search(text):
            text = _TIGHT_DASH.sub(self._choose("dash", "-", "--"), text)
        text = _INCHES.sub("\\1'\\2\"", text)
        self.line = line = dated(_MILLION.sub("mln", plain(text).strip()).lower())
        is_apart = re.search(r"\d \d{3}(?!\d)", line)
        spaces = self._choose("spaces", "one", "two") if is_apart else "one"
        comma = re.search(r"\d,\d|\d\.\d+\.\d", line)
        self.comma = self._choose("comma", ",", ".", "list") if comma else "."
        self.tokens = tokens(line, commas=self.comma != "list", spaces=spaces != "two")

    @property
    def topic(self) -> str:
        """The ability that the text asks for, by a word or, where there is algebra, an unknown."""
        roles = {role for token in self.tokens for role in token.roles}
        named = next((topic for topic in ("algebra", "draw") if topic in roles), "")
        return named or "algebra" * bool(self.able and self.unknown)

    def _choose(self, name: str, *options: str) -> str:
        """One of several readings, the same for the whole text."""
        if name not in self.chosen and len(options) > 1:
            raise Choice(name, options)
        return self.chosen.get(name, options[0])

    def _option(self, template: str) -> str:
        """One of several programs for the same words."""
        return self._choose(template, *template.split(" or "))

    def _peek(self, ahead: int = 0) -> Token:
        try:
            return self.tokens[self.place + ahead]
        except IndexError:
            return END

    def _next(self) -> Token:
        self.place += 1
        return self._peek(-1)

    def _is(self, *roles: str, ahead: int = 0) -> bool:
        return not self._peek(ahead).roles.keys().isdisjoint(roles)

    def _accept(self, *roles: str) -> str:
        """Step over a token that has one of the roles, and return that role, else ""."""
        for role in roles:
            if role in self._peek().roles:
                self.place += 1
                return role
        return ""

    def _attempt(self, parse: Callable[[], Term]) -> Term | None:
        start = self.place, self.unknown, self.in_list
        try:
            return parse()
        except NoReadingError:
            self.place, self.unknown, self.in_list = start
            return None
