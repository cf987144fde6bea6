"""Finds what a program must not hold, before any of it runs. Parses it, never compiles it.

What is refused comes from the policy; what is here is how Python can be made to reach it. The tree
is closed: kinds and fields of nodes that `sandbox/check/node_kinds.py` does not list are refused.

Rules, in the order that they are looked at:
    source-too-long      more bytes than the policy allows
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
import gc
import heapq
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from sandbox.check.literals import hidden_words, is_plain_text, joined_texts, terms_of_sum, text_of
from sandbox.check.node_kinds import KINDS, Nodes, by_identifier, by_kind, walk
from sandbox.check.scopes import (
    DEFINITIONS,
    ORDINARY_WORDS,
    Bindings,
    bindings,
    namedtuples,
    own_names,
    plain_texts,
)
from sandbox.check.source import Lines, Unparsed, decode_escapes, normalised, parse
from sandbox.policy.loader import Policy

__all__ = ["MOST_VIOLATIONS", "Violation", "check"]

# Nobody reads more; a program made of violations must not become a long answer.
MOST_VIOLATIONS = 100

# Characters that make a program look other than it is, or that no parser accepts: NUL, byte order
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
# method `evaluate` runs it and accepts no positional argument; programs' own ones usually do.
_HAS_FORWARD_REFS = sys.version_info >= (3, 14)
# Judged by how they are called, which a class pattern would hide.
_JUDGED_BY_CALL = frozenset({"evaluate", "format", "wraps"})
# Private, but the only parser of regular expressions that agrees with the one that runs them.
_REGEX_PARSER: Any = importlib.import_module("re._parser")


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
    """A policy in the forms that things are looked up in."""

    names: frozenset[str]
    attrs: frozenset[str]
    dunders: frozenset[str]
    imports: frozenset[str]
    allowed: str  # the same for a person
    preloaded: Mapping[str, str]
    limited: Mapping[str, set[str]]  # {"itemgetter": {"statistics"}}
    hidden: frozenset[str]  # attributes that are no ordinary words
    words: Sequence[tuple[re.Pattern[str], str]]  # with a text that every match holds


@dataclass
class _Program:
    """A program's nodes, and what was found in them."""

    nodes: Nodes
    rules: _Rules
    # line, offset in UTF-8 bytes, rule, message, value
    found: list[tuple[int, int, str, str, str]] = field(default_factory=list)

    @cached_property
    def bound(self) -> Bindings:
        return bindings(self.nodes)

    @cached_property
    def own(self) -> set[str]:
        return own_names(self.bound, self.methods)

    @cached_property
    def namedtuples(self) -> set[str]:
        return namedtuples(self.bound)

    @cached_property
    def classes(self) -> set[str]:
        return {node.name for node in self.nodes.get(ast.ClassDef, ())}

    @cached_property
    def methods(self) -> set[ast.AST]:
        classes = self.nodes.get(ast.ClassDef, ())
        return {one for node in classes for one in node.body if one.__class__ in DEFINITIONS}

    def refuse(self, nodes: Iterable[ast.AST], rule: str, value: str, message: str) -> None:
        """Note a violation at each node; at the name after the dot if it is an attribute."""
        for node in nodes:
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
    return examine(source, policy)[0]


def examine(
    source: str, policy: Policy, tree: ast.Module | Unparsed | None = None
) -> tuple[list[Violation], ast.Module | Unparsed | None]:
    """Return the same, and what the program parses to; None if it is too long to be parsed.

    `tree` is what `parse` has made of the source, if that is known.
    """
    size, limit = len(source.encode("utf-8", "surrogatepass")), policy.limits.source_bytes
    if size > limit:
        message = f"the program is too long: {size} bytes; at most {limit} may be sent"
        return [Violation("source-too-long", 1, 1, message, str(size))], None
    # A tree has thousands of objects and no cycle, and collecting would traverse them repeatedly.
    # Only a thread that found the collector on switches it on again.
    is_collecting = gc.isenabled()
    if is_collecting:
        gc.disable()
    try:
        tree = tree or parse(source)
        return _check(source, tree, _rules(policy)), tree
    finally:
        if is_collecting:
            gc.enable()


