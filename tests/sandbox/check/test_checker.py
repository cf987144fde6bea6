"""What the checker refuses and what it lets pass, rule by rule, with places and messages."""

import ast
import dataclasses
import gc
import re
import subprocess
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from sandbox.check.checker import MOST_VIOLATIONS, Violation, check
from sandbox.check.node_kinds import KINDS
from sandbox.fork_server import guest
from sandbox.policy.loader import Policy, load_policy
from tests.conftest import ROOT

NEW_SYNTAX = {
    (3, 12): [
        ("type X = __x", "dunder"),
        ("def f[T: __x](x): pass", "dunder"),
        ("def f[eval](x): pass", "dangerous-name"),
        ("class A[*__x]: pass", "dunder"),
        ("class A[**P]: P.__bound__", "dunder"),
        ("type X[dir] = dir", "dangerous-name"),
        ("class A:\n    def f[T: super().__init__](self): pass", "dunder"),
        ("class A:\n    class B[T: super().__init__]: pass", "dunder"),
    ],
    (3, 13): [("def f[T = __x](x): pass", "dunder")],
    (3, 14): [
        ("t'{__x}'", "dunder"),
        ("t'__globals__'", "dangerous-text"),
        ("t'{x:{__x}}'", "dunder"),
    ],
    (3, 15): [
        ("lazy import json", "unknown-syntax"),
        ("lazy from json import x", "unknown-syntax"),
    ],
}


def rules(source: str, policy: Policy) -> list[str]:
    return [violation.rule for violation in check(source, policy)]


