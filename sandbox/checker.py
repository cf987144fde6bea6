"""Finds what a program must not hold, before any of it runs. Parses it, never compiles it.

What is refused comes from the policy; what is here is how Python can be made to reach it. The tree
is closed: kinds and fields of nodes that `sandbox/syntax.py` does not list are refused.

Rules, in the order that they are looked at:
    source-too-long      more bytes than the policy takes
    forbidden-character  one that hides what a program is
    syntax               Python's own complaint, in its words
    unknown-syntax       newer than these tables
    dunder               a name that holds two underscores
    import, relative-import, dangerous-import
                         a module that is not allowed, or what no module may be asked for
    dangerous-name       a builtin that the policy names, unless it is surely a variable
    dangerous-attribute, private-attribute
                         an attribute that the policy names, or that begins with an underscore
    dangerous-text       a literal that spells one of these
    format, wraps, positional-pattern, type-parameter
                         ways to reach an attribute, or to evaluate, by text made at run time
    blocked-word         what the policy looks for in the text, escapes decoded
"""

import ast
import heapq
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sandbox.bindings import (
    ORDINARY_WORDS,
    Values,
    bindings,
    is_namedtuple,
    is_plain_text,
    own_occurrences,
)
from sandbox.literals import (
    hidden_words,
    joined_texts,
    literal_text,
    reads_attributes,
    terms_of_sum,
    text_of,
)
from sandbox.policy import Policy
from sandbox.source_text import Lines, Unparsed, decode_escapes, normalised, parse
from sandbox.syntax import KINDS

__all__ = ["MOST_VIOLATIONS", "Violation", "check"]

# Nobody reads more; a program made of violations must not become a long answer.
MOST_VIOLATIONS = 100

# Characters that make a program look other than it is, or that no parser takes: NUL, byte order
# marks, bidirectional embeddings, overrides and isolates, lone surrogates, a CR without its LF.
_FORBIDDEN_CHARACTER = re.compile("[\0\ufeff\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)")
# What a class calls its own objects, whose private attributes are its own business. It proves
# nothing, so that the policy names each private attribute that leads out of the allowed modules.
_OWNERS = frozenset({"self", "cls", "other"})
# Attributes that are private by name and public by the documentation of namedtuple.
_NAMEDTUPLE_ATTRS = frozenset({"_asdict", "_field_defaults", "_fields", "_make", "_replace"})
# `case int(x)` binds the value itself (PEP 634); other classes read attributes that they name.
_SELF_MATCHING = frozenset(
    ("bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str")
) | {"tuple"}
# What `wraps` calls, and what positional patterns are trusted for: a program that put its own there
# would be handed `update_wrapper`, or could make a pattern read any attribute.
_RELIED_ON = frozenset({"namedtuple", "partial"})
# From 3.14 on, classes that plain syntax leads to make text into annotationlib.ForwardRef, whose
# method `evaluate` runs it. It takes no plain argument; many an honest `evaluate` does.
_HAS_FORWARD_REFS = sys.version_info >= (3, 14)
# Judged by how they are called, which a class pattern would hide.
_JUDGED_BY_CALL = frozenset({"evaluate", "format", "wraps"})


@dataclass(frozen=True)
class Violation:
    """One thing that a program must not hold.

    `rule` is a stable id; `line` and `column` count from 1, the column in characters; `message` is
    a plain sentence for a person; `value` is the offending piece of the program.
    """

    rule: str
    line: int
    column: int
    message: str
    value: str


@dataclass(frozen=True)
class _Rules:
    """A policy in the forms that the walk looks things up in."""

    names: frozenset[str]
    attrs: frozenset[str]
    dunders: frozenset[str]
    imports: frozenset[str]
    allowed: str  # the same for a person
    preloaded: Mapping[str, str]
    limited: frozenset[str]  # "itemgetter" where attrs hold "statistics.itemgetter"
    hidden: frozenset[str]  # attributes that are no ordinary words
    words: tuple[re.Pattern[str], ...]


