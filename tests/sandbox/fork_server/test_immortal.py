"""What was there before the fork is made immortal: guests copy fewer pages, and nothing breaks."""

import subprocess
import sys

import pytest

HAS_IMMORTALS = sys.version_info >= (3, 12)

# Prints how many pages a child copies that calls 20,000 functions which were there before it.
CALLS = """
import gc, os, resource, sys
from sandbox.fork_server.immortal import make_immortal
def make(): return lambda: None
functions = [make() for _ in range(20_000)]
def call():
    for function in functions: function()
call()
gc.disable()
if {immortal}:
    make_immortal()
if os.fork() == 0:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, flush=True)
    os._exit(0)
os.wait()
"""

# Uses objects of each kind after they were made immortal, and ends the ordinary way.
USE = """
import gc, sys
from sandbox.fork_server.immortal import make_immortal
class Node:
    def __init__(self): self.nodes, self.names = [], {"a": 1}
    def __del__(self): print("freed")
node, text, numbers = Node(), "text" * 9, (1.5, 10**30, b"bytes", ("nested", {"x"}))
make_immortal()
for _ in range(3):
    node.nodes.append(Node())
    node.names["b"] = text + "more"
    [*numbers], text.upper(), {*numbers[3][1]}
    node.nodes.pop()
    gc.collect()
del node
print(len(numbers), sorted(numbers[3][1]))
"""


def run(program: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return result.stdout


@pytest.mark.skipif(not HAS_IMMORTALS, reason="Python 3.11 has no immortal objects")
def test_calls_copy_no_pages_for_counts() -> None:
    counted, immortal = (int(run(CALLS.format(immortal=one))) for one in (False, True))
    assert immortal < counted / 5


def test_immortal_objects_are_used_as_others_are() -> None:
    freed, last = run(USE).splitlines()[:3], run(USE).splitlines()[-1]
    assert freed == ["freed"] * 3  # those made later go as ever
    assert last == "4 ['x']"