DATACLASS = "from dataclasses import dataclass\n"
# Rule, program with ^ before the character that the violation points at, offending value.
REFUSED = [
    ("import", "import ^os", "os"),
    ("import", "import math, ^os as o", "os"),
    ("import", "import ^json.tool as t", "json.tool"),
    ("import", "^from os import path", "os"),
    ("import", "import ^ｏｓ", "os"),
    ("relative-import", "^from . import x", "."),
    ("relative-import", "^from ..json import tool as x", "..json"),
    ("dangerous-import", "from random import ^_os", "_os"),
    ("dangerous-import", "from random import ^_inst as x", "_inst"),
    ("dangerous-import", "from time import time, ^sleep as s", "sleep"),
    ("dangerous-import", "from operator import add, ^attrgetter as a", "attrgetter"),
    ("dangerous-import", "from statistics import ^itemgetter", "itemgetter"),
    ("dangerous-name", "x = ^eval('1')", "eval"),
    ("dangerous-name", "^ｅｖａｌ('1')", "eval"),
    ("dangerous-name", "def f(): return ^open", "open"),
    ("dangerous-name", "def f():\n    ^global eval, x", "eval"),
    ("dangerous-name", "def f():\n    def g():\n        ^nonlocal eval", "eval"),
    ("dangerous-name", "import ^math as eval", "eval"),
    ("dangerous-name", "try: pass\n^except Exception as eval: pass", "eval"),
    ("dangerous-name", "match x:\n    case ^eval: pass", "eval"),
    ("dangerous-name", "match x:\n    case [^*eval]: pass", "eval"),
    ("dangerous-name", "match x:\n    case ^{**eval}: pass", "eval"),
    ("dangerous-name", "^class eval: pass", "eval"),
    ("dangerous-name", "with x as ^eval: pass", "eval"),
    ("dangerous-name", "del ^eval", "eval"),
    ("dunder", "^__x", "__x"),
    ("dunder", "x.^__class__", "__class__"),
    ("dunder", "x.^_Printer__lines", "_Printer__lines"),
    ("dunder", "x.\\\n  ^__class__", "__class__"),
    ("dunder", "^_＿x", "__x"),
    ("dunder", "^def __x(): pass", "__x"),
    ("dunder", "^async def __x(): pass", "__x"),
    ("dunder", "^class __x: pass", "__x"),
    ("dunder", "class A:\n    ^def __getattribute__(self): pass", "__getattribute__"),
    ("dunder", "class A:\n    ^__getattribute__ = f", "__getattribute__"),
    ("dunder", "^def __init__(self): pass", "__init__"),
    ("dunder", "^__init__ = 1", "__init__"),
    ("dunder", "class A:\n    x.^__init__ = f", "__init__"),
    ("dunder", "class A:\n    y = x.^__init__", "__init__"),
    ("dunder", "class A:\n    y = [^__init__]", "__init__"),
    ("dunder", "x.^__init__()", "__init__"),
    ("dunder", "class A(B):\n    def f(self): B.^__init__(self)", "__init__"),
    ("dunder", "class super: pass\nsuper().^__init__()", "__init__"),
    ("dunder", "from math import *\nsuper().^__init__()", "__init__"),
    ("dunder", "class A:\n    super(A, x).^__init__()", "__init__"),
    ("dunder", "super(A, x()).^__init__()", "__init__"),
    ("dunder", "x.^__name__ = 1", "__name__"),
    ("dunder", "^__name__", "__name__"),
    ("dunder", "^__name__ != '__main__'", "__name__"),
    ("dunder", "^__name__ == 'main'", "__name__"),
    ("dunder", "^__name__ == '__main__' == x", "__name__"),
    ("dunder", "^__doc__ == '__main__'", "__doc__"),
    ("dunder", "match x:\n    case ^object(__name__=n): pass", "__name__"),
    ("dunder", "x.^__y", "__y"),
    ("dunder", "class A(x.^__y): pass", "__y"),
    ("dunder", "class A:\n    x.^_B__y", "_B__y"),
    ("dunder", "class A:\n    f(^__x=1)", "__x"),
    ("dunder", "lambda ^__x: 0", "__x"),
    ("dunder", "def f(a, ^__x, /): pass", "__x"),
    ("dunder", "def f(*^__x): pass", "__x"),
    ("dunder", "def f(*, ^__x): pass", "__x"),
    ("dunder", "def f(**^__x): pass", "__x"),
    ("dunder", "dict(^__x=1)", "__x"),
    ("dunder", "class A(^__x=1): pass", "__x"),
    ("dunder", "import ^math as __x", "__x"),
    ("dunder", "^global __x", "__x"),
    ("dunder", "def f():\n    ^nonlocal __x", "__x"),
    ("dunder", "try: pass\n^except Exception as __x: pass", "__x"),
    ("dunder", "try: pass\n^except* Exception as __x: pass", "__x"),
    ("dunder", "match x:\n    case ^__x: pass", "__x"),
    ("dunder", "match x:\n    case [^*__x]: pass", "__x"),
    ("dunder", "match x:\n    case ^{**__x}: pass", "__x"),
    ("dunder", "match x:\n    case ^object(__x=1): pass", "__x"),
    ("dunder", "é.^__x", "__x"),
    ("dangerous-attribute", "x.^format_map", "format_map"),
    ("dangerous-attribute", "import time\ntime.^sleep(1)", "sleep"),
    ("dangerous-attribute", "import sys as s\ns.^modules", "modules"),
    ("dangerous-attribute", "g.^gi_frame = 1", "gi_frame"),
    ("dangerous-attribute", "def f(self): self.^_add_member_", "_add_member_"),
    ("dangerous-attribute", "class A:\n    ^def mro(cls): pass", "mro"),
    ("dangerous-attribute", "match g:\n    case ^object(gi_frame=f): pass", "gi_frame"),
    ("dangerous-attribute", "import statistics as s\ns.^itemgetter", "itemgetter"),
    ("private-attribute", "import statistics as s\ns.^_ss", "_ss"),
    ("private-attribute", "random.^_inst", "_inst"),
    ("dunder", "x.^__", "__"),
    ("dangerous-text", "^'__class__'", "__class__"),
    ("dangerous-text", "x = ^'see the __globals__ of it'", "__globals__"),
    ("dangerous-text", "^b'__class__'", "__class__"),
    ("dangerous-text", "^'x.gi_frame'", "gi_frame"),
    ("dangerous-text", r"^'\x67i\137fr\u0061m\N{LATIN SMALL LETTER E}'", "gi_frame"),
    ("dangerous-text", "^'ｇｉ_ｆｒａｍｅ'", "gi_frame"),
    ("dangerous-text", "^'gi_' 'frame'", "gi_frame"),
    ("dangerous-text", "^'gi_' + 'frame' + x", "gi_frame"),
    ("dangerous-text", "^x + 'gi_' + ('fra' + 'me')", "gi_frame"),
    ("dangerous-text", "^b'gi_' + b'frame'", "gi_frame"),
    ("dangerous-text", "^f\"gi_{'frame'}\"", "gi_frame"),
    ("dangerous-text", "^'_' + '_dict__'", "__dict__"),
    ("format", "(^'{0.' + x).format(1)", "format"),
    ("format", "t = ^'{a[b].c'\nt += x\nt.format(a=1)", "format"),
    ("format", "f = str.format\nf(x(^'{:>{1.r'), 1)", "format"),
    ("format", "match ^'{.': \n    case str(x=f): f.format", "format"),
    ("positional-pattern", "match x:\n    case ^T(a): pass", "T"),
    ("positional-pattern", "match x:\n    case ^a.T(b): pass", ""),
    ("positional-pattern", "int = T\nmatch x:\n    case ^int(a): pass", "int"),
    ("positional-pattern", "def f(int):\n    match x:\n        case ^int(a): pass", "int"),
    ("positional-pattern", "class int: pass\nmatch x:\n    case ^int(a): pass", "int"),
    ("positional-pattern", "from math import *\nmatch x:\n    case ^int(a): pass", "int"),
    ("positional-pattern", "class A:\n    match x:\n        case ^int(a): pass", "int"),
    (
        "positional-pattern",
        "import collections\nP = collections.namedtuple('P', 'x')\nmatch x:\n    case ^P(a): pass",
        "P",
    ),
    (
        "positional-pattern",
        "from collections import namedtuple\nclass P(namedtuple('P', 'x')): pass\n"
        "match x:\n    case ^P(a): pass",
        "P",
    ),
    *(
        ("positional-pattern", f"{made}\nmatch x:\n    case ^P(a): pass", "P")
        for made in (
            "class P: x: int",
            "@dataclass\nclass P: x: int",
            "dataclass = f\n@dataclass\nclass P: x: int",
            "from dataclasses import *\n@dataclass\nclass P: x: int",
            f"{DATACLASS}dataclass = f\n@dataclass\nclass P: x: int",
            f"{DATACLASS}@dataclass\n@f\nclass P: x: int",
            f"{DATACLASS}@dataclass(match_args=False)\nclass P: x: int",
            f"{DATACLASS}@dataclass(**f)\nclass P: x: int",
            f"{DATACLASS}@dataclass(f)\nclass P: x: int",
            f"{DATACLASS}@dataclass\nclass P(metaclass=f): x: int",
            f"{DATACLASS}@dataclass\nclass P: x: int\nP = f",
            f"{DATACLASS}@dataclass\nclass P: x: int\nfrom math import *",
            "class NamedTuple: pass\nclass P(NamedTuple): x: int",
            "from typing import NamedTuple\nP = NamedTuple",
            "from typing import NamedTuple\nclass P(NamedTuple): mro: int",
            "from typing import NamedTuple\nclass P(NamedTuple):\n    if 1: mro: int",
            "class P: __match_args__ = x",
            "class P: __match_args__ = ('x', y)",
            "class P: __match_args__ = ('mro',)",
            "class P: __match_args__ = ('_' + '_x',)",
            "class P(Q): __match_args__ = ('x',)",
            "@f\nclass P: __match_args__ = ('x',)",
            "class P(metaclass=M): __match_args__ = ('x',)",
            "class P: pass\nclass Q: __match_args__ = ('x',)",
            "class P: __match_args__ = ('x',)\nclass Q: __match_args__ = y",
            f"{DATACLASS}@dataclass\nclass P: __match_args__ = f",
            "from typing import NamedTuple\nclass P(NamedTuple): __match_args__ = ('mro',)",
            "from typing import NamedTuple\nclass P(NamedTuple, f): x: int",
            "from typing import NamedTuple\n@f\nclass P(NamedTuple): x: int",
        )
    ),
    (
        "positional-pattern",
        f"{DATACLASS}@dataclass\nclass P: x: int\nclass A:\n    match x:\n        case ^P(a): pass",
        "P",
    ),
    ("blocked-word", "x = '^/etc/passwd'", "/etc/passwd"),
    ("blocked-word", "# ^os.system", "os.system"),
    ("blocked-word", "x = 1\ny = '^\\x6fs.\\163yste\\u006d'", "os.system"),
    ("blocked-word", "y = 'aé\\x41 ^ｏs.system'", "os.system"),
    ("blocked-word", "'^/etc\\\n/passwd'", "/etc/passwd"),
    ("forbidden-character", "é = '^\u202e'", "U+202E"),
    ("forbidden-character", "# ^\u2066", "U+2066"),
    ("forbidden-character", "^\ufeffx", "U+FEFF"),
    ("forbidden-character", "x = ^\0", "U+0000"),
    ("forbidden-character", "x = '^\ud800'", "U+D800"),
]


