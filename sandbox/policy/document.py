"""Reads YAML in its plain form into a value whose every part knows its file, line and column.

Plain form: one document of mappings, lists, text and decimal whole numbers. A number is what a key
has as its value; everything else is text as it stands, so that no scalar turns into something else
(`on`, `010`, `1:30`). Anchors and tags are mistakes here: a reviewed file means what it says.
"""

import hashlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

MAX_FILE_BYTES = 262_144
MAX_DEPTH = 8

# Where a value stands: ("limits", "wall_seconds"), ("allowed_imports", 3).
At = tuple[str | int, ...]
Severity = Literal["error", "warning", "note"]

NULL = "tag:yaml.org,2002:null"
_DECIMAL = re.compile("0|-?[1-9][0-9]{0,99}")
# Characters that hide, reorder or break text, or pass for a space: a reviewer would see another
# file than is read.
_DECEPTIVE = re.compile("[\x85\xa0\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
LINE_END = re.compile("\r\n|\r|\n")
_ALIGN = "align this line with its neighbours; an entry of a list begins with `- `"
_QUOTE = "put the value in 'single quotes'"

PROGRAMS = ("prelude", "warm_up")  # lists whose entries may have several lines
_RUNS_ON = "{} that begins here runs on over several lines"

# PyYAML's complaint -> what to do about it.
_SYNTAX_CURES = (
    (r"'\\t' that cannot start", "indent with spaces, and part words with spaces, not with a tab"),
    ("that cannot start any token", _QUOTE),
    ("escape", _QUOTE),
    ("expected alphabetic or numeric", _QUOTE),
    ("quoted text .* runs on", "close the quote on the same line"),
    ("a block .* runs on", "write it on one line"),
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


class Place(NamedTuple):
    """Line and column of a file, 1-based, in characters."""

    path: Path
    line: int
    column: int


@dataclass(frozen=True)
class Finding:
    """What somebody should look at in a file: line and column are 1-based, in characters.

    `field` is as `limits.wall_seconds`; `accepted` is the reason that the file gives to leave it.
    """

    path: Path
    line: int
    column: int
    field: str
    value: str
    message: str
    cure: str
    rule: str
    severity: Severity = "error"
    accepted: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.message}; {self.cure}"


@dataclass(frozen=True)
class Document:
    """A file's value, the place of each part of it, and the mistakes found so far.

    `files` has the bytes of the file and of those that it extends, its own first.
    """

    path: Path
    raw: bytes
    value: dict[str, Any] = field(default_factory=dict)
    keys: dict[At, yaml.Mark] = field(default_factory=dict)
    values: dict[At, yaml.Node] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    files: dict[Path, bytes] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The file's own text."""
        return self.raw.decode("utf-8", "replace")

    @property
    def hashes(self) -> dict[Path, str]:
        """The SHA-256 of each file."""
        return {path: hashlib.sha256(raw).hexdigest() for path, raw in self.files.items()}

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file; of one that extends others, of all their hashes in a row."""
        hashes = "".join(self.hashes.values())
        return hashes if len(self.files) == 1 else hashlib.sha256(hashes.encode()).hexdigest()

    def place(self, at: At, *, key: bool = False) -> Place:
        """The place of a value, or of its key; of the nearest parent where there is none."""
        while at:
            node, mark = self.values.get(at), self.keys.get(at)
            if node is not None and not (key and mark):
                mark = node.start_mark
            if mark is not None:
                return place_of(mark)
            at, key = at[:-1], True
        return Place(self.path, 1, 1)

    def report(self, at: At, rule: str, message: str, cure: str, *, key: bool = False) -> None:
        """Add a mistake in the value at `at`, or in its key."""
        node = self.values.get(at)
        value = node.value if isinstance(node, yaml.ScalarNode) else ""
        value = str(at[-1]) if key and at else value
        self.report_at(self.place(at, key=key), rule, message, cure, value=value, at=at)

    def report_at(
        self, place: Place, rule: str, message: str, cure: str, *, value: str = "", at: At = ()
    ) -> None:
        """Add a mistake at a place."""
        self.findings.append(Finding(*place, dotted(at), value, message, cure, rule))

    def number(self, at: At) -> int | None:
        """The whole number at `at`, if there is one."""
        value: Any = self.value
        for step in at:
            value = value.get(step) if isinstance(value, dict) else None
        return value if isinstance(value, int) else None

    def strings(self, name: str | int) -> Iterator[tuple[At, str]]:
        """Each text of a list or mapping, with where it stands; of an entry `- name: value`, the
        name.
        """
        value = self.value.get(str(name))
        if isinstance(value, dict):
            yield from (((name, key), item) for key, item in value.items() if isinstance(item, str))
        for index, item in enumerate(value if isinstance(value, list) else ()):
            texts = [item] if isinstance(item, str) else item if isinstance(item, dict) else ()
            yield from (((name, index), text) for text in texts)


def dotted(at: At) -> str:
    """A place as people write it: `limits.wall_seconds`, `allowed_imports[3]`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in at)
    return "".join(steps).removeprefix(".")


