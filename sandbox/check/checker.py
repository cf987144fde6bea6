"""Finds what a program must not hold, before any of it runs. Parses it, never compiles it.

What is refused comes from the policy; what is here is how Python can be made to reach it. The tree
is closed: kinds and fields of nodes that `sandbox/check/node_kinds.py` does not list are refused.

Rules, in the order that they are looked at:
    source-too-long      more bytes than the policy allows
    forbidden-character  one that hides what a program is
    syntax               Python's own complaint, in its words
    unknown-syntax       newer than these tables
    dunder               a name that holds two underscores, but for the forms in `_gives_nothing`
    import, relative-import, dangerous-import
                         a module that is not allowed, or what no module may be asked for
    dangerous-name       a builtin that the policy names, unless it is surely a variable
    dangerous-attribute, private-attribute
                         an attribute that the policy names, or of a module one that it does not
                         give, or that begins with an underscore
    dangerous-text       a literal that spells one of these
    format, positional-pattern, type-parameter
                         ways to reach an attribute, or to evaluate, by text made at run time
    blocked-word         what the policy looks for in the text, escapes decoded
"""

import ast
import gc
import heapq
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from sandbox.check.hints import hint
from sandbox.check.literals import hidden_words, joined_texts, terms_of_sum, text_of
from sandbox.check.node_kinds import KINDS, Nodes, by_identifier, by_kind, walk
from sandbox.check.scopes import (
    DEFINITIONS,
    ORDINARY_WORDS,
    Bindings,
    bindings,
    imported_modules,
    own_names,
    unsure_nodes,
)
from sandbox.check.source import Lines, Unparsed, decode_escapes, normalised, parse
from sandbox.check.templates import Templates
from sandbox.policy.loader import Policy

__all__ = ["MOST_VIOLATIONS", "Violation", "check"]

# Nobody reads more; a program made of violations must not become a long answer.
MOST_VIOLATIONS = 100

# Characters that make a program look other than it is, or that no parser accepts: NUL, byte order
# marks, bidirectional embeddings, overrides and isolates, lone surrogates.
_FORBIDDEN_CHARACTER = re.compile("[\0\ufeff\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Kinds whose names a class mangles: `self.__x` is `self._Class__x`.
_MANGLED = (ast.Name, ast.Attribute, *DEFINITIONS)
# Texts and no more, whatever they are read of.
_READABLE = frozenset({"__doc__", "__name__", "__qualname__"})
# `case int(x)` binds the value itself (PEP 634); other classes read attributes that they name, and
# isinstance believes a subject that lies about its class.
_SELF_MATCHING = frozenset(
    ("bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str")
) | {"tuple"}
# From 3.14 on, classes that plain syntax leads to make text into annotationlib.ForwardRef, whose
# method `evaluate` runs it and accepts no positional argument; programs' own ones usually do.
_HAS_FORWARD_REFS = sys.version_info >= (3, 14)
# Judged by how they are called, which a class pattern would hide.
_JUDGED_BY_CALL = frozenset({"evaluate", "format"})
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
    imports: Mapping[str, Set[str] | None]  # the names that each module gives
    allowed: str  # the modules for a person
    preloaded: Mapping[str, str]
    limited: frozenset[str]  # modules of which some public names are closed
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
    def methods(self) -> set[ast.AST]:
        classes = self.nodes.get(ast.ClassDef, ())
        return {one for node in classes for one in node.body if one.__class__ in DEFINITIONS}

    @cached_property
    def class_level(self) -> set[ast.AST]:
        """What defines a method: a `def`, and both sides of `__radd__ = __add__`."""
        found = self.methods.copy()
        for node in self.nodes.get(ast.ClassDef, ()):
            for one in node.body:
                if one.__class__ is ast.Assign:
                    sides = (*one.targets, one.value)
                    found.update(side for side in sides if isinstance(side, ast.Name))
        return found

    @cached_property
    def in_classes(self) -> set[ast.AST]:
        found: set[ast.AST] = set()
        for node in self.nodes.get(ast.ClassDef, ()):  # an outer class before its inner ones
            if node not in found:
                found.update(one for part in node.body for one in walk(part))
        return found

    @cached_property
    def main_guards(self) -> set[ast.AST]:
        """The nodes of `__name__` in `__name__ == "__main__"`, either way round."""
        return {
            name
            for node in self.nodes.get(ast.Compare, ())
            if len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq)
            for name, text in ((node.left, node.comparators[0]), (node.comparators[0], node.left))
            if text_of(text) == "__main__"
        }

    @cached_property
    def unsure(self) -> set[ast.AST]:
        return unsure_nodes(self.nodes)

    def is_sure(self, name: ast.AST) -> bool:
        """Tell whether a name holds what the bindings in the text say, or the builtin for none."""
        return "*" not in self.bound and name not in self.unsure

    @cached_property
    def modules(self) -> dict[str, str]:
        """The names that hold modules -> their modules."""
        preloaded = self.rules.preloaded.items()
        absent = {name: module for name, module in preloaded if name not in self.bound}
        return absent | imported_modules(self.bound)

    @cached_property
    def limited(self) -> dict[str, str]:
        """The same for modules of which some public names are closed."""
        named = {one.name for node in self.nodes.get(ast.Import, ()) for one in node.names}
        if self.rules.limited.isdisjoint([*named, *self.rules.preloaded.values()]):
            return {}  # without what finds all bindings: a tenth of the time of a check
        return {name: one for name, one in self.modules.items() if one in self.rules.limited}

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
    first = heapq.nsmallest(MOST_VIOLATIONS, set(program.found)) if program.found else ()
    for line, offset, rule, message, value in first:
        found.append(Violation(rule, *lines.of_node(line, offset), message, value))
    return sorted(found, key=lambda one: (one.line, one.column))[:MOST_VIOLATIONS]


