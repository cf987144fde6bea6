"""Finds what a program must not hold, before any of it runs. Parses it, never compiles it.

What is refused comes from the policy; what is here is how Python can be made to reach it. The tree
is closed: kinds and fields of nodes that `sandbox/check/node_kinds.txt` does not list are refused.

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
    format, positional-pattern
                         ways to reach an attribute by text made at run time
    blocked-word         what the policy looks for in the text, escapes decoded
"""

import ast
import gc
import heapq
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, NamedTuple

from sandbox.check.hints import hint
from sandbox.check.literals import hidden_words, joined_texts, terms_of_sum, text_of
from sandbox.check.node_kinds import KINDS, by_identifier, by_kind, walk
from sandbox.check.scopes import DEFINITIONS, ORDINARY_WORDS, Binding, Scopes
from sandbox.check.source import Lines, Unparsed, decode_escapes, normalised, parse
from sandbox.policy.loader import Policy
from sandbox.policy.words import PARSER as REGEX_PARSER

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
# Options of `dataclass` that leave the order of its fields what positions read.
_RECORD_OPTIONS = frozenset(
    ("eq", "frozen", "init", "kw_only", "order", "repr", "slots", "unsafe_hash", "weakref_slot")
)
# The beginning of a field that reads an attribute or an item, up to a text's end.
_CUT_FIELD = re.compile(r"(?<!\{)\{(?:\{\{)*\w*[.\[][^{}:!]*\Z")


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


class _Lookups(NamedTuple):
    """What a policy says, in forms that are quick to look up."""

    limited: frozenset[str]  # modules of which some public names are closed
    hidden: frozenset[str]  # attributes that are no ordinary words
    words: Sequence[tuple[re.Pattern[str], str]]  # with a text that every match holds


class _Program:
    """A program's nodes, and what was found in them."""

    def __init__(self, tree: ast.Module, policy: Policy) -> None:
        self.policy = policy
        self.nodes = by_kind(walk(tree))
        # line, offset in UTF-8 bytes, rule, message, value
        self.found: set[tuple[int, int, str, str, str]] = set()

    @cached_property
    def scopes(self) -> Scopes:
        return Scopes(self.nodes)

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
    def modules(self) -> dict[str, str]:
        """The names that hold modules -> their modules."""
        preloaded, bound = self.policy.preloaded, self.scopes.bound
        absent = {name: preloaded[name] for name in preloaded if name not in bound}
        imported, allowed = self.scopes.imported, self.policy.allowed_imports
        return absent | {name: imported[name] for name in imported if imported[name] in allowed}

    @cached_property
    def limited(self) -> dict[str, str]:
        """The same for modules of which some public names are closed."""
        limited = _lookups(self.policy).limited
        named = {one.name for node in self.nodes.get(ast.Import, ()) for one in node.names}
        if limited.isdisjoint([*named, *self.policy.preloaded.values()]):
            return {}  # without what finds all bindings: a tenth of the time of a check
        return {name: module for name, module in self.modules.items() if module in limited}

    @cached_property
    def records(self) -> set[str]:
        """The names that are one class of the program each, whose positions name open attributes.

        A dataclass judges its fields when it is made; the others' are looked for in the text. A
        body's own `__match_args__` goes before the fields. What is matched may be anything: it says
        itself what it is an instance of, and may hand out another object's attributes.
        """
        match_args = self.scopes.bound.get("__match_args__", ())
        for one in match_args:
            if not (
                isinstance(one.value, ast.Tuple) and self.are_open(map(text_of, one.value.elts))
            ):
                return set()
        assigned = {one.node for one in match_args}
        return {name for name in self.scopes.bound if _is_record(self, name, assigned)}

    def are_open(self, names: Iterable[str | None]) -> bool:
        """Tell whether all of these are names that a program may write after a dot."""
        closed = self.policy.dangerous_attrs
        return all(name and name[:2] != "__" and name not in closed for name in names)

    def refuse(self, nodes: Iterable[ast.AST], rule: str, value: str, message: str) -> None:
        """Note a violation at each node; at the name after the dot if it is an attribute."""
        for node in nodes:
            line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
            if isinstance(node, ast.Attribute):
                line = node.end_lineno or line
                offset = max((node.end_col_offset or 0) - len(node.attr.encode()), 0)
            self.found.add((line, offset, rule, message, value))


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
        return _check(source, tree, policy), tree
    finally:
        if is_collecting:
            gc.enable()


def _check(source: str, tree: ast.Module | Unparsed, policy: Policy) -> list[Violation]:
    lines = Lines(source)
    found = list(_characters(source, lines))
    if isinstance(tree, Unparsed):
        return found or [Violation("syntax", tree.line, tree.column, tree.message, "")]
    program = _Program(tree, policy)
    _judge(program)
    found += _words(source, lines, policy)
    first = heapq.nsmallest(MOST_VIOLATIONS, program.found) if program.found else ()
    for line, offset, rule, message, value in first:
        found.append(Violation(rule, *lines.of_node(line, offset), message, value))
    return sorted(found, key=lambda one: (one.line, one.column))[:MOST_VIOLATIONS]