@dataclass
class _Walk:
    """One walk over a tree: what it found, and what can be judged only when all is known."""

    rules: _Rules
    # line, offset in UTF-8 bytes, rule, message, value
    found: list[tuple[int, int, str, str, str]] = field(default_factory=list)
    judged: set[ast.AST] = field(default_factory=set)  # with a node that holds them
    names: list[ast.Name | ast.arg] = field(default_factory=list)
    formats: list[ast.Attribute] = field(default_factory=list)
    limited: list[ast.Attribute] = field(default_factory=list)
    private: list[ast.Attribute] = field(default_factory=list)
    classes: set[str] = field(default_factory=set)
    patterns: list[ast.MatchClass] = field(default_factory=list)

    def refuse(self, node: ast.AST, rule: str, value: str, message: str) -> None:
        """Note a violation at a node; at the name after the dot if it is an attribute."""
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        if isinstance(node, ast.Attribute):
            line = node.end_lineno or line
            offset = max((node.end_col_offset or 0) - len(node.attr.encode()), 0)
        self.found.append((line, offset, rule, message, value))


_latest: tuple[Policy, _Rules] | None = None


def check(source: str, policy: Policy) -> list[Violation]:
    """Return what `policy` forbids in a program, in the order of the source; empty if nothing.

    Never raises. A program that does not parse gives one Violation with the rule "syntax" and
    Python's own line, such as "IndentationError: unexpected indent". At most MOST_VIOLATIONS are
    returned.
    """
    size, limit = len(source.encode("utf-8", "surrogatepass")), policy.limits.source_bytes
    if size > limit:
        message = f"the program is too long: {size} bytes; at most {limit} may be sent"
        return [Violation("source-too-long", 1, 1, message, str(size))]
    rules, lines = _rules(policy), Lines(source)
    found = list(_characters(source, lines))
    tree = parse(source)
    if isinstance(tree, Unparsed):
        return found or [Violation("syntax", tree.line, tree.column, tree.message, "")]
    walk = _Walk(rules)
    _visit(walk, tree)
    _judge_bindings(walk, tree)
    found += _words(source, lines, rules)
    for line, offset, rule, message, value in heapq.nsmallest(MOST_VIOLATIONS, set(walk.found)):
        found.append(Violation(rule, *lines.of_node(line, offset), message, value))
    return sorted(found, key=lambda one: (one.line, one.column))[:MOST_VIOLATIONS]


def _rules(policy: Policy) -> _Rules:
    """Return a policy's rules, made once for as long as that policy is in force."""
    global _latest
    latest = _latest  # another thread may replace it meanwhile
    if latest is None or latest[0] is not policy:
        attrs = policy.dangerous_attrs
        rules = _Rules(
            names=policy.dangerous_names,
            attrs=attrs,
            dunders=policy.allowed_dunders,
            imports=frozenset(policy.allowed_imports),
            allowed=", ".join(policy.allowed_imports) or "nothing",
            preloaded=policy.preloaded,
            limited=frozenset(attr.rpartition(".")[2] for attr in attrs if "." in attr),
            hidden=frozenset(attr for attr in attrs if "_" in attr[1:] and "." not in attr),
            words=policy.blocked_words,
        )
        _latest = latest = (policy, rules)
    return latest[1]


def _characters(source: str, lines: Lines) -> Iterator[Violation]:
    for match in islice(_FORBIDDEN_CHARACTER.finditer(source), MOST_VIOLATIONS):
        code = f"U+{ord(match[0]):04X}"
        message = f"the character {code} may not stand in a program: it cannot be seen"
        yield Violation("forbidden-character", *lines.at(match.start()), message, code)


def _words(source: str, lines: Lines, rules: _Rules) -> Iterator[Violation]:
    decoded = decode_escapes(source)
    for pattern in rules.words:
        for match in islice(pattern.finditer(decoded.text), MOST_VIOLATIONS):
            place = lines.at(decoded.source_index(match.start()))
            message = f"`{match[0]}` may not stand in a program, not even in text"
            yield Violation("blocked-word", *place, message, match[0])


