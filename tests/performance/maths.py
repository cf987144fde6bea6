"""How long questions to libraries take, for the bench, under the policy that has them.

Prints two medians in milliseconds for each question, as JSON: as the service runs it, and with an
interpreter for it that imports only the library that it needs.
"""

import json
import statistics
import time
from dataclasses import replace

from sandbox.policy.loader import Policy, load_policy
from sandbox.sandbox import Sandbox
from tests.performance.baseline import InterpreterEachTime
from tools.serve import ROOT

# Name -> module, program, and what its output holds; the plot prints nothing.
QUESTIONS = {
    "integral": ("sympy", "integrate(exp(-x**2), (x, -oo, oo))", "sqrt(pi)"),
    "equation": ("sympy", "solve(x**2 - 2)", "[-sqrt(2), sqrt(2)]"),
    "inverse": ("sympy", "Matrix([[1, 2], [3, 4]]).inv()", "3/2"),
    "plot": ("matplotlib.pyplot", "plt.plot([1, 2, 3])", ""),
}
TIMES = 10


def only(policy: Policy, module: str) -> Policy:
    """Return the policy with one module, and the prelude if that is of it."""
    return replace(
        policy,
        allowed_imports={module: None},
        preloaded={name: each for name, each in policy.preloaded.items() if each == module},
        prelude=policy.prelude if module == "sympy" else (),
        warm_up=(),
    )


def measure() -> dict[str, tuple[float, float]]:
    """Return what each of the two took, asked in turn; the second is asked a tenth as often."""
    policy = load_policy(ROOT / "sandbox/policies/maths.yaml")
    real = Sandbox(policy)
    real.start()
    try:
        return {
            name: _medians(real, InterpreterEachTime(only(policy, module)), program, output)
            for name, (module, program, output) in QUESTIONS.items()
        }
    finally:
        real.close()


def _medians(real: Sandbox, baseline: Sandbox, program: str, output: str) -> tuple[float, float]:
    spans: tuple[list[float], list[float]] = ([], [])
    for number in range(TIMES):
        for sandbox, taken in zip((real, baseline), spans, strict=True):
            if sandbox is real or number % 10 == 0:
                begin = time.perf_counter()
                outcome = sandbox.run(program)
                taken.append((time.perf_counter() - begin) * 1000)
                if outcome.kind != "ok" or output not in outcome.output:
                    raise ValueError(f"the answer to {program}: {outcome}")
    return statistics.median(spans[0]), statistics.median(spans[1])


if __name__ == "__main__":
    print(json.dumps(measure()))
