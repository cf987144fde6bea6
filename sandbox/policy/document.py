"""Reads YAML in its plain form into a value whose every part knows its line and column.

Plain form: one document of mappings, lists, text and decimal whole numbers. Anchors, tags, merge
keys and the words and numbers that YAML 1.1 turns into something else (`on`, `010`, `1:30`, an
empty value) are mistakes here, for a file that is reviewed should mean what it seems to mean.
"""

import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

MAX_FILE_BYTES = 262_144
MAX_DEPTH = 8

At = tuple[
    str | int, ...
]  # where a value stands: ("limits", "wall_seconds"), ("allowed_imports", 3)
Place = tuple[int, int]  # line and column, 1-based, in characters

_STRING, _INTEGER, _NULL, _MERGE = (
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "null", "merge")
)
_MOST_DIGITS = 18
_DECIMAL = re.compile(rf"0|-?[1-9][0-9]{{0,{_MOST_DIGITS - 1}}}")
# Characters that hide, reorder or break text: a reviewer would see another file than is read.
_DECEPTIVE = re.compile("[\x85\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
LINE_END = re.compile("\r\n|\r|\n")
_ALIGN = "align this line with its neighbours; an entry of a list begins with `- `"
_QUOTE = "put the value in 'single quotes'"

PROGRAMS = ("warm_up",)  # lists whose entries may have several lines
_RUNS_ON = "text that begins here runs on over several lines"

# PyYAML's complaint -> what to do about it.
_SYNTAX_CURES = (
    (r"'\\t' that cannot start", "indent with spaces, not with a tab"),
    ("that cannot start any token", _QUOTE),
    ("escape", _QUOTE),
    (_RUNS_ON, "close the quote on the same line"),
    ("end of stream|document sep|node content", "close the quote or the bracket"),
    ("expected ',' or", "put a comma between entries and close the bracket"),
    (
        "mapping values are not allowed",
        "align this line and write it as `name: value`, or put a value with a colon in quotes",
    ),
    (
        "could not find expected ':'",
        "begin an entry of a list with `- `; write others as `name: value`",
    ),
    ("expected <block end>|block sequence|sequence entries", _ALIGN),
    ("<document start>", "write each field as `name: value`, at the left margin"),
)
# What is missing is noticed at the next line or at the end: these name the place where it began.
_NOTICED_LATE = re.compile("could not find expected|end of stream|document sep|expected ',' or")


@dataclass(frozen=True)
class Problem:
    """One mistake; line and column are 1-based, in characters; field is `limits.wall_seconds`."""

    path: Path
    line: int
    column: int
    field: str
    value: str
    message: str
    cure: str
    rule: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.message}; {self.cure}"