@pytest.mark.parametrize(("rule", "marked", "value"), REFUSED, ids=ascii)
def test_a_violation_has_its_rule_place_and_value(
    policy: Policy, rule: str, marked: str, value: str
) -> None:
    before, after = marked.split("^")
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
    found = [(one.rule, one.line, one.column, one.value) for one in check(before + after, policy)]
    assert (rule, line, column, value) in found
    assert {one[0] for one in found} <= {rule, "dangerous-name", "dangerous-import"}


PASSED = [
    "",
    "# nothing",
    "2+2",
    "from math import *\nsin(pi)",
    "import math, json as j, re\nj.dumps({})",
    "from operator import itemgetter\nsorted([(1, 2)], key=itemgetter(1))",
    "import operator\nsorted([(1, 2)], key=operator.itemgetter(1))",
    "re.compile('x').findall('x')",
    "for __ in range(3): ___ = __",
    "_ = 3\n_private = _",
    "'_' * 20, '____', '|__|', 'Name: ______'",
    "'sys', 'the modules of enum', 'obj'",
    "class A:\n    def _x(self): return self._x\n    @classmethod\n    def y(cls): return cls._x",
    "import collections\nP = collections.namedtuple('P', 'x')\nP(1)._replace(x=3)._asdict()",
    "class Door:\n    def open(self): return 1\nDoor().open()",
    "class A:\n    _n = 0\n    def add(self, other): A._n += other._n\nA._n",
    "dict(open=1, close=2, input=3)",
    "class P:\n    def evaluate(self): return x\nP().evaluate(), P.evaluate",
    "obj = 1\nenum = sys = modules = obj",
    "format(3.14159, '.2f')",
    "x.format(1), str.format, ('{:>' + w + '}').format(1), f'{{:{w}}}'.format(1)",
    "'{0.real} {a[b].c} {{a. {:.2f} {!r:>{w.x}} {{{0}}} {{{{0.'.format",
    "'{a.b', '{a.', f'{{a.{x}'",
    "match x:\n    case str(format=f): f('{0.real}')",
    "from functools import wraps\ndef d(f):\n    @wraps(f)\n    def g(*a): return f(*a)",
    "import functools\ndef d(f):\n    @other\n    @functools.wraps(f)\n    async def g(): pass",
    "match x:\n    case int(n) | str(n) | float(n): pass\n    case list() | dict(): pass",
    f"{DATACLASS}@dataclass\nclass P:\n    x: int\nmatch p:\n    case P(a): pass",
    "class P:\n    __match_args__ = ('x', '_y')\nmatch p:\n    case P(a): pass",
    "import dataclasses as d\n@d.dataclass(frozen=True, slots=True)\nclass P(Q):\n    x: int\n"
    "@d.dataclass\nclass R: y: int\nmatch p:\n    case P(R(a)) | [P(a)]: pass",
    "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\nmatch p:\n    case P(a): 0",
    "match x:\n    case Point(x=0, y=y): pass\n    case {'a': [1, *rest], **others}: pass",
    "import collections.abc as c\nimport collections.abc\ncollections.abc.Sized, c.Sized",
    "import time, sys\ntime.time(), sys.maxsize, sys.exit\nfrom sys import exit\nexit()",
    "from __future__ import annotations, division as d",
    "if __name__ == '__main__': print(1)",
    "def main(): return '__main__' == __name__",
    "f.__name__, f.__qualname__, f.__doc__, type(x).__name__",
    "'__', '__init__', 'snake__case', '_' + '_', s.startswith('__'), 'the __len__ of it'",
    "class A:\n    __n = 0\n    def __init__(self): self.__x = A.__n\n    def __f(self): __y",
    "class A:\n    def __add__(self, o): return 1\n    __radd__ = __add__\n    __hash__ = None",
    "class A:\n    __slots__ = ('x',)\n    def __repr__(self): return super().__repr__()",
    "class A(B):\n    def __init__(self, x): super(A, self).__init__(x)",
    "node._next, f(x)._y, A()._x, x[0]._z",
    "match x:\n    case object(_y=f): pass",
    "class A:\n    def f(self):\n        match self:\n            case int(n): return n",
    "x = functools.wraps(print)(f)",
    "self.sys, self.modules, self.encoder, self.tool, self.obj, self.enum",
    "x = 1\ry = 2\rx + y",
    "x = 1\r\ny = 2\r\nx + y",
    'print("a")\x0c\nprint("b")',
    "'\u200f שלום \u200d 👩\u200d💻'",
    "'C:\\\\users\\\\new', '\\\\x2fetc/passwd'",
    "the_os.system_name = 'my os. System'",
    "x: int = 3\nasync def f():\n    async with a as b: return [c async for c in d]",
    "try: pass\nexcept* ValueError as e: raise\nelse: pass\nfinally: pass",
    "while 0:\n    break\nelse: assert x, y\ndel x\nglobal z",
    "f'{x!r:>{w}} {y=}' rf'\\d' b''".replace(" b''", ""),
    "lambda a, /, b=1, *c, d, e=2, **f: (yield)",
    "{**a, 1: 2}, {*a}, [*b], (x := 1), a if b else c, not -~+x, a @ b, x[1:2, ::3]",
]


