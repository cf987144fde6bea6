"""Nothing that a program is given gets, sets or runs by text what no text of its own could.

Two searches of the running Python, so that a new one adds no way unseen: of the source of the
allowed modules for functions that work by text, each of which needs a verdict below, and of the
objects that attributes lead to from all that a program is given. Functions written in C are seen
by the second alone.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator

import pytest

from sandbox.policy.loader import Policy
from sandbox.sandbox import Sandbox

NOT_GIVEN = "no view has it, or the checker refuses its name"
KEPT = "stand_ins.py keeps it in bounds"
FIXED = "the names are its own, or those of the class or object that the program makes of it"
TRUTH = "what it reads is compared or shown, and handed to nobody"
VERDICTS = {
    "abc": {NOT_GIVEN: "update_abstractmethods"},
    "collections": {
        NOT_GIVEN: "UserDict.__copy__ UserList.__copy__",
        FIXED: "OrderedDict.__reduce__ OrderedDict.__sizeof__ namedtuple",  # judges its names
    },
    "collections.abc": {FIXED: "_check_methods", NOT_GIVEN: "_get_framelocalsproxy"},
    "contextlib": {NOT_GIVEN: "_RedirectStream.__enter__ _RedirectStream.__exit__"},
    "copy": {KEPT: "_reconstruct"},
    "dataclasses": {
        KEPT: (
            "_FuncBuilder.add_fns_to_class _add_slots _asdict_inner _astuple_inner _create_fn"
            " _dataclass_getstate _dataclass_setstate _get_field _process_class"
            " _set_new_attribute fields replace"
        ),
        FIXED: "_get_slots _is_type _update_func_cell_for__class__",
        NOT_GIVEN: "_replace make_dataclass make_dataclass.annotate_method.get_any",
    },
    "enum": {
        KEPT: "EnumType._add_member_ _proto_member.__set_name__ property.__get__",
        FIXED: (
            "Enum.__new__ EnumType.__delattr__ EnumType.__new__ EnumType.__setattr__"
            " EnumType._create_ EnumType._find_data_repr_ EnumType._find_data_type_"
            " EnumType._find_new_"
        ),
        TRUTH: "Enum.__dir__ _dataclass_repr",
        NOT_GIVEN: (
            "EnumType._convert_ _old_convert_ _simple_enum.convert_class _test_simple_enum"
            " global_enum"
        ),
    },
    "functools": {
        KEPT: "cached_property.__get__ update_wrapper",
        FIXED: "partial.__reduce__ partial.__setstate__ total_ordering",
        NOT_GIVEN: "singledispatch.register _singledispatchmethod_get.__getattr__",
    },
    "hashlib": {FIXED: "__get_openssl_constructor"},
    "operator": {NOT_GIVEN: "attrgetter.__init__.func methodcaller.__call__"},
    "random": {FIXED: "Random.__init_subclass__"},
    "string": {
        NOT_GIVEN: "Formatter.get_field",
        FIXED: "Template.__init_subclass__ Template._compile_pattern",
    },
    "typing": {
        KEPT: "ForwardRef.__init__ ForwardRef._evaluate _GenericAlias.__reduce__",
        FIXED: (
            "Generic.__init_subclass__ NamedTupleMeta.__new__ Protocol.__init_subclass__"
            " _TypedDictMeta.__new__ _caller _generic_init_subclass"
            " _get_protocol_attrs _no_init_or_replace_init __getattr__"
            " _BaseGenericAlias.__setattr__"
        ),
        TRUTH: (
            "Protocol.__init_subclass__._proto_hook _ProtocolMeta.__init__"
            " _ProtocolMeta.__instancecheck__ _ProtocolMeta.__subclasscheck__"
            " _is_callable_members_only _proto_hook"
        ),
        NOT_GIVEN: (
            "_BaseGenericAlias.__getattr__ _DeprecatedType.__getattribute__"
            " get_type_hints no_type_check runtime_checkable evaluate_forward_ref _eval_type"
            " _LazyAnnotationLib.__getattr__"
        ),
    },
}


def works_by_text(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name("getattr" | "setattr" | "delattr"), args=[_, name, *_]):
            return not isinstance(name, ast.Constant)
        case ast.Call(func=ast.Name("eval" | "exec" | "compile" | "vars" | "globals" | "locals")):
            return True
        case ast.Call(func=ast.Name("attrgetter" | "methodcaller" | "import_module")):
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in ("__getattribute__", "__setattr__", "__delattr__", "evaluate")
        case ast.Attribute(attr="__dict__" | "f_globals" | "f_locals" | "modules"):
            return True
    return False


def functions(tree: ast.AST, prefix: str = "") -> Iterator[str]:
    """The functions and classes in which something works by text."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            if prefix and works_by_text(node):
                yield prefix[:-1]
            yield from functions(node, prefix)


