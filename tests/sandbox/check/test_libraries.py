import ast

import pytest

from sandbox.check.libraries import needs_libraries

NAMES = frozenset({"x", "n", "sin", "solve", "np", "plt"})


@pytest.mark.parametrize(
    "source",
    [
        "sin(1)",
        "solve(x**2 - 2)",
        "(x + 1)**2",
        "np.ones(3)",
        "import numpy",
        "import math, sympy as s",
        "from sympy.abc import q",
        "if True:\n    import numpy",
        "x += 1",
        "x = x + 1",
        "print(n)\nn = 5",
        "if m:\n    n = 1\nn",
        "for i in range(n): pass",
        "f = lambda x: x**2\nf(x)",
        "def f(a=x): return a",
        "def f(): return n\nn = 5\nf()",
        "def f():\n    global n\n    n = 2\nn",
        "class C:\n    x = 1\n    def f(self): return x",
        "[i for i in range(n)]",
        "[n for n in n]",
        "[n for n in [1]] + [n]",
        "match 1:\n    case sin(): 1",
        "del n",
    ],
)
def test_a_program_that_may_find_a_librarys_name_needs_it(source: str) -> None:
    assert needs_libraries(ast.parse(source), NAMES)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "2+2",
        "import math\nmath.sin(1)",
        "from math import sin\nsin(1)",
        "from collections import abc",
        "x = 5\nx * 2",
        "n, m = 1, 2\nn += m",
        "n: int = 5\nn",
        "for n in range(3):\n    x = n * 2\n    print(x)\nn",
        "while True:\n    x = 1\n    print(x)\n    break",
        "def f(n): return n and f(n - 1)\nf(3)",
        "def f():\n    n = 1\n    return n",
        "def solve(x):\n    return [n for n in x]\nsolve([1])",
        "f = lambda x, n=1: x + n\nf(1)",
        "[x for x in range(3) if x]",
        "{n: x for n in [1] for x in [n]}",
        "math.sin(1)",
        "print('sin(x)')",
        "f(x=1)",
        "class x: pass\nx()",
    ],
)
def test_a_program_of_its_own_names_needs_none(source: str) -> None:
    assert not needs_libraries(ast.parse(source), NAMES)