def _visit(walk: _Walk, tree: ast.AST) -> None:
    """Judge every node. Iterative: a program may nest deeper than Python recurses."""
    todo: list[ast.AST | None] = [tree]
    while todo:
        node = todo.pop()
        if node is None:  # the key of an unpacked dictionary, a default that is not there
            continue
        kind = KINDS.get(node.__class__)
        if kind is None:
            _refuse_unknown(walk, node, type(node).__name__)
            continue
        children, identifiers, unknown = kind
        if identifiers:
            _judge_identifiers(walk, node, identifiers)
        for name in unknown:
            if getattr(node, name, None):
                _refuse_unknown(walk, node, f"{type(node).__name__}.{name}")
        judge = _JUDGES.get(node.__class__)
        if judge is not None:
            judge(walk, node)
        for name in children:
            child = getattr(node, name, None)
            if child.__class__ is list:
                todo.extend(child)
            else:
                todo.append(child)


def _judge_identifiers(walk: _Walk, node: ast.AST, fields: tuple[str, ...]) -> None:
    for name in fields:
        value = getattr(node, name, None)
        if value.__class__ is not str or "__" in value or not value.isascii():
            for identifier in _identifiers(node, name):
                if "__" in identifier:
                    _judge_dunder(walk, node, identifier)


def _identifiers(node: ast.AST, field_name: str) -> list[str]:
    """Return the names in a field, as Python reads them (the parser leaves some as written)."""
    value = getattr(node, field_name, None)
    if value is None:
        return []
    return [normalised(value)] if isinstance(value, str) else [normalised(name) for name in value]


def _refuse_unknown(walk: _Walk, node: ast.AST, kind: str) -> None:
    message = f"this syntax ({kind}) is newer than the calculator and may not be used yet"
    walk.refuse(node, "unknown-syntax", kind, message)


def _judge_dunder(walk: _Walk, node: ast.AST, name: str) -> None:
    if not name.strip("_") and not isinstance(node, ast.Attribute):  # `for __ in range(3)`
        return
    if name in walk.rules.dunders and (node in walk.judged or _is_of_super(node)):
        return
    message = f"`{name}` may not be used here: names with two underscores are closed"
    if name == "__name__" and isinstance(node, ast.Name):
        message += "; a program here is always the main one, so leave the `if` out"
    walk.refuse(node, "dunder", name, message)


def _is_of_super(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[], keywords=[])):
            return True
    return False


def _judge_class(walk: _Walk, node: ast.ClassDef) -> None:
    _judge_bound(walk, node)
    walk.classes.add(node.name)
    for method in node.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            walk.judged.add(method)
            _judge_attr(walk, method, normalised(method.name))


def _judge_attr(walk: _Walk, node: ast.AST, attr: str) -> None:
    if attr in walk.rules.attrs:
        walk.refuse(node, "dangerous-attribute", attr, f"`.{attr}` may not be used here")


def _refuse_private(walk: _Walk, node: ast.AST, attr: str) -> None:
    if "__" not in attr and attr not in _NAMEDTUPLE_ATTRS and attr not in walk.rules.attrs:
        message = f"`.{attr}` may not be used here: it is private, by its first underscore"
        walk.refuse(node, "private-attribute", attr, message)


def _judge_attribute(walk: _Walk, node: ast.Attribute) -> None:
    attr, base = normalised(node.attr), node.value
    _judge_attr(walk, node, attr)
    if attr.startswith("_") and not (isinstance(base, ast.Name) and base.id in _OWNERS):
        walk.private.append(node)
    if attr in _RELIED_ON and not isinstance(node.ctx, ast.Load):
        message = f"`.{attr}` may not be replaced"
        walk.refuse(node, "dangerous-attribute", attr, message)
    if attr == "format":
        walk.formats.append(node)
    elif attr == "wraps":
        _judge_wraps(walk, node)
    elif attr == "evaluate" and node not in walk.judged and _HAS_FORWARD_REFS:
        message = "`.evaluate` may only be called, and with an argument"
        walk.refuse(node, "dangerous-attribute", attr, message)
    if attr in walk.rules.limited:
        walk.limited.append(node)


def _judge_name(walk: _Walk, node: ast.Name) -> None:
    name = node.id
    if name in walk.rules.names:
        walk.names.append(node)
    if name == "wraps":
        _judge_wraps(walk, node)


def _judge_arg(walk: _Walk, node: ast.arg) -> None:
    if node.arg in walk.rules.names:
        walk.names.append(node)


def _judge_keyword(walk: _Walk, node: ast.keyword) -> None:
    for name in _identifiers(node, "arg"):
        if name in walk.rules.names and name not in ORDINARY_WORDS:
            _refuse_name(walk, node, name)