@pytest.mark.parametrize("source", PASSED, ids=ascii)
def test_an_ordinary_program_passes(policy: Policy, source: str) -> None:
    assert check(source, policy) == []


# An ordinary word is a program's own where the program binds it. In the second kind a path leads to
# the builtin all the same, as a run of them with eval, which is no such word, shows.
OWN = [
    "dir = 3\ndir + 1",
    "dir, (b, *open) = 1, (2, 3)\nprint(dir, open)",
    "if x:\n    dir = 1\n    print(dir)",
    "dir: int = 1\nprint(dir)",
    "dir = 1\ndef f(): return dir\nclass A: x = dir\n[dir for _ in x]",
    "for dir in [1]:\n    print(dir)",
    "for a, (dir, b) in x:\n    dir += 1",
    "def dir(x): return dir(x - 1) if x else 0\ndir(3)",
    "@memo\ndef dir(x): return x\ndir(1)",
    "def f(dir): return dir",
    "def f(a, /, *dir, b=1, **open): return dir, open",
    "lambda dir: dir + 1",
    "async def f(dir):\n    def g(): return lambda: dir\n    class A: x = dir",
    "def f():\n    print(dir)\n    dir = 1",
    "def f():\n    if x: return dir\n    for dir in []: pass",
    "[dir for dir in x if dir]",
    "{dir: b for dir, b in x}, {dir for y in z for dir in y}, (dir for dir in x)",
    "try:\n    dir = 1\n    print(dir)\nfinally: pass",
    "class A:\n    def f(self, open): return open",
]
NOT_OWN = [
    "if 0: eval = 1\nprint(eval('6*7'))",
    "if 0: eval = 1\nelse: print(eval('6*7'))",
    "def f(): return eval('6*7')\nprint(f())\neval = 1",
    "eval = 3\ndel eval\nprint(eval('6*7'))",
    "eval = 3\ntry: 1 / 0\nexcept Exception as eval: pass\nprint(eval('6*7'))",
    "def f(eval):\n    def g():\n        global eval\n        print(eval('6*7'))\n    g()\nf(1)",
    "eval = eval\nprint(eval('6*7'))",
    "for eval in []: pass\nprint(eval('6*7'))",
    "for eval in []: pass\nelse: print(eval('6*7'))",
    "for eval in [eval('6*7')]: print(eval)",
    "while 0: eval = 1\nprint(eval('6*7'))",
    "try:\n    1 / 0\n    eval = 1\nexcept Exception: print(eval('6*7'))",
    "try:\n    1 / 0\n    eval = 1\nexcept Exception: pass\nfinally: print(eval('6*7'))",
    "match 2:\n    case 1: eval = 1\n    case 2: print(eval('6*7'))",
    "@(lambda f: print(f('6*7')))\ndef eval(x): return eval(x)",
    "def f(eval=eval('6*7')): return eval\nprint(f())",
    "def f(x: print(eval('6*7')), eval=0): pass\nf.x = 0",
    "def f(x, eval=0) -> print(eval('6*7')): pass",
    "@(lambda f: print(eval('6*7')))\ndef f(eval): pass",
    "print((lambda eval=eval: eval('6*7'))())",
    "def f():\n    def g(eval): pass\n    return eval('6*7')\nprint(f())",
    "def f():\n    [0 for eval in [1]]\n    return eval('6*7')\nprint(f())",
    "[0 for eval in [1]]\nprint(eval('6*7'))",
    "print([eval for eval in [eval('6*7')]])",
    "class A:\n    print(eval('6*7'))\n    eval = 1",
    "class A:\n    eval = 1\n    def f(self): return eval('6*7')\nprint(A().f())",
    "def f(eval):\n    class A:\n        print(eval('6*7'))\n        eval = 1\nf(1)",
    "x = {}\nx[eval('6*7')] = eval = 1\nprint(x)",
    "eval: int\nprint(eval('6*7'))",
    "eval = 1\nfrom builtins import *\nprint(eval('6*7'))",
]


