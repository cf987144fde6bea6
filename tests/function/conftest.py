"""A sandbox that says what a test tells it to, for what the real one does only by chance."""

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.policy.loader import Policy
from sandbox.sandbox import Outcome


class ScriptedSandbox:
    """Evaluates nothing; answers each program with `script(program)` and remembers it."""

    def __init__(self, policy: Policy, script: Callable[[str], Outcome]) -> None:
        self.policy = policy
        self.script = script
        self.programs: list[str] = []

    def run(self, source: str, *options: Any, **named: Any) -> Outcome:
        self.programs.append(source)
        return self.script(source)

    def status(self) -> dict[str, Any]:
        return {"serving": True}


@pytest.fixture
def scripted(policy: Policy) -> ScriptedSandbox:
    """A sandbox in which every program prints its own text, until told otherwise."""
    return ScriptedSandbox(policy, lambda source: Outcome("ok", source))