def _check(source: str, tree: ast.Module | Unparsed, rules: _Rules) -> list[Violation]:
    lines = Lines(source)
    found = list(_characters(source, lines))
    if isinstance(tree, Unparsed):
        return found or [Violation("syntax", tree.line, tree.column, tree.message, "")]
    program = _Program(by_kind(walk(tree)), rules)
    _judge(program)
    found += _words(source, lines, rules)
    first = heapq.nsmallest(MOST_VIOLATIONS, set(program.found))
    for line, offset, rule, message, value in first:
        found.append(Violation(rule, *lines.of_node(line, offset), message, value))
    return sorted(found, key=lambda one: (one.line, one.column))[:MOST_VIOLATIONS]


def _rules(policy: Policy) -> _Rules:
    """Return a policy's rules, made once for as long as that policy is in force."""
    global _latest
    latest = _latest  # another thread may replace it meanwhile
    if latest is None or latest[0] is not policy:
        attrs = policy.dangerous_attrs
        limited: dict[str, set[str]] = {}
        for module, _, attr in (attr.rpartition(".") for attr in attrs if "." in attr):
            limited.setdefault(attr, set()).add(module)
        rules = _Rules(
            names=policy.dangerous_names,
            attrs=attrs,
            dunders=policy.allowed_dunders,
            imports=frozenset(policy.allowed_imports),
            allowed=", ".join(policy.allowed_imports) or "nothing",
            preloaded=policy.preloaded,
            limited=limited,
            hidden=frozenset(attr for attr in attrs if "_" in attr[1:] and "." not in attr),
            words=[(word, _certain_text(word)) for word in policy.blocked_words],
        )
        _latest = latest = (policy, rules)
    return latest[1]


def _certain_text(pattern: re.Pattern[str]) -> str:
    """Return the longest text that surely is in all that a pattern matches; perhaps none.

    To look for a text is a hundred times as fast as to look for a match.
    """
    runs = [""]
    for operation, argument in _REGEX_PARSER.parse(pattern.pattern, pattern.flags):
        if operation is _REGEX_PARSER.LITERAL:
            runs[-1] += chr(argument)
        else:
            runs.append("")
    return "" if pattern.flags & re.IGNORECASE else max(runs, key=len)


def _characters(source: str, lines: Lines) -> Iterator[Violation]:
    for match in islice(_FORBIDDEN_CHARACTER.finditer(source), MOST_VIOLATIONS):
        code = f"U+{ord(match[0]):04X}"
        message = f"the character {code} may not stand in a program: it cannot be seen"
        yield Violation("forbidden-character", *lines.at(match.start()), message, code)


def _words(source: str, lines: Lines, rules: _Rules) -> Iterator[Violation]:
    decoded = decode_escapes(source)
    for pattern, certain in rules.words:
        if certain in decoded.text:
            for match in islice(pattern.finditer(decoded.text), MOST_VIOLATIONS):
                place = lines.at(decoded.source_index(match.start()))
                message = f"`{match[0]}` may not stand in a program, not even in text"
                yield Violation("blocked-word", *place, message, match[0])


def _judge(program: _Program) -> None:
    """Judge all nodes: those of a kind together, and of these the ones with an identifier."""
    for kind, nodes in program.nodes.items():
        known = KINDS.get(kind)
        if known is None:
            _refuse_unknown(program, nodes, kind.__name__)
            continue
        for name in known.unknown:
            filled = [node for node in nodes if getattr(node, name, None)]
            _refuse_unknown(program, filled, f"{kind.__name__}.{name}")
        for name in known.identifiers:
            judge = _JUDGES_OF_IDENTIFIERS.get((kind, name))
            for identifier, holders in by_identifier(nodes, name).items():
                if "__" in identifier:
                    _judge_dunder(program, identifier, holders)
                if judge:
                    judge(program, identifier, holders)
        if kind in _JUDGES:
            _JUDGES[kind](program, nodes)