def _is_text(document: Document) -> bool:
    """Whether the bytes are fit to parse; a mistake that is reported says why not."""
    if len(document.raw) > MAX_FILE_BYTES:
        message = f"has more than {MAX_FILE_BYTES} bytes"
        document.report((), "file", message, "keep the policy short enough to review")
    elif document.text.startswith("\ufeff"):
        cure = "save it as UTF-8 without a BOM"
        document.report((), "file", "begins with a byte order mark", cure)
    else:
        try:
            document.raw.decode("utf-8")
        except UnicodeDecodeError as error:
            place = _place_after(document, document.raw[: error.start].decode("utf-8"))
            document.report_at(place, "file", "is not UTF-8 from here on", "save it as UTF-8")
    for hidden in () if document.findings else _DECEPTIVE.finditer(document.text):
        value = f"U+{ord(hidden[0]):04X}"
        message = f"the invisible character {value} can make the file look like another"
        place = _place_after(document, document.text[: hidden.start()])
        document.report_at(place, "yaml-syntax", message, "delete the character", value=value)
    return not document.findings


def compose(document: Document) -> yaml.Node | None:
    """The file's tree; None where there is none, or where a mistake says why."""
    if not _is_text(document):
        return None
    if yaml.__with_libyaml__ and (quick := _composed_by_libyaml(document)):
        return quick
    try:
        loader = _Loader(document)
    except yaml.reader.ReaderError as error:
        value = f"U+{error.character:04X}"
        place = _place_after(document, document.text[: error.position])
        message = f"the character {value} is not allowed"
        document.report_at(place, "yaml-syntax", message, "delete the character", value=value)
        return None
    try:
        node: yaml.Node | None = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        if loader.continued and loader.flow_level <= 0 and "<block end>" in str(error.problem):
            _report_continued(document, loader.continued[-1])
        else:
            opened = [mark for mark in loader.marks[-1:] if document.text[mark.index] in "[{"]
            _report_syntax(document, error, opened)
        return None
    for mark in loader.continued:
        _report_continued(document, mark)
    return node


