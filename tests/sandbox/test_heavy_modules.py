"""sympy, mpmath and numpy: free for each program, and no way out, under a policy that has them."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sandbox.sandbox import Sandbox
from tests.policies.heavy import heavy_policy
from tests.sandbox.guests import guests

MODULES = ("mpmath", "numpy", "sympy")
for module in MODULES:
    pytest.importorskip(module, reason="the packages of tests/requirements.txt are not installed")

INTEGRAL = "from sympy import *\nx = Symbol('x')\nintegrate(exp(-x**2), (x, -oo, oo))"


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    sandbox = Sandbox(heavy_policy(tmp_path_factory.mktemp("heavy")))
    sandbox.start()
    yield sandbox
    sandbox.close()


@pytest.mark.parametrize(
    ("source", "output"),
    [
        (INTEGRAL, "sqrt(pi)\n"),
        (
            "x = sympy.Symbol('x')\nsympy.solve(x**2 - x - 1, x)",
            "[1/2 - sqrt(5)/2, 1/2 + sqrt(5)/2]\n",
        ),
        ("x = sympy.Symbol('x')\nsympy.diff(sympy.sin(x)**2, x)", "2*sin(x)*cos(x)\n"),
        ("np.linalg.solve([[3.0, 1], [1, 2]], [9, 8])", "[2. 3.]\n"),
        ("np.fft.fft(np.ones(4)).real", "[4. 0. 0. 0.]\n"),
        ("import numpy as n\nn.arange(6).reshape(2, 3).sum(axis=0)", "[3 5 7]\n"),
        ("mpmath.mp.dps = 30\n+mpmath.pi", "3.14159265358979323846264338328\n"),
        ("from mpmath import quad, exp, inf\nquad(lambda t: exp(-t), [0, inf])", "1.0\n"),
    ],
)
def test_they_answer_in_a_guest_under_every_layer(heavy: Sandbox, source: str, output: str) -> None:
    outcome = heavy.run(source)
    assert (outcome.kind, outcome.output, outcome.error) == ("ok", output, "")


def test_no_program_pays_for_their_import(heavy: Sandbox) -> None:
    command = [sys.executable, "-I", "-c", "import mpmath, numpy, sympy, time\n"]
    command[-1] += "print(time.process_time())"
    import_seconds = float(subprocess.run(command, check=True, capture_output=True).stdout)
    outcome = heavy.run("sympy.expand((sympy.Symbol('x') + 1)**2)")
    assert outcome.output == "x**2 + 2*x + 1\n"
    assert outcome.cpu_seconds < import_seconds / 5


def test_no_program_pays_for_what_a_warm_up_program_found_out(heavy: Sandbox) -> None:
    cold = Sandbox(replace(heavy.policy, warm_up=()))
    cold.start()
    try:
        seconds = cold.run(INTEGRAL).cpu_seconds
    finally:
        cold.close()
    assert heavy.run(INTEGRAL).cpu_seconds < seconds / 3


@pytest.mark.parametrize(
    "source",
    [
        "np.random.rand()",
        "np.random.default_rng().random()",
        "mpmath.rand()",
        "sympy.randprime(1, 10**18)",
        "sympy.randMatrix(1, 1, 0, 10**18)",
    ],
)
def test_no_two_programs_draw_the_same_numbers(heavy: Sandbox, source: str) -> None:
    drawn = [heavy.run(source).output for _ in range(12)]
    assert "" not in drawn
    assert len(set(drawn)) == len(drawn)


WALK = """
waiting, seen = [mpmath, np, sympy], {}
while waiting:
    view = waiting.pop()
    if id(view) not in seen:
        seen[id(view)] = view.__name__
        waiting += [one for one in vars(view).values() if isinstance(one, type(math).__base__)]
" ".join({name.partition(".")[0] for name in seen.values()})
"""


def test_no_public_name_leads_to_a_module_that_is_not_allowed(heavy: Sandbox) -> None:
    outcome = heavy.run(WALK, unchecked=True)
    assert set(outcome.output.split()) - heavy.policy.allowed_imports.keys() == set()
    assert {"numpy", "sympy"} <= set(outcome.output.split())


FORK = "__import__('os').fork() or __import__('os')._exit(0)"
# Each prints REACHED where it gets what it wants.
HOSTILE = {
    "read a file": "print('REACHED', np.fromfile('/etc/passwd', 'u1')[:4])",
    "read a text": "print('REACHED', np.genfromtxt('/etc/passwd', str, delimiter=chr(1))[0])",
    "map a file": "print('REACHED', np.memmap('/etc/passwd', mode='r')[:4])",
    "write numbers": "np.savetxt('/dev/null', np.ones(1))\nprint('REACHED')",
    "write an array": "np.ones(1).tofile('/dev/null')\nprint('REACHED')",
    "pickle an array": "np.ones(1).dump('/dev/null')\nprint('REACHED')",
    "fork by f2py": "import numpy.f2py\nnumpy.f2py.os.fork() or os._exit(0)\nprint('REACHED')",
    "run by f2py": "import numpy.f2py as f\nf.subprocess.run(['/bin/true'])\nprint('REACHED')",
    "fork by the C library": "c = np.ctypeslib.ctypes.CDLL(None)\nchild = c.fork()\n"
    "if child == 0: c._exit(0)\nprint('REACHED' * (child > 0))",
    "fork by mpmath": "mpmath.libmp.backend.os.fork() or os._exit(0)\nprint('REACHED')",
    "evaluate by identify": f"mpmath.identify(2, [{FORK!r}])\nprint('REACHED')",
    "evaluate by sympify": f"sympy.sympify({FORK!r})\nprint('REACHED')",
    "evaluate by S": "from sympy import *\nS(\"open('/etc/passwd').read()\")\nprint('REACHED')",
    "run by lambdify": f"sympy.lambdify([], {FORK!r})()\nprint('REACHED')",
}
# What no list of names closes: an ordinary function of sympy evaluates the text that it takes.
UNSEEN = {
    "a file by a sine": 'sympy.sin(\'print("REACHED", open("/etc/pas" "swd").read())\')',
    "a process by a sine": 'sympy.sin(\'print("REACHED", '
    'eval("_" "_import_" "_(chr(111)+chr(115)).fork()"))\')',
}


PRELUDE = "import mpmath, numpy, os, sympy\nnp = numpy\n"


def test_hostile_programs_are_refused_and_without_the_checker_contained(heavy: Sandbox) -> None:
    for what, source in HOSTILE.items():
        assert heavy.run(source).kind == "rejected", what
        outcome = heavy.run(PRELUDE + source, unchecked=True)
        assert outcome.kind in ("ok", "error"), (what, outcome)
        assert "REACHED" not in outcome.output, what


def test_what_the_checker_cannot_see_is_contained(heavy: Sandbox) -> None:
    for what, source in UNSEEN.items():
        outcome = heavy.run(source)
        assert outcome.kind == "error", (what, outcome)
        assert "REACHED" not in outcome.output, what


def test_without_the_layers_all_of_them_would_reach_it(heavy: Sandbox) -> None:
    with guests(heavy.policy, "uid", "rlimits", "landlock", "seccomp", "namespaces") as open_:
        for what, source in (HOSTILE | UNSEEN).items():
            assert "REACHED" in open_.run_source(PRELUDE + source).output, what
