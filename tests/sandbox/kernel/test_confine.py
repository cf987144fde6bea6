"""The namespaces that a zygote enters: what is left of them when it ends."""

import subprocess
import sys

from tests.conftest import ROOT
from tests.faults.parts import eventually, is_alive

# The first process kills the one that started it, at its first step, and only then goes on.
KILLED = """
import os, signal
from sandbox.kernel import confine

def call(function, *arguments, at_once=confine.call):
    starter = os.getppid()
    print(os.getpid(), flush=True)
    os.kill(starter, signal.SIGKILL)
    while os.getppid() == starter:
        pass
    at_once(function, *arguments)

confine.call = call
confine._start_first_process()
"""


def test_the_first_process_ends_with_a_zygote_that_ended_before_it_could_ask_for_that() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=ROOT, capture_output=True, text=True, check=False
    )
    eventually(lambda: not is_alive(int(done.stdout)))