@pytest.mark.parametrize("source", OWN, ids=ascii)
def test_a_programs_own_variable_may_be_an_ordinary_word(policy: Policy, source: str) -> None:
    assert check(source, policy) == []


EVERY_POSITION = [source.replace("dir", "eval") for source in OWN if "dir" in source]


@pytest.mark.parametrize("source", [*EVERY_POSITION, "dict(eval=1)"], ids=ascii)
def test_other_dangerous_names_are_refused_in_every_position(policy: Policy, source: str) -> None:
    assert "dangerous-name" in rules(source, policy)


@pytest.mark.parametrize("source", NOT_OWN, ids=ascii)
def test_a_name_that_may_be_the_builtin_is_refused_or_missing(policy: Policy, source: str) -> None:
    is_annotation = "->" in source or "x: print" in source  # on 3.14 they wait for a reader
    if sys.version_info < (3, 14) or not is_annotation:
        ran = subprocess.run([sys.executable, "-c", source], capture_output=True, check=True)
        assert b"42" in ran.stdout, "this program is not what it is meant to be"
    assert "dangerous-name" in rules(source, policy)
    ordinary = source.replace("eval", "open")
    if not rules(ordinary, policy) and not (is_annotation and sys.version_info >= (3, 14)):
        builtins = guest.reduced_builtins(policy.dangerous_names, {}, frozenset())
        with pytest.raises(NameError, match="open"):
            exec(ordinary, {"__builtins__": builtins, "__name__": "__main__"})


