"""Ways out of Python's surface that hold no obviously dangerous word: each works, each is closed.

Every program is first run without a checker, so that none of them can rot into a harmless one.
"""

import subprocess
import sys

import pytest

from sandbox.check.checker import check
from sandbox.policy.loader import Policy
from sandbox.sandbox import Sandbox

ANY, GENERICS = (3, 11), (3, 12)
U = "u = chr(95) * 2\n"
# A class whose positional patterns read the attribute that `u + 'self' + u` names, of anything.
T = U + (
    "M = type('M', (type,), {u + 'instancecheck' + u: lambda c, o: True})\n"
    "T = M('T', (), {u + 'match_args' + u: (u + 'self' + u,)})\n"
)
MATCH = "match print:\n    case {}(b): print('REACHED', b.eval)\n"
# An object that takes whatever namespace functools.update_wrapper hands over.
W = U + (
    "out = []\nclass D:\n    def update(self, d): out.append(d)\n"
    "W = type('W', (), {u + 'dict' + u: D()})()\n"
)
TAKEN = "print('REACHED', out[0][u + 'builtins' + u])\n"

ESCAPES = {
    "a class registered with an ABC, whose patterns read what a namedtuple's fields name": (
        ANY,
        "from collections import namedtuple\nimport numbers\n"
        "class P(namedtuple('N', [chr(103) + 'i_fra' + 'me'.lower()]), numbers.Number): pass\n"
        "def g(): yield\nP.register(type(g()))\n"
        "match g():\n    case P(f): print('REACHED', f.f_lineno)\n",
    ),
    "a template given by position, after a parameter that is by position alone": (
        ANY,
        "def f(a, /, t): print('REACHED', t.format(g))\ng = (i for i in [1])\n"
        "f('{}', '{0.gi' + chr(95) + 'frame}')\n",
    ),
    "a metaclass that calls everything its instance": (ANY, T + MATCH.format("T")),
    "a builtin class replaced by one": (ANY, T + "int = T\n" + MATCH.format("int")),
    "a builtin class replaced by a loop": (ANY, T + "for int in [T]: pass\n" + MATCH.format("int")),
    "a builtin class replaced by a walrus": (ANY, T + "(int := T)\n" + MATCH.format("int")),
    "a builtin class replaced by a capture": (
        ANY,
        T + "match T:\n    case int: pass\n" + MATCH.format("int"),
    ),
    "a builtin class replaced by an import": (
        ANY,
        T + "random.T = T\nfrom random import T as int\n" + MATCH.format("int"),
    ),
    "a pattern's class behind a dot": (
        ANY,
        T + "class H: pass\nH.T = T\n" + MATCH.format("H.T"),
    ),
    "a namedtuple that is none": (
        ANY,
        T + "def namedtuple(*a): return T\nP = namedtuple('P', 'x')\n" + MATCH.format("P"),
    ),
    "a namedtuple replaced after its import": (
        ANY,
        T
        + "from collections import namedtuple\nnamedtuple = lambda *a: T\nP = namedtuple('P')\n"
        + MATCH.format("P"),
    ),
    "a namedtuple replaced in its module": (
        ANY,
        T
        + "import collections\nc = collections\nc.namedtuple = lambda *a: T\n"
        + "from collections import namedtuple\nP = namedtuple('P', 'x')\n"
        + MATCH.format("P"),
    ),
    "str.format fetched by a pattern": (
        ANY,
        "t = 'x0.gi_framex'.replace('x0', '{0').replace('x', '}')\ndef g(): yield\n"
        "match t:\n    case str(format=f): print('REACHED', f(g()))\n",
    ),
    "str.format of a parameter": (
        ANY,
        "def f(t): return t.format(print)\nt = '{}'\n"
        "print('REACHED', f('{0.' + chr(95) * 2 + 'self' + chr(95) * 2 + '}'))\n",
    ),
    "str.format of a name that grows": (
        ANY,
        "def g(): yield\nt = '{'\nt += '0.gi' + chr(95) + 'frame}'\n"
        "print('REACHED', t.format(g()))\n",
    ),
    "the function of wraps": (
        ANY,
        "from functools import wraps\nprint('REACHED', wraps(print).func)\n",
    ),
    "wraps as a bare decorator": (
        ANY,
        "from functools import wraps\n@wraps\ndef f(): pass\nprint('REACHED', f.func)\n",
    ),
    "wraps with other attributes": (
        ANY,
        W + "from functools import wraps\nC = type('C', (), {u + 'self' + u: D()})\n"
        "wraps(print)(C, assigned=(), updated=[u + 'self' + u])\nprint('REACHED', out[0].eval)\n",
    ),
    "wraps called": (ANY, W + "import functools\nfunctools.wraps(random)(W)\n" + TAKEN),
    "wraps above another decorator": (
        ANY,
        W + "from functools import wraps\n@wraps(random)\n@(lambda f: W)\ndef f(): pass\n" + TAKEN,
    ),
    "what wraps calls, replaced": (
        ANY,
        "import functools\nfrom functools import wraps\nout = []\n"
        "for functools.partial in [lambda f, **k: out.append(f) or (lambda g: g)]: pass\n"
        "@wraps(print)\ndef w(): pass\nprint('REACHED', out[0])\n",
    ),
    "an own private attribute that is a module's": (
        ANY,
        "class A:\n    _os = 1\n    def f(self): return self._os\nprint('REACHED', A.f(random))\n",
    ),
    "enum's reader of the namespace of any module": (
        ANY,
        "class X(metaclass=type(re.RegexFlag)): pass\ndef f(self): return self._convert_\n"
        "Y = f(X)('Y', 'posix', lambda name: name == 'getpid')\nprint('REACHED', *Y)\n",
    ),
    "a class that hides a builtin from itself alone": (
        ANY,
        "def f(eval):\n    class A:\n        print('REACHED', eval('6'))\n        eval = 1\nf(1)\n",
    ),
    "text that typing makes into code": (
        GENERICS,
        U + "class Box[T]: pass\nout = []\n"
        "class G(type(Box[int]), _root=True):\n"
        "    def copy_with(self, args):\n        out.append(args)\n        return self\n"
        "def go[T](): G(Box, (T,))['print(\"REACHED\")']\ngo()\n"
        "def f(self): return self._evaluate\n"
        "try: f(out[0][0])({}, {}, recursive_guard=frozenset())\nexcept TypeError: pass\n",
    ),
}


@pytest.mark.parametrize(("since", "source"), ESCAPES.values(), ids=ESCAPES)
def test_a_way_out_is_closed(
    since: tuple[int, int], source: str, policy: Policy, sandbox: Sandbox
) -> None:
    if sys.version_info >= since:
        prelude = "import json, math, random, re, datetime as dt\n"
        command = [sys.executable, "-c", prelude + source]
        ran = subprocess.run(command, check=False, capture_output=True, text=True)
        assert "REACHED" in ran.stdout, ran.stderr
    if not check(source, policy):
        assert "REACHED" not in sandbox.run(source).output