@lru_cache(maxsize=4)  # of the policies in force and the ones before them
def _lookups(policy: Policy) -> _Lookups:
    attrs = policy.dangerous_attrs
    limited = {attr.rpartition(".")[0] for attr in attrs if "." in attr}
    limited |= {module for module, names in policy.allowed_imports.items() if names}
    hidden = {attr for attr in attrs if "_" in attr[1:] and "." not in attr}
    words = [(word, _certain_text(word)) for word in policy.blocked_words]
    return _Lookups(frozenset(limited), frozenset(hidden), words)


def _certain_text(pattern: re.Pattern[str]) -> str:
    """Return the longest text that surely is in all that a pattern matches; perhaps none.

    To look for a text is a hundred times as fast as to look for a match.
    """
    runs = [""]
    for operation, argument in REGEX_PARSER.parse(pattern.pattern, pattern.flags):
        if operation is REGEX_PARSER.LITERAL:
            runs[-1] += chr(argument)
        else:
            runs.append("")
    return "" if pattern.flags & re.IGNORECASE else max(runs, key=len)


def _characters(source: str, lines: Lines) -> Iterator[Violation]:
    for match in islice(_FORBIDDEN_CHARACTER.finditer(source), MOST_VIOLATIONS):
        code = f"U+{ord(match[0]):04X}"
        message = f"the character {code} may not stand in a program: it cannot be seen"
        yield Violation("forbidden-character", *lines.at(match.start()), message, code)


def _words(source: str, lines: Lines, policy: Policy) -> Iterator[Violation]:
    decoded = decode_escapes(source)
    for pattern, certain in _lookups(policy).words:
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
        for field, role in known.identifiers:
            judge = _JUDGES_OF_IDENTIFIERS.get(role)
            for identifier, holders in by_identifier(nodes, field).items():
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
    elif program.policy.allowed_dunders:  # without any, all are closed
        nodes = [node for node in nodes if not _gives_nothing(program, name, node)]
    message = f"`{name}` may not be used here"
    if name in program.policy.allowed_dunders:
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
    if name in program.policy.allowed_dunders:
        return node in program.scopes.class_level or _is_of_super(program, node)
    if name == "__future__":
        return isinstance(node, ast.ImportFrom) and not node.level
    if name[:2] == "__" and not name.endswith("__"):
        return isinstance(node, _MANGLED) and node in program.scopes.in_classes
    is_read = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    return (name in _READABLE and is_read) or (name == "__name__" and node in program.main_guards)


def _is_of_super(program: _Program, node: ast.AST) -> bool:
    match node:
        case (
            ast.Attribute(value=ast.Call(ast.Name("super") as name, [], []))
            | ast.Attribute(value=ast.Call(ast.Name("super") as name, [ast.Name(), ast.Name()], []))
        ):
            return "super" not in program.scopes.bound and program.scopes.is_sure(name)
    return False