@dataclass(frozen=True)
class Document:
    """A file's value, the place of each part of it, and the mistakes found so far."""

    path: Path
    raw: bytes
    text: str
    value: dict[str, Any] = field(default_factory=dict)
    keys: dict[At, yaml.Mark] = field(default_factory=dict)
    values: dict[At, yaml.Node] = field(default_factory=dict)
    # Values that YAML turned into something else, and what into; empty if that is reported already.
    misread: dict[At, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def place(self, at: At, *, key: bool = False) -> Place:
        """Line and column of a value, or of its key; of the nearest parent where there is none."""
        while at:
            node, mark = self.values.get(at), self.keys.get(at)
            if node is not None and not (key and mark):
                mark = node.start_mark
            if mark is not None:
                return mark.line + 1, mark.column + 1
            at, key = at[:-1], True
        return 1, 1

    def report(self, at: At, rule: str, message: str, cure: str, *, key: bool = False) -> None:
        """Add a mistake in the value at `at`, or in its key."""
        node = self.values.get(at)
        value = node.value if isinstance(node, yaml.ScalarNode) else ""
        self.report_at(
            self.place(at, key=key),
            rule,
            message,
            cure,
            value=str(at[-1]) if key and at else value,
            at=at,
        )

    def report_at(
        self, place: Place, rule: str, message: str, cure: str, *, value: str = "", at: At = ()
    ) -> None:
        """Add a mistake at a place of the text."""
        problem = Problem(self.path, *place, dotted(at), value, message, cure, rule)
        self.problems.append(problem)

    def is_sound(self, where: str) -> bool:
        """Whether no mistake was found so far in a field or beneath it."""
        begins = re.compile(rf"{re.escape(where)}([.\[]|$)")
        mistakes = [problem.field for problem in self.problems] + [*map(dotted, self.misread)]
        return not any(map(begins.match, mistakes))

    def number(self, at: At) -> int | None:
        """The whole number at `at`, if there is one."""
        value: Any = self.value
        for step in at:
            value = value.get(step) if isinstance(value, dict) else None
        return value if isinstance(value, int) else None

    def strings(self, *at: str | int) -> Iterator[tuple[At, str]]:
        """Each text of the list or mapping at `at`, with where it stands.

        Of an entry `- name: value` in a list, the name.
        """
        value: Any = self.value
        for step in at:
            value = value.get(step) if isinstance(value, dict) else value[step]
        if isinstance(value, dict):
            items: Any = value.items()
        else:
            items = enumerate(value if isinstance(value, list) else ())
        for step, item in items:
            if isinstance(item, str):
                yield (*at, step), item
            elif isinstance(item, dict) and isinstance(value, list):
                yield from (((*at, step), key) for key in item)


def read_document(path: Path) -> Document:
    """Read a file. Whatever is wrong with it becomes a problem; nothing is raised."""
    try:
        if path.exists() and not path.is_file():  # a pipe would block, a device might never end
            raise ValueError("it is no regular file")
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        document = Document(path, b"", "")
        reason = getattr(error, "strerror", None) or error
        document.report(
            (), "file", f"cannot be read: {reason}", "give the name of a readable policy file"
        )
        return document
    return parse_document(path, raw)


def parse_document(path: Path, raw: bytes) -> Document:
    """Parse a file's bytes; `path` is for messages alone."""
    document = Document(path, raw, raw.decode("utf-8", "replace"))
    if _is_text(document):
        node = _compose(document)
        value = None if node is None else _value(document, node, ())
        if isinstance(value, dict) and value:
            document.value.update(value)
        elif not document.problems:
            document.report(
                (), "file", "holds no fields", "begin with `version: 1` and the other fields"
            )
    return document


def dotted(at: At) -> str:
    """A place as people write it: `limits.wall_seconds`, `allowed_imports[3]`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in at)
    return "".join(steps).removeprefix(".")


def _is_text(document: Document) -> bool:
    """Whether the bytes are fit to parse; a problem says why not."""
    if len(document.raw) > MAX_FILE_BYTES:
        message = f"has more than {MAX_FILE_BYTES} bytes"
        document.report((), "file", message, "keep the policy short enough to review")
    elif document.text.startswith("\ufeff"):
        document.report(
            (), "file", "begins with a byte order mark", "save it as UTF-8 without a BOM"
        )
    else:
        try:
            document.raw.decode("utf-8")
        except UnicodeDecodeError as error:
            place = _place_after(document.raw[: error.start].decode("utf-8"))
            document.report_at(place, "file", "is not UTF-8 from here on", "save it as UTF-8")
    for hidden in () if document.problems else _DECEPTIVE.finditer(document.text):
        value = f"U+{ord(hidden[0]):04X}"
        message = f"the invisible character {value} can make the file look like another"
        place = _place_after(document.text[: hidden.start()])
        document.report_at(place, "yaml-syntax", message, "delete the character", value=value)
    return not document.problems


def _compose(document: Document) -> yaml.Node | None:
    """The file's tree; None where there is none."""
    try:
        loader = _Loader(document)
    except yaml.reader.ReaderError as error:
        value = f"U+{error.character:04X}"
        place = _place_after(document.text[: error.position])
        message = f"the character {value} is not allowed"
        document.report_at(place, "yaml-syntax", message, "delete the character", value=value)
        return None
    try:
        node: yaml.Node | None = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        if loader.continued and loader.flow_level <= 0 and "<block end>" in str(error.problem):
            _report_continued(document, loader.continued[-1])
        else:
            _report_syntax(document, error, loader.marks[-1:] if loader.flow_level > 0 else [])
        return None
    for mark in loader.continued:
        _report_continued(document, mark)
    return node


class _Loader(yaml.SafeLoader):
    """Composes a tree and reports what the plain form leaves out."""

    def __init__(self, document: Document) -> None:
        super().__init__(document.text)
        self._document = document
        self._depth = 0
        self.continued: list[Any] = []  # where plain text of several lines begins

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        mark: Any = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            self.get_event()  # type: ignore[no-untyped-call]
            self._refuse(
                mark, f"*{event.anchor}", "an alias hides a value", "write the value itself"
            )
            return yaml.ScalarNode(_NULL, "*", mark, mark)
        if event.anchor is not None:
            self._refuse(mark, f"&{event.anchor}", "an anchor has no use here", "delete it")
            event.anchor = None
        if event.tag is not None:
            self._refuse(mark, event.tag, "a tag changes what a value is", "delete it")
            event.tag = None
            event.implicit = (True, True) if isinstance(event, yaml.ScalarEvent) else True
        if isinstance(event, yaml.ScalarEvent) and mark.line < event.end_mark.line:  # type: ignore[union-attr]
            if event.style and not (event.style == "|" and isinstance(index, int)):
                raise yaml.composer.ComposerError(problem=_RUNS_ON, problem_mark=mark)
            if not event.style:
                self.continued.append(mark)
        if self._depth == MAX_DEPTH:
            raise yaml.composer.ComposerError(
                problem=f"nested more than {MAX_DEPTH} deep", problem_mark=mark
            )
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _refuse(self, mark: Any, value: str, message: str, cure: str) -> None:
        place = (mark.line + 1, mark.column + 1)
        self._document.report_at(place, "yaml-feature", message, cure, value=value)


def _report_continued(document: Document, mark: Any) -> None:
    """Tell of plain text of several lines: one lacks its dash, or the next is indented deeper."""
    lines = _significant(document.text)
    number = mark.line + 1
    after = min(other for other in lines if other > number)
    message = "this line and those after it are read as one entry"
    begins_well = lines[number][: mark.column].strip()
    if begins_well and not _is_odd(lines[number], lines[after], lines):
        number = after
        message = "this line is read as part of the entry above it"
    line = lines[number]
    place = (number, _indent(line) + 1)
    document.report_at(place, "yaml-syntax", message, _ALIGN, value=line.strip())


def _report_syntax(document: Document, error: yaml.MarkedYAMLError, opened: list[Any]) -> None:
    """Put a parser's complaint where the mistake is, and say how to mend it.

    `opened` holds the mark of the bracket that is still open, if any.
    """
    message = error.problem or "is not YAML"
    begun: Any = error.context_mark
    mark: Any = error.problem_mark or begun
    if opened:
        [mark] = opened
    elif begun and "quoted scalar" in str(error.context) and begun.line < mark.line:
        mark, message = begun, _RUNS_ON
    elif _NOTICED_LATE.search(message):
        mark = begun or mark
    place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    if "another document" in message:
        document.report_at(
            place, "yaml-feature", "a second document begins here", "delete the `---`"
        )
        return
    if not opened and re.search(
        "mapping values are not|expected <block end>|<document start>", message
    ):
        place = _odd_one_out(document.text, place)
    cures = (cure for sign, cure in _SYNTAX_CURES if re.search(sign, message))
    document.report_at(
        place, "yaml-syntax", message, next(cures, "compare with the lines around it")
    )


def _odd_one_out(text: str, place: Place) -> Place:
    """The place at fault for a wrong indent or a missing colon, noticed at `place`.

    The line before is to blame if it is no `name: value` nor entry; if it has an empty list; if its
    indent is an unusual one; or if the line after agrees with this one instead.
    """
    lines = _significant(text)
    before = max((number for number in lines if number < place[0]), default=0)
    after = min((number for number in lines if number > place[0]), default=0)
    if not before or ": " in lines.get(place[0], "")[: place[1] - 1]:
        return place
    here, previous = lines[place[0]], lines[before].strip()
    if here.lstrip().startswith("-") and re.match(r"\w+: ", previous):
        to_blame = previous.endswith(("[]", "{}"))
    else:
        agrees = after and _indent(lines[after]) == _indent(here) != _indent(lines[before])
        to_blame = (
            not re.search("^- |:( |$)", previous) or agrees or _is_odd(lines[before], here, lines)
        )
    return (before, _indent(lines[before]) + 1) if to_blame else place


def _is_odd(first: str, second: str, lines: dict[int, str]) -> bool:
    """Whether the first line's indent is unusual in the file, and the second's is usual."""
    indents = [*filter(None, map(_indent, lines.values()))]
    usual = {0, statistics.mode(indents)} if indents else {0}
    return _indent(first) not in usual and _indent(second) in usual


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _significant(text: str) -> dict[int, str]:
    """The lines that are not blank and no comment, by number."""
    numbered = enumerate(LINE_END.split(text), 1)
    return {n: line for n, line in numbered if line.strip() and not line.lstrip().startswith("#")}


def _value(document: Document, node: yaml.Node, at: At) -> Any:
    """The plain value of a node, its place noted; None for a mistake, which is reported."""
    document.values[at] = node
    if isinstance(node, yaml.MappingNode):
        return _mapping(document, node, at)
    if isinstance(node, yaml.SequenceNode):
        return [_value(document, item, (*at, index)) for index, item in enumerate(node.value)]
    return _scalar(document, node, at)


def _mapping(document: Document, node: yaml.MappingNode, at: At) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
        here = (*at, key)
        place = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        if key_node.tag == _MERGE:
            rule, message, cure = (
                "yaml-feature",
                "a merge key hides values",
                "write the values themselves",
            )
        elif key_node.tag != _STRING:
            message = f"YAML reads the key {key or '(empty)'} as {_kind(key_node)}, not as a name"
            rule, cure = "yaml-value", f"put it in quotes if a name is meant: '{key}'"
        elif key in result:
            message = (
                f"{key} stands on line {document.keys[here].line + 1} too; YAML keeps only the last"
            )
            rule, cure = "duplicate-key", "delete one of the two"
        else:
            document.keys[here] = key_node.start_mark
            result[key] = _value(document, value_node, here)
            continue
        document.report_at(place, rule, message, cure, value=key, at=here)
    return result


def _scalar(document: Document, node: Any, at: At) -> str | int | None:
    text: str = node.value
    if node.style == "|" and at[0] not in PROGRAMS:
        document.misread[at] = ""
        document.report(at, "yaml-syntax", _RUNS_ON, "write it on one line")
        return None
    several_lines = node.end_mark.line > node.start_mark.line
    if node.tag == _STRING and not (several_lines and node.style is None):
        return text
    if node.tag == _INTEGER and _DECIMAL.fullmatch(text):
        return int(text)
    document.misread[at] = ""
    if node.tag == _NULL and not text:
        document.misread[at] = "null, for there is no value"
    elif text != "*" and not several_lines:  # the loader has told of these
        document.misread[at] = _kind(node)
    return None


def _kind(node: Any) -> str:
    """What YAML makes of a scalar, in words."""
    kind: str = node.tag.rpartition(":")[2]
    if kind == "int":
        if len(node.value) > _MOST_DIGITS:
            return "a huge number"
        return f"the number {yaml.SafeLoader('').construct_yaml_int(node)}"
    words = {
        "bool": "true or false",
        "float": "a fraction",
        "timestamp": "a date",
        "map": "a mapping",
    }
    return words.get(kind, kind)


def _place_after(before: str) -> Place:
    """Line and column of what follows a text."""
    lines = LINE_END.split(before)
    return len(lines), len(lines[-1]) + 1