def test_every_function_that_works_by_text_has_a_verdict(policy: Policy) -> None:
    unseen = set()
    for name in policy.allowed_imports.keys() - {"sys"}:
        try:
            source = inspect.getsource(importlib.import_module(name))
        except (OSError, TypeError):  # written in C
            continue
        judged = {one for names in VERDICTS.get(name, {}).values() for one in names.split()}
        unseen |= {f"{name}: {one}" for one in functions(ast.parse(source)) if one not in judged}
    assert not unseen


def test_the_search_sees_what_works_by_text() -> None:
    seen = functions(ast.parse("class A:\n    def f(self, n): return getattr(self, n), self.x"))
    assert list(seen) == ["A.f"]
    assert list(functions(ast.parse("def f(x): return getattr(x, 'y')"))) == []


WALK = """
import builtins, sys, types
views = sys.modules["sandbox.fork_server.module_views"].module_views(GIVEN, CLOSED)
def generator(): yield
async def coroutine(): pass
async def both(): yield
try: 1 / 0
except ZeroDivisionError as error: raised = error
class Own: slot = property(len)
made = [generator(), both(), generator, Own, Own(), raised, raised.__traceback__, len, [].append]
made += [list[int], type(list[int]), lambda: 0, "", b"", 1, 1.0, 1j, (), [], {}, set(), None, ...]
given = {name for name in dir(builtins) if "__" not in name} - REMOVED
made += [getattr(builtins, name) for name in given]
bad_kinds = types.FrameType, types.CodeType
bad = {id(getattr(builtins, name)): name for name in REMOVED if hasattr(builtins, name)}
waiting = [(name, view) for name, view in views.items()] + [(repr(one)[:30], one) for one in made]
seen, found, kept = set(), [], []
for path, thing in waiting:
    for name in dir(thing):
        if "__" in name or name in CLOSED:
            continue
        try:
            value = getattr(thing, name)
        except BaseException:
            continue
        here = path + "." + name
        is_module = isinstance(value, types.ModuleType) and type(value) is not type(views["math"])
        if is_module or isinstance(value, bad_kinds) or id(value) in bad:
            found.append(here)
        elif id(value) not in seen and len(waiting) < 40000:
            seen.add(id(value))
            kept.append(value)
            if here.count(".") < 7:
                waiting.append((here, value))
print(len(waiting) > 3000)
found
"""


def test_attributes_lead_to_no_module_frame_code_or_removed_builtin(
    policy: Policy, sandbox: Sandbox
) -> None:
    closed = {attr for attr in policy.dangerous_attrs if "." not in attr}
    removed = policy.dangerous_names - {"builtins"}
    question = f"GIVEN = {dict(policy.allowed_imports)!r}\nCLOSED = {closed!r}\n"
    outcome = sandbox.run(f"{question}REMOVED = {set(removed)!r}\n{WALK}", unchecked=True)
    assert (outcome.output, outcome.error) == ("True\n[]\n", "")


def test_without_the_lists_the_walk_finds_the_way(policy: Policy, sandbox: Sandbox) -> None:
    question = f"GIVEN = {dict(policy.allowed_imports)!r}\nCLOSED = set()\n"
    outcome = sandbox.run(f"{question}REMOVED = {{'open'}}\n{WALK}", unchecked=True)
    assert "gi_frame" in outcome.output