def _composed_by_libyaml(document: Document) -> yaml.Node | None:
    """The same in a tenth of the time (1 ms of 11), for files without any mistake here.

    None for all others, for those with tabs, of which libyaml allows more, and with blocks.
    """
    if "\t" in document.text:
        return None
    stream = io.StringIO(document.text)
    stream.name = str(document.path)  # which marks then have
    depth = 0
    event: Any
    try:
        for event in yaml.parse(document.text, Loader=yaml.CBaseLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            is_long = event.start_mark.line < event.end_mark.line
            if (
                depth == MAX_DEPTH
                or (is_long and isinstance(event, yaml.ScalarEvent))
                or getattr(event, "anchor", None)
                or getattr(event, "tag", None)
            ):
                return None
        node: yaml.Node | None = yaml.compose(stream, Loader=yaml.CBaseLoader)
    except yaml.YAMLError:
        return None
    return node


class _Loader(yaml.BaseLoader):
    """Composes a tree and reports what the plain form leaves out."""

    def __init__(self, document: Document) -> None:
        super().__init__(document.text)
        self.name = str(document.path)  # which marks then have
        self._document = document
        self._depth = 0
        self.continued: list[Any] = []  # where plain text of several lines begins

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        mark: Any = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            self.get_event()  # type: ignore[no-untyped-call]
            why, cure = "an alias hides a value", "write the value itself"
            self._refuse(mark, f"*{event.anchor}", why, cure)
            return yaml.ScalarNode(NULL, "*", mark, mark)
        if event.anchor is not None:
            self._refuse(mark, f"&{event.anchor}", "an anchor has no use here", "delete it")
            event.anchor = None
        if event.tag is not None:
            self._refuse(mark, event.tag, "a tag changes what a value is", "delete it")
            event.tag = None
            event.implicit = (True, True) if isinstance(event, yaml.ScalarEvent) else True
        if isinstance(event, yaml.ScalarEvent) and mark.line < event.end_mark.line:  # type: ignore[union-attr]
            if event.style and not (event.style == "|" and isinstance(index, int)):
                what = "a block" if event.style in "|>" else "quoted text"
                raise yaml.composer.ComposerError(problem=_RUNS_ON.format(what), problem_mark=mark)
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
        self._document.report_at(place_of(mark), "yaml-feature", message, cure, value=value)


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
    place = Place(document.path, number, _indent(line) + 1)
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
        mark, message = begun, _RUNS_ON.format("quoted text")
    elif _NOTICED_LATE.search(message):
        mark = begun or mark
    place = place_of(mark) if mark else Place(document.path, 1, 1)
    if "another document" in message:
        message, cure = "a second document begins here", "delete the `---`"
        document.report_at(place, "yaml-feature", message, cure)
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
    before = max((number for number in lines if number < place.line), default=0)
    after = min((number for number in lines if number > place.line), default=0)
    if not before or ": " in lines.get(place.line, "")[: place.column - 1]:
        return place
    here, previous = lines[place.line], lines[before].strip()
    if here.lstrip().startswith("-") and re.match(r"\w+: ", previous):
        to_blame = previous.endswith(("[]", "{}"))
    else:
        agrees = after and _indent(lines[after]) == _indent(here) != _indent(lines[before])
        to_blame = (
            not re.search(r"^- |:( |$)|[]}]$", previous)
            or agrees
            or _is_odd(lines[before], here, lines)
        )
    return place._replace(line=before, column=_indent(lines[before]) + 1) if to_blame else place


def _is_odd(first: str, second: str, lines: dict[int, str]) -> bool:
    """Whether the first line's indent is unusual in the file, and the second's is usual."""
    indents = [*filter(None, map(_indent, lines.values()))]
    usual = {0, max(indents, key=indents.count, default=0)}
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
        return mapping(document, node, at)
    if isinstance(node, yaml.SequenceNode):
        return [_value(document, item, (*at, index)) for index, item in enumerate(node.value)]
    return _scalar(document, node, at)


def mapping(document: Document, node: yaml.MappingNode, at: At) -> dict[str, Any]:
    """The plain value of a mapping, without keys that stand twice, which are reported."""
    result: dict[str, Any] = {}
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else "?"
        here = (*at, name)
        if name in result:
            line = document.place(here, key=True).line
            message = f"{name} stands on line {line} too; YAML keeps only the last"
            cure = "delete one of the two"
            place = place_of(key.start_mark)
            document.report_at(place, "duplicate-key", message, cure, value=name, at=here)
            continue
        document.keys[here] = key.start_mark
        result[name] = _value(document, value, here)
    return result


def _scalar(document: Document, node: Any, at: At) -> str | int | None:
    text: str = node.value
    if node.style == "|" and at[0] not in PROGRAMS:
        document.report(at, "yaml-syntax", _RUNS_ON.format("a block"), "write it on one line")
        return None
    if node.tag == NULL or (not node.style and node.end_mark.line > node.start_mark.line):
        return None  # the loader has told of these
    if not node.style and isinstance(at[-1], str) and _DECIMAL.fullmatch(text):
        return int(text)
    return text


def place_of(mark: Any) -> Place:
    """The place of a parser's mark."""
    return Place(Path(mark.name), mark.line + 1, mark.column + 1)


def _place_after(document: Document, before: str) -> Place:
    """Line and column of what follows a text."""
    lines = LINE_END.split(before)
    return Place(document.path, len(lines), len(lines[-1]) + 1)
