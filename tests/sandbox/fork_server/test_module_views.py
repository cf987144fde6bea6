"""Programs get views of modules: their public names, nothing else, and nothing to change."""

import dataclasses

import pytest

from sandbox.policy.loader import Policy
from sandbox.sandbox import Sandbox

U = "u = chr(95) * 2\n"


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("import math\nmath.floor(2.5)", "2\n"),
        ("import math as m\nm.floor(2.5)", "2\n"),
        ("from math import floor as f\nf(2.5)", "2\n"),
        ("from math import *\nfloor(2.5)", "2\n"),
        ("from random import *\n'choice' and Random(1).random() < 1", "True\n"),
        ("math", "<module 'math'>\n"),
        ("type(math)", "<class 'module'>\n"),
        ("import statistics\nstatistics.median([1, 5, 2])", "2\n"),
        ("dt.datetime.strptime('2024-02-29', '%Y-%m-%d').day", "29\n"),
    ],
)
def test_a_view_is_used_as_a_module(sandbox: Sandbox, source: str, output: str) -> None:
    outcome = sandbox.run(source)
    assert (outcome.output, outcome.error) == (output, "")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("math.pi = 3", "AttributeError: the module math may not be changed here"),
        ("del math.pi", "AttributeError: the module math may not be changed here"),
        ("for json.list in [1]: pass", "AttributeError: the module json may not be changed here"),
        ("from math import nothing", "ImportError: cannot import name 'nothing' from 'math'"),
        ("math.nothing", "AttributeError: module 'math' has no attribute 'nothing'"),
    ],
)
def test_a_view_cannot_be_changed(sandbox: Sandbox, change: str, error: str) -> None:
    assert sandbox.run(change).error.startswith(error)


# Without the checker, by names that are no part of what a module gives.
@pytest.mark.parametrize(
    "path", ["random._os", "random._inst", "re.enum", "json.codecs", "re._compiler", "json.decoder"]
)
def test_what_a_module_merely_holds_is_not_in_its_view(sandbox: Sandbox, path: str) -> None:
    outcome = sandbox.run(path, unchecked=True)
    assert outcome.error.startswith("AttributeError: module")


def test_the_namespace_of_a_view_is_read_only(sandbox: Sandbox) -> None:
    assert sandbox.run("type(math.__dict__)", unchecked=True).output == "<class 'mappingproxy'>\n"
    assert sandbox.run("math.__all__.__class__", unchecked=True).output == "<class 'tuple'>\n"


def test_a_policy_may_give_half_a_module(policy: Policy) -> None:
    given = dict.fromkeys(policy.allowed_imports) | {
        "time": ("time", "no_such_name"),
        "collections.abc": None,
        "os.path": ("join",),
    }
    attrs = policy.dangerous_attrs - {"abc"}
    half = Sandbox(dataclasses.replace(policy, allowed_imports=given, dangerous_attrs=attrs))
    half.start()
    try:
        assert half.run("import time\ntime.time() > 0").output == "True\n"
        assert half.run("import time\ntime.sleep").kind != "ok"
        assert half.run("from time import sleep").kind != "ok"
        assert half.run("import collections.abc as c\nc.Sized is not None").output == "True\n"
        assert half.run("import collections.abc\ncollections.abc.Sized").kind == "ok"
        assert half.run("from collections.abc import Sized").kind == "ok"
        assert half.run("import os.path\nos.path.join('a', 'b')").output == "a/b\n"
        assert half.run("import os.path\nos.getpid").kind == "error"
        assert half.run("import os").kind == "rejected"
    finally:
        half.close()