def _judge_bound(walk: _Walk, node: ast.AST) -> None:
    """Judge names that are bound by other means than an assignment or a call."""
    for field_name in KINDS[type(node)][1]:
        for name in _identifiers(node, field_name):
            if name in walk.rules.names:
                _refuse_name(walk, node, name)


def _refuse_name(walk: _Walk, node: ast.AST, name: str) -> None:
    message = f"`{name}` may not be used here"
    if name == "input":
        message += ": nothing can be typed in; write the value into the program"
    walk.refuse(node, "dangerous-name", name, message)


def _judge_class_pattern(walk: _Walk, node: ast.MatchClass) -> None:
    for attr in _identifiers(node, "kwd_attrs"):
        _judge_attr(walk, node, attr)
        if attr.startswith("_"):
            _refuse_private(walk, node, attr)
        if attr in _JUDGED_BY_CALL:
            message = f"`{attr}` may not be used in a pattern"
            walk.refuse(node, "dangerous-attribute", attr, message)
    if node.patterns:
        walk.patterns.append(node)


def _judge_import(walk: _Walk, node: ast.Import) -> None:
    for alias in node.names:
        _judge_module(walk, alias, normalised(alias.name))
        _judge_alias(walk, alias)


def _judge_module(walk: _Walk, node: ast.AST, module: str) -> None:
    if module not in walk.rules.imports:
        message = f"`{module}` may not be imported here; allowed: {walk.rules.allowed}"
        walk.refuse(node, "import", module, message)


def _judge_import_from(walk: _Walk, node: ast.ImportFrom) -> None:
    module = normalised(node.module or "")
    if node.level:
        module = "." * node.level + module
        message = f"`{module}` may not be imported here: a program is in no package"
        walk.refuse(node, "relative-import", module, message)
    else:
        _judge_module(walk, node, module)
    for alias in node.names:
        name = normalised(alias.name)
        is_dangerous = name in walk.rules.names or name in walk.rules.attrs
        if is_dangerous or name.startswith("_") or f"{module}.{name}" in walk.rules.attrs:
            message = f"`{name}` may not be imported from `{module}`"
            walk.refuse(alias, "dangerous-import", name, message)
        if name == "wraps" and alias.asname:
            _judge_wraps(walk, alias)
        _judge_alias(walk, alias)


def _judge_alias(walk: _Walk, node: ast.alias) -> None:
    name = normalised(node.asname or "")
    if name in walk.rules.names:
        _refuse_name(walk, node, name)


def _judge_call(walk: _Walk, node: ast.Call) -> None:
    match node:
        case ast.Call(func=ast.Attribute(attr="evaluate") as called, args=[first, *_]):
            if not isinstance(first, ast.Starred):
                walk.judged.add(called)


def _judge_type_parameter(walk: _Walk, node: ast.AST) -> None:
    # Such a variable leads to classes of `typing`, which make text into code and evaluate it.
    message = "type parameters may not be used here; annotate with plain classes"
    walk.refuse(node, "type-parameter", getattr(node, "name", ""), message)