@pytest.mark.parametrize(
    "source",
    [
        "open('x')",
        "class Door:\n    def open(self): return open('x')",
        "open = 1\ndel open\nopen('x')",
        "open = 1\nfrom math import *\nopen('x')",
    ],
)
def test_a_builtin_that_no_variable_hides_is_refused(policy: Policy, source: str) -> None:
    assert rules(source, policy)[-1] == "dangerous-name"


@pytest.mark.parametrize(
    ("since", "source", "rule"),
    [(since, *one) for since, some in NEW_SYNTAX.items() for one in some],
)
def test_new_syntax_is_looked_into(
    policy: Policy, since: tuple[int, int], source: str, rule: str
) -> None:
    assert (rule if sys.version_info >= since else "syntax") in rules(source, policy)


def test_every_node_kind_of_this_python_is_known() -> None:
    never_parsed = {"FunctionType", "Interactive", "Expression", "Param", "AugLoad", "AugStore"}
    never_parsed |= {
        "Load",
        "Store",
        "Del",
        "TypeIgnore",
        "Index",
        "ExtSlice",
        "Suite",
        "Num",
        "Str",
    }
    never_parsed |= {"Bytes", "NameConstant", "Ellipsis"}
    kinds = {
        kind
        for kind in vars(ast).values()
        if isinstance(kind, type) and issubclass(kind, ast.AST) and not kind.__subclasses__()
    }
    unknown = {kind.__name__ for kind in kinds - KINDS.keys()} - never_parsed
    assert not unknown, "judge these in sandbox/check/node_kinds.txt and sandbox/check/checker.py"
    assert not {kind.__name__: one.unknown for kind, one in KINDS.items() if one.unknown}


def test_an_unknown_node_kind_is_refused(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(KINDS, ast.Lambda)
    [violation] = check("x = lambda: eval", policy)
    assert (violation.rule, violation.column, violation.value) == ("unknown-syntax", 5, "Lambda")


def test_an_unknown_field_is_refused_where_it_is_used(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, ast.ImportFrom, KINDS[ast.ImportFrom]._replace(unknown=("level",)))
    assert check("from math import pi", policy) == []
    assert "unknown-syntax" in rules("from .math import pi", policy)


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def __init__(self): pass",
        "super().__init__()",
        "if __name__ == '__main__': pass",
        "from __future__ import annotations",
        "x.__name__",
        "class A:\n    def f(self): return self.__x",
    ],
)
def test_the_strict_policy_closes_every_name_with_two_underscores(
    policy: Policy, source: str
) -> None:
    strict = load_policy(ROOT / "sandbox/policies/strict.yaml")
    assert set(rules(source, strict)) == {"dunder"}
    assert check("for __ in range(3): '__init__'", strict) == []
    assert check(source, policy) == []


@pytest.mark.parametrize("source", ["import __future__", "from .__future__ import annotations"])
def test_no_other_import_of_future_passes(policy: Policy, source: str) -> None:
    assert "dunder" in rules(source, policy)


def test_methods_that_the_policy_allows_may_be_defined(policy: Policy) -> None:
    kinder = dataclasses.replace(policy, allowed_dunders=frozenset({"__init__"}))
    program = (
        "class A:\n    def __init__(self): self.x = 1\n"
        "class B(A):\n    def __init__(self): super().__init__()"
    )
    assert check(program, kinder) == []
    strict = dataclasses.replace(policy, allowed_dunders=frozenset())
    assert rules(program, strict) == ["dunder"] * 3
    for elsewhere in ("def __init__(): 0", "x.__init__", "super(A).__init__", "__init__ = 1"):
        assert rules(elsewhere, kinder) == ["dunder"]
    assert rules("@x.__init__(y)\ndef f(): 0", kinder) == ["dunder"]
    assert rules("class A:\n    def __del__(self): 0", kinder) == ["dunder"]