def _rules(policy: Policy) -> _Rules:
    """Return a policy's rules, made once for as long as that policy is in force."""
    global _latest
    latest = _latest  # another thread may replace it meanwhile
    if latest is None or latest[0] is not policy:
        attrs, given = policy.dangerous_attrs, policy.allowed_imports
        imports = {one: frozenset(names) if names else None for one, names in given.items()}
        limited = {attr.rpartition(".")[0] for attr in attrs if "." in attr}
        limited |= {module for module, names in imports.items() if names}
        rules = _Rules(
            names=policy.dangerous_names,
            attrs=attrs,
            dunders=policy.allowed_dunders,
            imports=imports,
            allowed=", ".join(policy.allowed_imports) or "nothing",
            preloaded=policy.preloaded,
            limited=frozenset(limited),
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
    elif program.rules.dunders:  # without any, all are closed
        nodes = [node for node in nodes if not _gives_nothing(program, name, node)]
    message = f"`{name}` may not be used here"
    if name in program.rules.dunders:
        message += f", but as a method in a class, and on super: `super().{name}(...)`"
    else:
        message += hint(name) or ": names with two underscores are closed"
    program.refuse(nodes, "dunder", name, message)


def _gives_nothing(program: _Program, name: str, node: ast.AST) -> bool:
    """Tell whether a use of two underscores gives nothing away.

    That is a method that the policy allows, defined in a class or called on `super()`; the main
    guard; `from __future__ import`; reading a text such as `__name__`; and a name that is mangled
    into the program's own class.
    """
    if name in program.rules.dunders:
        return node in program.class_level or _is_of_super(program, node)
    if name == "__future__":
        return isinstance(node, ast.ImportFrom) and not node.level
    if name[:2] == "__" and not name.endswith("__"):
        return isinstance(node, _MANGLED) and node in program.in_classes
    is_read = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    return (name in _READABLE and is_read) or (name == "__name__" and node in program.main_guards)


def _is_of_super(program: _Program, node: ast.AST) -> bool:
    match node:
        case (
            ast.Attribute(value=ast.Call(ast.Name("super") as name, [], []))
            | ast.Attribute(value=ast.Call(ast.Name("super") as name, [ast.Name(), ast.Name()], []))
        ):
            return "super" not in program.bound and program.is_sure(name)
    return False


def _judge_variable(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    if name in program.rules.names and name not in program.own:
        _refuse_name(program, name, nodes)


def _judge_keyword(program: _Program, name: str, nodes: Sequence[ast.keyword]) -> None:
    if name not in ORDINARY_WORDS:
        _judge_bound(program, name, nodes)


def _judge_bound(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    """Judge a name that is bound by other means than an assignment or a call."""
    if name in program.rules.names:
        _refuse_name(program, name, nodes)


def _refuse_name(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    message = f"`{name}` may not be used here{hint(name)}"
    program.refuse(nodes, "dangerous-name", name, message)


def _judge_definition(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    if name in program.rules.attrs:
        _judge_attr(program, name, [node for node in nodes if node in program.methods])


def _judge_attribute(program: _Program, attr: str, nodes: Sequence[ast.Attribute]) -> None:
    _judge_attr(program, attr, nodes)
    _judge_of_modules(program, attr, nodes)
    if attr == "format":
        _judge_formats(program, nodes)
    elif attr == "evaluate" and _HAS_FORWARD_REFS:
        _judge_evaluate(program, nodes)


def _judge_attr(program: _Program, attr: str, nodes: Sequence[ast.AST]) -> None:
    if attr in program.rules.attrs and "__" not in attr:
        message = f"`.{attr}` may not be used here{hint(attr)}"
        program.refuse(nodes, "dangerous-attribute", attr, message)


def _judge_of_modules(program: _Program, attr: str, nodes: Sequence[ast.Attribute]) -> None:
    # An object's private attributes are its own business: nothing in the text tells whose it is, so
    # the policy names each one that leads anywhere. A module's are not in its view.
    is_private = attr.startswith("_") and "__" not in attr
    rule = "private-attribute" if is_private else "dangerous-attribute"
    modules = program.modules if is_private else program.limited
    for node in nodes if modules else ():
        module = modules.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if module and (is_private or _is_closed(program, module, attr)):
            what = hint(f"{module}.{attr}")
            message = f"`.{attr}` of `{module}` may not be used here{what}"
            program.refuse([node], rule, attr, message)


def _is_closed(program: _Program, module: str, name: str) -> bool:
    """Tell whether a module does not give a name; that of a submodule it does."""
    rules = program.rules
    given = rules.imports.get(module)
    is_missing = given is not None and name not in given and "__" not in name
    return (
        is_missing and f"{module}.{name}" not in rules.imports
    ) or f"{module}.{name}" in rules.attrs


def _judge_formats(program: _Program, nodes: Sequence[ast.Attribute]) -> None:
    message = (
        "`.format` works here on text in quotes, with no dot or bracket in its fields; "
        "an f-string does the same"
    )
    templates = Templates(program.nodes, program.bound, program.is_sure)
    unsure = templates.unsure([node.value for node in nodes])
    program.refuse([one for one in nodes if one.value in unsure], "format", "format", message)


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
    if attr in _JUDGED_BY_CALL:
        message = f"`{attr}` may not be used in a pattern"
        program.refuse(nodes, "dangerous-attribute", attr, message)


def _judge_class_patterns(program: _Program, nodes: Sequence[ast.MatchClass]) -> None:
    for node in nodes:
        if node.patterns:
            name = node.cls.id if isinstance(node.cls, ast.Name) else ""
            is_builtin = name in _SELF_MATCHING and program.is_sure(node.cls)
            if not is_builtin or name in program.bound:
                message = "name the attributes in this pattern, as in `case Point(x=a, y=b)`"
                program.refuse([node], "positional-pattern", name, message)


def _judge_imports(program: _Program, nodes: Sequence[ast.Import]) -> None:
    for node in nodes:
        for alias in node.names:
            _judge_module(program, normalised(alias.name), alias)


def _judge_module(program: _Program, module: str, node: ast.AST) -> None:
    if module not in program.rules.imports:
        what = hint(module, module.partition(".")[0])
        message = (
            f"`{module}` may not be imported here{what or f'; allowed: {program.rules.allowed}'}"
        )
        program.refuse([node], "import", module, message)


def _judge_imports_from(program: _Program, nodes: Sequence[ast.ImportFrom]) -> None:
    rules = program.rules
    for node in nodes:
        module = normalised(node.module or "")
        if node.level:
            module = "." * node.level + module
            message = f"`{module}` may not be imported here: a program is in no package"
            program.refuse([node], "relative-import", module, message)
        elif module != "__future__":
            _judge_module(program, module, node)
        for alias in node.names:
            name = normalised(alias.name)
            is_given = name in (rules.imports.get(module) or ())
            is_dangerous = name in rules.attrs or (name in rules.names and not is_given)
            is_dangerous |= name.startswith("_")
            if is_dangerous or (name != "*" and _is_closed(program, module, name)):
                what = hint(f"{module}.{name}", name)
                message = f"`{name}` may not be imported from `{module}`{what}"
                program.refuse([alias], "dangerous-import", name, message)


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
    (ast.Name, "id"): _judge_variable,
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