def _judge_function(walk: _Walk, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    # functools.wraps(f) is a partial of update_wrapper, which reads attributes that text names, and
    # hands over namespaces. As the decorator next to a `def` nobody holds it; it sees a function.
    match node.decorator_list[-1:]:
        case [ast.Call(func=wraps, args=[argument], keywords=[])]:
            if not isinstance(argument, ast.Starred):
                walk.judged.add(wraps)


def _judge_wraps(walk: _Walk, node: ast.Name | ast.Attribute | ast.alias) -> None:
    if node not in walk.judged:
        message = "`wraps` may only be used as a decorator, `@wraps(function)` above a `def`"
        walk.refuse(node, "wraps", "wraps", message)


def _judge_texts(walk: _Walk, node: ast.AST, texts: Iterable[str]) -> None:
    for text in texts:
        for word in hidden_words(text, walk.rules.hidden):
            message = f"`{word}` may not stand in a program, not even in text"
            walk.refuse(node, "dangerous-text", word, message)


def _judge_constant(walk: _Walk, node: ast.Constant) -> None:
    _judge_texts(walk, node, filter(None, [text_of(node)]))


def _judge_operation(walk: _Walk, node: ast.BinOp) -> None:
    if isinstance(node.op, ast.Add) and node not in walk.judged:
        terms, sums = terms_of_sum(node)
        walk.judged.update(sums)
        _judge_texts(walk, node, joined_texts(terms))


def _judge_joined_string(walk: _Walk, node: ast.JoinedStr) -> None:
    terms = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
    _judge_texts(walk, node, joined_texts(terms))


def _judge_bindings(walk: _Walk, tree: ast.AST) -> None:
    """Judge what depends on what else the program binds its names to."""
    for attribute in walk.private:
        base = attribute.value
        if not (isinstance(base, ast.Name) and base.id in walk.classes):
            _refuse_private(walk, attribute, normalised(attribute.attr))
    if walk.names:
        names = {node: node.arg if isinstance(node, ast.arg) else node.id for node in walk.names}
        own = own_occurrences(tree, set(names.values()) & ORDINARY_WORDS)
        for node, name in names.items():
            if node not in own:
                _refuse_name(walk, node, name)
    if walk.formats or walk.limited or walk.patterns:
        values = bindings(tree)
        _judge_formats(walk, values)
        _judge_limited(walk, values)
        _judge_patterns(walk, values)


def _judge_formats(walk: _Walk, values: Values) -> None:
    names = {node.value.id for node in walk.formats if isinstance(node.value, ast.Name)}
    plain = {name for name in names if is_plain_text(name, values)}
    for node in walk.formats:
        text = literal_text(node.value)
        is_plain = text is not None and not reads_attributes(text)
        if not is_plain and not (isinstance(node.value, ast.Name) and node.value.id in plain):
            message = "`.format` works here on text in quotes, with no dot or bracket in its fields"
            walk.refuse(node, "format", "format", f"{message}; an f-string does the same")


def _judge_limited(walk: _Walk, values: Values) -> None:
    names = {node.value.id for node in walk.limited if isinstance(node.value, ast.Name)}
    modules = {
        name: {value for value in values.get(name, ()) if isinstance(value, str)} for name in names
    }
    for node in walk.limited:
        if isinstance(node.value, ast.Name):
            name = node.value.id
            for module in {*modules[name], walk.rules.preloaded.get(name)}:
                if f"{module}.{node.attr}" in walk.rules.attrs:
                    message = f"`.{node.attr}` of `{module}` may not be used here"
                    walk.refuse(node, "dangerous-attribute", node.attr, message)


def _judge_patterns(walk: _Walk, values: Values) -> None:
    names = {node.cls.id for node in walk.patterns if isinstance(node.cls, ast.Name)}
    namedtuples = {name for name in names if is_namedtuple(name, values)}
    for node in walk.patterns:
        name = node.cls.id if isinstance(node.cls, ast.Name) else ""
        binds_itself = name in _SELF_MATCHING and name not in values
        if not binds_itself and name not in namedtuples:
            message = "name the attributes in this pattern, as in `case Point(x=a, y=b)`"
            walk.refuse(node, "positional-pattern", name, message)


_JUDGES_BY_NAME: dict[str, Callable[[_Walk, Any], None]] = {
    "Name": _judge_name,
    "arg": _judge_arg,
    "keyword": _judge_keyword,
    "Attribute": _judge_attribute,
    "Constant": _judge_constant,
    "BinOp": _judge_operation,
    "JoinedStr": _judge_joined_string,
    "TemplateStr": _judge_joined_string,
    "Call": _judge_call,
    "FunctionDef": _judge_function,
    "AsyncFunctionDef": _judge_function,
    "ClassDef": _judge_class,
    "Import": _judge_import,
    "ImportFrom": _judge_import_from,
    "Global": _judge_bound,
    "Nonlocal": _judge_bound,
    "ExceptHandler": _judge_bound,
    "MatchAs": _judge_bound,
    "MatchStar": _judge_bound,
    "MatchMapping": _judge_bound,
    "MatchClass": _judge_class_pattern,
    "TypeVar": _judge_type_parameter,
    "ParamSpec": _judge_type_parameter,
    "TypeVarTuple": _judge_type_parameter,
}
_JUDGES = {
    getattr(ast, kind): judge for kind, judge in _JUDGES_BY_NAME.items() if hasattr(ast, kind)
}