def test_a_preloaded_module_is_known_by_its_name(policy: Policy) -> None:
    stricter = dataclasses.replace(policy, dangerous_attrs=frozenset({"datetime.time"}))
    assert rules("dt.time", stricter) == ["dangerous-attribute"]
    assert rules("from datetime import time", stricter) == ["dangerous-import"]
    assert check("dt.date.time, dt.datetime", stricter) == []


def test_a_message_is_a_sentence_that_a_person_can_use(policy: Policy) -> None:
    [violation] = check("import os", policy)
    assert violation.message.startswith("`os` may not be imported here: there are no files")
    [violation] = check("import mymodule", policy)
    allowed = ", ".join(policy.allowed_imports)
    assert violation.message == f"`mymodule` may not be imported here; allowed: {allowed}"
    without = dataclasses.replace(policy, dangerous_names=policy.dangerous_names | {"input"})
    assert "write the value into the program" in check("x = input()", without)[0].message


@pytest.mark.parametrize(
    ("source", "line", "column", "message"),
    [
        ("1 +", 1, 4, "SyntaxError: invalid syntax"),
        ("x = 1\nif x\n    y", 2, 5, "SyntaxError: expected ':'"),
        ("é = ٢", 1, 5, "SyntaxError: invalid character '٢' (U+0662)"),
        ("(" * 300, 1, 201, "SyntaxError: too many nested parentheses"),
        ("x = 1\n  y", 2, 2, "IndentationError: unexpected indent"),
        (
            "if x:\n\ty\n        z",
            *(3, 1),
            "TabError: inconsistent use of tabs and spaces in indentation",
        ),
    ],
    ids=ascii,
)
def test_a_syntax_error_is_one_violation_with_the_line_that_python_ends_in(
    policy: Policy, source: str, line: int, column: int, message: str
) -> None:
    assert check(source, policy) == [Violation("syntax", line, column, message, "")]


@pytest.mark.parametrize(
    "source",
    [
        "-" * 16000 + "1",
        "not " * 4000 + "1",
        "a" + "()" * 8000,
        "a" + ".b" * 8000,
        "a" + "[0:]" * 4000,
        "+".join("1" * 8000),
        "x = " + "lambda:" * 2300 + "0",
        "[" * 199 + "]" * 199,
        "9" * 16000,
        "{" * 16000,
        "'" * 16001,
        "\\" * 16000,
        "\n".join(" " * depth + "if 1:" for depth in range(120)),
        "f'{" * 200,
        "[" * 60 + "x" + " for a in b]" * 60,
        "(" * 90 + "a" + " if x else b)" * 90 + ".format(1)",
        "\n".join(" " * depth + "class A:" for depth in range(90)) + " __x = 1",
        "\ud800" * 5000,
        "\0" * 16000,
        "\r" * 16000,
    ],
    ids=lambda source: ascii(source[:20]),
)
def test_no_source_makes_the_checker_raise(policy: Policy, source: str) -> None:
    for violation in check(source, policy):
        assert violation.message
        assert violation.line >= 1
        assert violation.column >= 1


def test_all_violations_are_told_in_the_order_of_the_source(policy: Policy) -> None:
    source = "import os\nx = eval('__dict__') + y.__z\nfrom . import a; re._c\n'/etc/passwd'"
    assert [(one.line, one.column) for one in check(source, policy)] == [
        (1, 8),
        (2, 5),
        (2, 10),
        (2, 26),
        (3, 1),
        (3, 21),
        (4, 2),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=ascii)
def test_lines_end_as_the_parser_ends_them(policy: Policy, end: str) -> None:
    source = f"a = '\x0b\x0c\x85\u2028'{end}{end}'/etc/passwd'; import os"
    found = [(one.line, one.column) for one in check(source, policy)]
    assert found[-2:] == [(3, 2), (3, 23)]


@pytest.mark.parametrize("unit", ["eval;", "'/etc/passwd';", "\u202e", "\0"], ids=ascii)
def test_at_most_a_hundred_violations_are_told(policy: Policy, unit: str) -> None:
    assert len(check(unit * 1000, policy)) == MOST_VIOLATIONS


@pytest.mark.parametrize(
    "word", ["os_x", r"os[_]x", r"(?i)OS_X", "os_x|y", r"(?=o)\w+_x", r"o{1}s.x\b", "(?:z|o)s_?x"]
)
def test_a_blocked_word_is_found_whatever_its_pattern_is_made_of(policy: Policy, word: str) -> None:
    stricter = dataclasses.replace(policy, blocked_words=(re.compile(word),))
    assert rules("a = 1 # os_x", stricter) == ["blocked-word"]
    assert check("a = 1 # o", stricter) == []


