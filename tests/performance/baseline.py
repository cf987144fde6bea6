"""What the bench compares with: the same service, but a new interpreter for every program.

The interpreter imports the same modules, gives up the same rights, namespaces excepted (which the
fork server enters once for all), and evaluates the program with the same code. For the bench alone.
"""

import ast
import json
import os
import subprocess  # nosec B404
import sys
from typing import Any

import falcon

from function.app import create_app
from function.settings import load_settings
from function.state import open_store
from sandbox.check.checker import examine
from sandbox.check.source import Unparsed
from sandbox.fork_server import program, protocol
from sandbox.fork_server.zygote_process import configuration
from sandbox.policy.loader import Policy, load_policy
from sandbox.sandbox import Kind, Outcome, Sandbox
from tools.serve import ROOT


class InterpreterEachTime(Sandbox):
    """Runs each program in an interpreter started for it; the checks come first, as ever."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self._command = [sys.executable, "-I", str(ROOT / "tests/performance/interpreter.py")]
        self._command.append(json.dumps(configuration(policy)))

    def run(
        self,
        source: str,
        tree: ast.Module | Unparsed | None = None,
        **options: Any,
    ) -> Outcome:
        """Return the outcome of a program, as far as the bench needs it."""
        violations, tree = examine(source, self.policy, tree)
        if violations:
            return Outcome("rejected", error=violations[0].message)
        encoded = program.encode(source, tree, **options)
        ours, theirs = os.pipe()
        with open(ours, "rb") as report:
            with open(theirs, "wb"):
                result = subprocess.run(  # nosec B603
                    [*self._command, str(theirs)],
                    input=encoded,
                    stdout=subprocess.PIPE,
                    pass_fds=[theirs],
                    check=False,
                )
            verdict, microseconds, _, error, drawn = protocol.unpack_report(report.read())
        kind: Kind = "ok" if verdict == protocol.OK else "error"
        output = result.stdout[: len(result.stdout) - drawn].decode()
        return Outcome(kind, output, error, cpu_seconds=microseconds / 1e6)


def get_app() -> falcon.App[falcon.Request, falcon.Response]:
    """Return the service with this sandbox in place of its own."""
    settings = load_settings(os.environ)
    sandbox = InterpreterEachTime(load_policy(settings.policy_path))
    return create_app(settings, sandbox, open_store(""))