def _refuse_unknown(program: _Program, nodes: Iterable[ast.AST], kind: str) -> None:
    message = f"this syntax ({kind}) is newer than the calculator and may not be used yet"
    program.refuse(nodes, "unknown-syntax", kind, message)


def _judge_dunder(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    if not name.strip("_"):  # `for __ in range(3)`
        nodes = [node for node in nodes if isinstance(node, ast.Attribute)]
    if name in program.rules.dunders:
        nodes = [node for node in nodes if node not in program.methods and not _is_of_super(node)]
    message = f"`{name}` may not be used here: names with two underscores are closed"
    if name == "__name__" and all(isinstance(node, ast.Name) for node in nodes):
        message += "; a program here is always the main one, so leave the `if` out"
    program.refuse(nodes, "dunder", name, message)


def _is_of_super(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[], keywords=[])):
            return True
    return False


def _judge_variable(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    if name in program.rules.names and name not in program.own:
        _refuse_name(program, name, nodes)


def _judge_name(program: _Program, name: str, nodes: Sequence[ast.Name]) -> None:
    _judge_variable(program, name, nodes)
    if name == "wraps":
        _judge_wraps(program, nodes)


def _judge_keyword(program: _Program, name: str, nodes: Sequence[ast.keyword]) -> None:
    if name not in ORDINARY_WORDS:
        _judge_bound(program, name, nodes)


def _judge_bound(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    """Judge a name that is bound by other means than an assignment or a call."""
    if name in program.rules.names:
        _refuse_name(program, name, nodes)


def _refuse_name(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    message = f"`{name}` may not be used here"
    if name == "input":
        message += ": nothing can be typed in; write the value into the program"
    program.refuse(nodes, "dangerous-name", name, message)


def _judge_definition(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    if name in program.rules.attrs:
        _judge_attr(program, name, [node for node in nodes if node in program.methods])


def _judge_attribute(program: _Program, attr: str, nodes: Sequence[ast.Attribute]) -> None:
    _judge_attr(program, attr, nodes)
    if attr.startswith("_"):
        owners = _OWNERS | program.classes
        others = [
            node
            for node in nodes
            if not (isinstance(node.value, ast.Name) and node.value.id in owners)
        ]
        _refuse_private(program, attr, others)
    if attr in _RELIED_ON:
        replaced = [node for node in nodes if not isinstance(node.ctx, ast.Load)]
        program.refuse(replaced, "dangerous-attribute", attr, f"`.{attr}` may not be replaced")
    if attr in program.rules.limited:
        _judge_limited(program, attr, nodes)
    if attr == "format":
        _judge_formats(program, nodes)
    elif attr == "wraps":
        _judge_wraps(program, nodes)
    elif attr == "evaluate" and _HAS_FORWARD_REFS:
        _judge_evaluate(program, nodes)


def _judge_attr(program: _Program, attr: str, nodes: Sequence[ast.AST]) -> None:
    if attr in program.rules.attrs:
        program.refuse(nodes, "dangerous-attribute", attr, f"`.{attr}` may not be used here")


def _refuse_private(program: _Program, attr: str, nodes: Sequence[ast.AST]) -> None:
    if "__" not in attr and attr not in _NAMEDTUPLE_ATTRS and attr not in program.rules.attrs:
        message = f"`.{attr}` may not be used here: it is private, by its first underscore"
        program.refuse(nodes, "private-attribute", attr, message)


def _judge_limited(program: _Program, attr: str, nodes: Sequence[ast.Attribute]) -> None:
    named: dict[str, list[ast.AST]] = {}
    for node in nodes:
        if isinstance(node.value, ast.Name):
            named.setdefault(node.value.id, []).append(node)
    for name, its in named.items():
        modules = {one.value for one in program.bound.get(name, ())}
        modules.add(program.rules.preloaded.get(name))
        for module in program.rules.limited[attr] & modules:
            message = f"`.{attr}` of `{module}` may not be used here"
            program.refuse(its, "dangerous-attribute", attr, message)


def _judge_formats(program: _Program, nodes: Sequence[ast.Attribute]) -> None:
    names = {node.value.id for node in nodes if isinstance(node.value, ast.Name)}
    plain = plain_texts(names, program.bound)

    def is_plain(base: ast.expr) -> bool:
        return base.id in plain if isinstance(base, ast.Name) else is_plain_text(base)

    message = (
        "`.format` works here on text in quotes, with no dot or bracket in its fields; "
        "an f-string does the same"
    )
    others = [node for node in nodes if not is_plain(node.value)]
    program.refuse(others, "format", "format", message)


def _judge_wraps(program: _Program, nodes: Iterable[ast.AST]) -> None:
    # functools.wraps(f) is a partial of update_wrapper, which reads attributes that text names, and
    # hands over namespaces. As the decorator next to a `def` nobody holds it; it sees a function.
    decorators: set[ast.AST] = set()
    for kind in DEFINITIONS:
        for function in program.nodes.get(kind, ()):
            match function.decorator_list[-1:]:
                case [ast.Call(func=decorator, args=[argument], keywords=[])]:
                    if not isinstance(argument, ast.Starred):
                        decorators.add(decorator)
    _refuse_wraps(program, [node for node in nodes if node not in decorators])


def _refuse_wraps(program: _Program, nodes: Iterable[ast.AST]) -> None:
    message = "`wraps` may only be used as a decorator, `@wraps(function)` above a `def`"
    program.refuse(nodes, "wraps", "wraps", message)


def _judge_evaluate(program: _Program, nodes: Iterable[ast.AST]) -> None:
    calls = [call for call in program.nodes.get(ast.Call, ()) if call.args]
    called = {call.func for call in calls if not isinstance(call.args[0], ast.Starred)}
    message = "`.evaluate` may only be called, and with an argument"
    others = [node for node in nodes if node not in called]
    program.refuse(others, "dangerous-attribute", "evaluate", message)


def _judge_type_parameter(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    # Such a variable leads to classes of `typing`, which make text into code and evaluate it.
    message = "type parameters may not be used here; annotate with plain classes"
    program.refuse(nodes, "type-parameter", name, message)


def _judge_attr_of_pattern(program: _Program, attr: str, nodes: Sequence[ast.MatchClass]) -> None:
    _judge_attr(program, attr, nodes)
    if attr.startswith("_"):
        _refuse_private(program, attr, nodes)
    if attr in _JUDGED_BY_CALL:
        message = f"`{attr}` may not be used in a pattern"
        program.refuse(nodes, "dangerous-attribute", attr, message)


def _judge_class_patterns(program: _Program, nodes: Sequence[ast.MatchClass]) -> None:
    for node in nodes:
        if node.patterns:
            name = node.cls.id if isinstance(node.cls, ast.Name) else ""
            binds_itself = name in _SELF_MATCHING and name not in program.bound
            if not binds_itself and name not in program.namedtuples:
                message = "name the attributes in this pattern, as in `case Point(x=a, y=b)`"
                program.refuse([node], "positional-pattern", name, message)


def _judge_imports(program: _Program, nodes: Sequence[ast.Import]) -> None:
    for node in nodes:
        for alias in node.names:
            _judge_module(program, normalised(alias.name), alias)


def _judge_module(program: _Program, module: str, node: ast.AST) -> None:
    if module not in program.rules.imports:
        message = f"`{module}` may not be imported here; allowed: {program.rules.allowed}"
        program.refuse([node], "import", module, message)


def _judge_imports_from(program: _Program, nodes: Sequence[ast.ImportFrom]) -> None:
    rules = program.rules
    for node in nodes:
        module = normalised(node.module or "")
        if node.level:
            module = "." * node.level + module
            message = f"`{module}` may not be imported here: a program is in no package"
            program.refuse([node], "relative-import", module, message)
        else:
            _judge_module(program, module, node)
        for alias in node.names:
            name = normalised(alias.name)
            is_dangerous = name in rules.names or name in rules.attrs
            if is_dangerous or name.startswith("_") or f"{module}.{name}" in rules.attrs:
                message = f"`{name}` may not be imported from `{module}`"
                program.refuse([alias], "dangerous-import", name, message)
            if name == "wraps" and alias.asname:
                _refuse_wraps(program, [alias])


def _judge_text(program: _Program, text: str, node: ast.AST) -> None:
    for word in hidden_words(text, program.rules.hidden):
        message = f"`{word}` may not stand in a program, not even in text"
        program.refuse([node], "dangerous-text", word, message)


def _judge_constants(program: _Program, nodes: Sequence[ast.Constant]) -> None:
    for node in nodes:
        if text := text_of(node):
            _judge_text(program, text, node)


def _judge_operations(program: _Program, nodes: Sequence[ast.BinOp]) -> None:
    sums = [node for node in nodes if isinstance(node.op, ast.Add)]
    inner = {term for node in sums for term in (node.left, node.right)}
    for node in sums:
        if node not in inner:
            for text in joined_texts(terms_of_sum(node)):
                _judge_text(program, text, node)


def _judge_joined_strings(program: _Program, nodes: Sequence[ast.JoinedStr]) -> None:
    for node in nodes:
        parts = node.values
        terms = [one.value if isinstance(one, ast.FormattedValue) else one for one in parts]
        for text in joined_texts(terms):
            _judge_text(program, text, node)


# Kind and field -> what judges an identifier and the nodes that hold it there.
_JUDGES_OF_IDENTIFIERS: dict[tuple[type, str], Callable[[_Program, str, Any], None]] = {
    (ast.Name, "id"): _judge_name,
    (ast.arg, "arg"): _judge_variable,
    (ast.keyword, "arg"): _judge_keyword,
    (ast.Attribute, "attr"): _judge_attribute,
    (ast.MatchClass, "kwd_attrs"): _judge_attr_of_pattern,
    (ast.FunctionDef, "name"): _judge_definition,
    (ast.AsyncFunctionDef, "name"): _judge_definition,
    (ast.ClassDef, "name"): _judge_bound,
    (ast.alias, "asname"): _judge_bound,
    (ast.Global, "names"): _judge_bound,
    (ast.Nonlocal, "names"): _judge_bound,
    (ast.ExceptHandler, "name"): _judge_bound,
    (ast.MatchAs, "name"): _judge_bound,
    (ast.MatchStar, "name"): _judge_bound,
    (ast.MatchMapping, "rest"): _judge_bound,
}
# Kind -> what judges the nodes of it.
_JUDGES: dict[type, Callable[[_Program, Any], None]] = {
    ast.Constant: _judge_constants,
    ast.BinOp: _judge_operations,
    ast.JoinedStr: _judge_joined_strings,
    ast.Import: _judge_imports,
    ast.ImportFrom: _judge_imports_from,
    ast.MatchClass: _judge_class_patterns,
}
if sys.version_info >= (3, 12):
    for _kind in (ast.TypeVar, ast.ParamSpec, ast.TypeVarTuple):
        _JUDGES_OF_IDENTIFIERS[_kind, "name"] = _judge_type_parameter
if sys.version_info >= (3, 14):
    _JUDGES[ast.TemplateStr] = _judge_joined_strings