def _judge_variable(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    if name in program.policy.dangerous_names and name not in program.scopes.own:
        _judge_bound(program, name, nodes)


def _judge_keyword(program: _Program, name: str, nodes: Sequence[ast.keyword]) -> None:
    if name not in ORDINARY_WORDS:
        _judge_bound(program, name, nodes)


def _judge_bound(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    """Judge a name that is bound by other means than an assignment or a call."""
    if name in program.policy.dangerous_names:
        message = f"`{name}` may not be used here{hint(name)}"
        program.refuse(nodes, "dangerous-name", name, message)


def _judge_definition(program: _Program, name: str, nodes: Sequence[ast.AST]) -> None:
    if name in program.policy.dangerous_attrs:
        _judge_attr(program, name, [node for node in nodes if node in program.scopes.methods])


def _judge_attribute(program: _Program, attr: str, nodes: Sequence[ast.Attribute]) -> None:
    _judge_attr(program, attr, nodes)
    _judge_of_modules(program, attr, nodes)
    if attr == "format":
        _judge_fields(program)


def _judge_attr(program: _Program, attr: str, nodes: Sequence[ast.AST]) -> None:
    if attr in program.policy.dangerous_attrs and "__" not in attr:
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
        if module and (is_private or _is_closed(program.policy, module, attr)):
            what = hint(f"{module}.{attr}")
            message = f"`.{attr}` of `{module}` may not be used here{what}"
            program.refuse([node], rule, attr, message)


def _is_closed(policy: Policy, module: str, name: str) -> bool:
    """Tell whether a module does not give a name; that of a submodule it does."""
    given, full = policy.allowed_imports.get(module), f"{module}.{name}"
    is_missing = given is not None and name not in given and "__" not in name
    return full in policy.dangerous_attrs or (is_missing and full not in policy.allowed_imports)


def _judge_fields(program: _Program) -> None:
    """Refuse fields of `str.format` that read an attribute and whose text is put together.

    A guest's `format` reads none that is closed (`stand_ins`); this tells of it before.
    """
    message = "a field that reads an attribute stands in one text: `'{0.real}'.format(x)`"
    constants = program.nodes.get(ast.Constant, ())
    found = [one for one in constants if _CUT_FIELD.search(text_of(one) or "")]
    program.refuse(found, "format", "format", message)


def _judge_class_patterns(program: _Program, nodes: Sequence[ast.MatchClass]) -> None:
    for node in nodes:
        if node.patterns:
            name = node.cls.id if isinstance(node.cls, ast.Name) else ""
            is_builtin = name in _SELF_MATCHING and name not in program.scopes.bound
            is_known = is_builtin or name in program.records
            if not is_known or not program.scopes.is_sure(node.cls):
                message = "name the attributes in this pattern, as in `case Point(x=a, y=b)`"
                program.refuse([node], "positional-pattern", name, message)


def _is_record(program: _Program, name: str, match_args: set[ast.AST]) -> bool:
    match program.scopes.bound[name]:
        case [Binding(ast.ClassDef(keywords=[], decorator_list=[decorator]), None)]:
            match decorator:
                case ast.Call(func, [], options) if _RECORD_OPTIONS.issuperset(
                    one.arg for one in options
                ):
                    return _is_from(program, func, "dataclasses", "dataclass")
            return _is_from(program, decorator, "dataclasses", "dataclass")
        case [Binding(ast.ClassDef(keywords=[], decorator_list=[], bases=[]) as node, None)]:
            return not match_args.isdisjoint(node.body)
        case [Binding(ast.ClassDef(keywords=[], decorator_list=[], bases=[base]) as node, None)]:
            if not _is_from(program, base, "typing", "NamedTuple"):
                return False
            fields = [one.target for one in walk(node) if isinstance(one, ast.AnnAssign)]
            return program.are_open(getattr(one, "id", None) for one in fields)
    return False


def _is_from(program: _Program, node: ast.expr, module: str, name: str) -> bool:
    """Tell whether an expression is surely what a module gives by a name."""
    imported = program.scopes.imported
    match node:
        case ast.Name(own):
            return imported.get(own) == f"{module}.{name}" and program.scopes.is_sure(node)
        case ast.Attribute(ast.Name(own) as holder, attr) if attr == name:
            return imported.get(own) == module and program.scopes.is_sure(holder)
    return False


def _judge_imports(program: _Program, nodes: Sequence[ast.Import]) -> None:
    for node in nodes:
        for alias in node.names:
            _judge_module(program, normalised(alias.name), alias)


def _judge_module(program: _Program, module: str, node: ast.AST) -> None:
    allowed = program.policy.allowed_imports
    if module not in allowed:
        package = module.partition(".")[0]
        what = hint(module, *[package] * (package not in allowed))
        what = what or f"; allowed: {', '.join(allowed) or 'nothing'}"
        message = f"`{module}` may not be imported here{what}"
        program.refuse([node], "import", module, message)


def _judge_imports_from(program: _Program, nodes: Sequence[ast.ImportFrom]) -> None:
    policy = program.policy
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
            is_given = name in (policy.allowed_imports.get(module) or ())
            is_dangerous = name in policy.dangerous_attrs or name.startswith("_")
            is_dangerous |= name in policy.dangerous_names and not is_given
            if is_dangerous or (name != "*" and _is_closed(policy, module, name)):
                what = hint(f"{module}.{name}", name)
                message = f"`{name}` may not be imported from `{module}`{what}"
                program.refuse([alias], "dangerous-import", name, message)


def _judge_text(program: _Program, text: str, node: ast.AST) -> None:
    for word in hidden_words(text, _lookups(program.policy).hidden):
        message = f"`{word}` may not stand in a program, not even in text"
        program.refuse([node], "dangerous-text", word, message)


def _judge_constants(program: _Program, nodes: Sequence[ast.Constant]) -> None:
    for node in nodes:
        if text := text_of(node):
            _judge_text(program, text, node)


def _judge_operations(program: _Program, nodes: Sequence[ast.BinOp]) -> None:
    if not any(map(text_of, program.nodes.get(ast.Constant, ()))):
        return  # numbers alone, as in nearly all programs
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


# What an identifier is -> what judges it and the nodes that hold it.
_JUDGES_OF_IDENTIFIERS: dict[str, Callable[[_Program, str, Any], None]] = {
    "variable": _judge_variable,
    "parameter": _judge_variable,
    "keyword": _judge_keyword,
    "attribute": _judge_attribute,
    "pattern": _judge_attr,
    "definition": _judge_definition,
    "bound": _judge_bound,
    "alias": _judge_bound,
    "type_parameter": _judge_bound,
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
if sys.version_info >= (3, 14):
    _JUDGES[ast.TemplateStr] = _judge_joined_strings
