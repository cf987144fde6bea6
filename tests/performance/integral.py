"""How long an integral by sympy takes, for the bench, under a policy that has sympy.

Prints two medians in milliseconds, as JSON: as the service runs it, and with an interpreter for it.
"""

import json
import statistics
import time

from sandbox.policy.loader import load_policy
from sandbox.sandbox import Sandbox
from tests.performance.baseline import InterpreterEachTime
from tools.serve import ROOT

INTEGRAL = "integrate(exp(-x**2), (x, -oo, oo))"
TIMES = 20


def measure() -> tuple[list[float], list[float]]:
    """Return what each of the two took, in turn; the second is asked a tenth as often."""
    policy = load_policy(ROOT / "sandbox/policies/maths.yaml")
    real, baseline = Sandbox(policy), InterpreterEachTime(policy)
    real.start()
    try:
        spans: tuple[list[float], list[float]] = ([], [])
        for number in range(TIMES):
            for sandbox, taken in zip((real, baseline), spans, strict=True):
                if sandbox is real or number % 10 == 0:
                    begin = time.perf_counter()
                    outcome = sandbox.run(INTEGRAL)
                    taken.append((time.perf_counter() - begin) * 1000)
                    if outcome.output != "sqrt(pi) ≈ 1.7724538509\n":
                        raise ValueError(f"the integral's answer: {outcome}")
        return spans
    finally:
        real.close()


if __name__ == "__main__":
    print(json.dumps([statistics.median(spans) for spans in measure()]))
