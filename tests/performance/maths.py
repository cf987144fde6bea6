"""What questions to libraries cost, for the bench, under the policy that has them.

Prints, as JSON, two CPU times of all processes in milliseconds for each question: as the service
runs it, and with an interpreter for it that imports only the library that it needs.
"""

import json
import os
import time
from dataclasses import replace

from sandbox.policy.loader import Policy, load_policy
from sandbox.sandbox import Sandbox
from tests.performance import processes
from tests.performance.baseline import InterpreterEachTime
from tools.serve import ROOT

# Name -> module, program, and what its output holds; the plot prints nothing.
QUESTIONS = {
    "integral": ("sympy", "integrate(sin(x)**2, x)", "x/2 - sin(x)*cos(x)/2"),
    "equation": ("sympy", "solve(x**2 - 2)", "[-sqrt(2), sqrt(2)]"),
    "inverse": ("sympy", "Matrix([[1, 2], [3, 4]]).inv()", "3/2"),
    "plot": ("matplotlib.pyplot", "plt.plot([1, 2, 3])", ""),
}
ROUNDS = 4
TIMES = 10  # in a round; of the interpreter once


def only(policy: Policy, module: str) -> Policy:
    """Return the policy with one module, and the prelude if that is of it."""
    return replace(
        policy,
        allowed_imports={module: None},
        preloaded={name: each for name, each in policy.preloaded.items() if each == module},
        prelude=policy.prelude[:1] if module == "sympy" else (),
        warm_up=(),
    )


def measure() -> dict[str, tuple[float, float]]:
    """Return what each of the two takes for each question, asked in turn."""
    policy = load_policy(ROOT / "sandbox/policies/maths.yaml")
    real = Sandbox(policy)
    real.start()
    try:
        return {
            name: _milliseconds(real, InterpreterEachTime(only(policy, module)), program, output)
            for name, (module, program, output) in QUESTIONS.items()
        }
    finally:
        real.close()


def _milliseconds(
    real: Sandbox, baseline: Sandbox, program: str, output: str
) -> tuple[float, float]:
    sums = {real: 0.0, baseline: 0.0}
    for _ in range(ROUNDS):
        for sandbox, times in ((real, TIMES), (baseline, 1)):
            before = processes.cpu_seconds(processes.tree(os.getpid()))
            for _ in range(times):
                outcome = sandbox.run(program)
                if outcome.kind != "ok" or output not in outcome.output:
                    raise ValueError(f"the answer to {program}: {outcome}")
            time.sleep(0.1)  # the last guest ends, and another is prepared
            after = processes.cpu_seconds(processes.tree(os.getpid()))
            sums[sandbox] += (after - before) * 1000 / times
    return sums[real] / ROUNDS, sums[baseline] / ROUNDS


if __name__ == "__main__":
    print(json.dumps(measure()))