U = "u = chr(95) * 2\n"
GENERATOR = U + "def g(): yield\ncode = 'gi_' + ''.join(['co', 'de'])\n"
# A field that is compared as `(self.x, print("REACHED"),)`.
FIELD = U + (
    "from dataclasses import dataclass, field, fields\nname = 'x,print(\"REACHED\")'\n"
    "def make(name):\n"
    "    members = {name: field(init=False, repr=False), u + 'annotations' + u: {name: int}}\n"
    "    one = dataclass(init=False)(type('C', (), members))()\n    one.x = 1\n    one == one\n"
)
# Each would print REACHED where a library function did by text what the checker refuses in text.
BY_TEXT = {
    "a field is executed": FIELD + "make(name)",
    "a field of a lying text is executed": FIELD
    + "S = type('S', (str,), {'isidentifier': lambda s: True, 'startswith': lambda *a: False})\n"
    + "make(S(name))",
    "a field is renamed, then executed": FIELD
    + "@dataclass(init=False)\nclass A: x: int = field(init=False, repr=False)\n"
    + "fields(A)[0].name = name\n"
    + "@dataclass(init=False)\nclass B(A): pass\nb = B()\nb.x = 1\nb == b",
    "a field names a code object": GENERATOR
    + "from dataclasses import dataclass\n"
    + "dataclass(type('C', (), {u + 'annotations' + u: {code: int}}))\nprint('REACHED')",
    "fields of no dataclass are read": GENERATOR
    + "import dataclasses\n@dataclasses.dataclass\nclass P: x: int\n"
    + "class F: init = repr = compare = True\nF.name = code\n"
    + "F._field_type = dataclasses.fields(P)[0]._field_type\n"
    + "B = type('B', (), {u + 'dataclass_fields' + u: {'x': F()}})\n"
    + "from typing import List\nclass G(B, type(List[int]), _root=True): pass\n"
    + "print('REACHED', dataclasses.astuple(G(g(), (), name='G')))",
    "bases that lie are read": GENERATOR
    + "from dataclasses import dataclass\n"
    + "M = type('M', (type,), {u + 'mro' + u: property(lambda c: (c, c))})\n"
    + "dataclass(M('C', (), {}))\nprint('REACHED')",
    "the positions of a class that a metaclass makes of another": U
    + "from dataclasses import dataclass\nmade = []\n"
    + "E = type('E', (), {u + 'match_args' + u: (u + 'class' + u,)})\n"
    + "class M(type):\n    def __new__(m, *given):\n"
    + "        return E if made else made.append(1) or super().__new__(m, *given)\n"
    + "class Q(metaclass=M): pass\n@dataclass\nclass P(Q): pass\n"
    + "match P():\n    case P(f): print('REACHED', f)",
    "a copy is another object": U
    + "import copy\nR = type('R', (), {u + 'reduce_ex' + u: lambda s, p: "
    + "(lambda: json.JSONDecoder, (), (None, {'x': 1}))})\ncopy.copy(R())\nprint('REACHED')",
    "a copy of a method is found by the name of its function": GENERATOR
    + "import copy, functools\nfrom typing import List\n"
    + "f = functools.wraps(type(u + 'getattr' + u, (), {}))(lambda s: s)\n"
    + "alias = type(List[int])(g(), (), name='x')\n"
    + "way = copy.copy(type(alias.copy_with)(f, alias))\nprint('REACHED', way(code))",
    "a copy of slots that are another object's attributes": GENERATOR
    + "import copy\nfrom typing import List\nout = []\n"
    + "S = type('S', (type(List[int]),), {u + 'slots' + u: (code,), u + 'copy' + u: None, "
    + "u + 'setstate' + u: lambda s, state: out.append(state)}, _root=True)\n"
    + "copy.copy(S(g(), (), name='x'))\nprint('REACHED', out)",
    "an enum class with a metaclass that sees what is set": (
        "from enum import Enum\nout = []\n"
        "M = type('M', (type(Enum),), {chr(95) * 2 + 'setattr' + chr(95) * 2: "
        "lambda c, n, v: out.append(v)})\nclass B: x = property()\n"
        "class C(B, Enum, metaclass=M): x = 1\nprint('REACHED', out)"
    ),
    "the namespace of a class by lru_cache": (
        "import functools\nfrom enum import Enum\nprint('REACHED', functools.lru_cache(Enum).name)"
    ),
    "the namespace of a class by cached_property": (
        "import functools\nfrom enum import Enum\n"
        "T = type('T', (), {'name': functools.cached_property(lambda s: 0)})\n"
        "type(Enum).way = T.name\nprint('REACHED', Enum.way)"
    ),
    **{
        f"a field of a template: {field}": GENERATOR
        + f"field = {field!r}.replace('CODE', code).replace('U', u)\n{call}\nprint('REACHED', text)"
        for field, call in (
            ("{0.CODE!s}", "text = field.format(g())"),
            ("{}{x.CODE}", "text = str.format(field, 1, x=g())"),
            ("{{{0.CODE}", "[text] = map(field.format, [g()])"),
            (
                "{0:{1.CODE}}",
                "class F:\n    def __format__(self, spec): return spec\n"
                "text = field.format(F(), g())",
            ),
            ("{0[0].CODE!r}", "text = field.format([g()])"),
            ("{0.UglobalsU}", "text = field.format(json.dumps)"),
            ("{0.UclassU.UmroU}", "text = field.format(1)"),
            (
                "{0.CODE}",
                "class S(str):\n    def __contains__(self, x): return False\n"
                "text = S(field).format(g())",
            ),
        )
    },
    "a view by its class": "type(math).pi = 4\nprint('REACHED')",
}


@pytest.mark.parametrize("source", BY_TEXT.values(), ids=BY_TEXT)
def test_a_library_function_does_no_more_by_text(sandbox: Sandbox, source: str) -> None:
    outcome = sandbox.run(source)
    assert outcome.kind == "error", outcome
    assert "REACHED" not in outcome.output