def each(unit: str, count: int, joint: str = "") -> str:
    return joint.join(unit.format(number) for number in range(count))


GROWING: dict[str, Callable[[int], str]] = {
    "statements": lambda n: each("a{0} = b.c{0}\n", n),
    "terms": lambda n: each("a{} + '_'", n, " + "),
    "attributes": lambda n: "a" + each(".b{}", n),
    "names of one long text": lambda n: (
        each("t{} = ", n) + each("'a'", n, " + ") + "\n" + each("t{}.format(1)\n", n)
    ),
    "modules of one name": lambda n: each("import a{} as n\n", n) + "n.itemgetter\n" * n,
    "templates": lambda n: each("t{0} = '{{0.' + t{0}\nt{0}.format(1)\n", n),
    "patterns of a dataclass": lambda n: (
        "from dataclasses import dataclass\n" * n
        + each("@dataclass\nclass P{}: x: int\n", n)
        + "match a:\n"
        + each(" case P{}(b): 0\n", n)
    ),
    "patterns of classes": lambda n: (
        each("class P{}: __match_args__ = ('x',)\n", n)
        + "match a:\n"
        + each(" case P{}(b): 0\n", n)
    ),
    "imports of namedtuple": lambda n: (
        "from collections import namedtuple as n\n" * n
        + each("P{} = n()\n", n)
        + "match a:\n"
        + each(" case P{}(b): 0\n", n)
    ),
    "classes beside an ordinary word": lambda n: "dir = 1\n" + "class A: a = dir\n" * n,
    "functions with ordinary words": lambda n: "dir = 1\n" + "def f(vars): return dir\n" * n,
    "comprehensions with ordinary words": lambda n: "dir = 1\n" + "[dir for vars in dir]\n" * n,
    "escapes": lambda n: "'" + "\\x61" * n + "'",
}


def steps(source: str, policy: Policy) -> int:
    """The lines of Python that a check takes, which no other work on the machine changes."""
    count = 0

    def trace(frame: types.FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        check(source, policy)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("program", GROWING.values(), ids=GROWING)
def test_a_program_of_twice_the_length_takes_twice_the_steps(
    policy: Policy, program: Callable[[int], str]
) -> None:
    assert "syntax" not in rules(program(200), policy)
    assert steps(program(200), policy) < 2.5 * steps(program(100), policy)


@pytest.mark.parametrize("is_on", [True, False])
def test_the_garbage_collector_rests_meanwhile_and_is_left_as_it_was(
    policy: Policy, is_on: bool
) -> None:
    seen: list[str] = []
    was_on = gc.isenabled()
    gc.collect()
    (gc.enable if is_on else gc.disable)()
    gc.callbacks.append(lambda phase, info: seen.append(phase))
    try:
        check("a = [b.c(1)]\n" * 1000, policy)
        assert gc.isenabled() == is_on
        assert not seen
    finally:
        gc.callbacks.pop()
        (gc.enable if was_on else gc.disable)()


def test_a_source_over_the_limit_is_not_parsed(policy: Policy) -> None:
    limit = policy.limits.source_bytes
    assert check("#" * limit, policy) == []
    assert rules("#" * (limit + 1), policy) == ["source-too-long"]
    assert rules("#" + "é" * (limit // 2), policy) == ["source-too-long"]


def test_the_policy_in_force_is_the_one_that_is_passed(policy: Policy) -> None:
    other = dataclasses.replace(
        policy, allowed_imports={"os": None}, dangerous_names=frozenset({"x"})
    )
    for _ in range(2):
        assert rules("import os", policy) == ["import"]
        assert rules("import os\nx", other) == ["dangerous-name"]


def test_the_parsers_warnings_reach_nobody(policy: Policy) -> None:
    for action in ("always", "error"):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter(action)
            assert check("'\\d', 1or 2", policy) == []
        assert not seen


def test_threads_check_at_once_and_leave_the_filters_of_warnings_alone(policy: Policy) -> None:
    check("1", policy)
    before = list(warnings.filters)
    wrong: list[list[str]] = []

    def work() -> None:
        found = [rules("'\\d', eval", policy) for _ in range(200)]
        wrong.extend(one for one in found if one != ["dangerous-name"])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert warnings.filters == before


def test_user_text_is_never_compiled(policy: Policy) -> None:
    # 22 nested comprehensions crash the compiler of 3.12 (python/cpython#156091), not the parser.
    deep = "[" * 30 + "x" + " for a in b]" * 30
    assert check(deep, policy) == []
