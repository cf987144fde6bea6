"""What the bench compares with: the same service, but a new interpreter for every program.

The interpreter imports the same modules, gives up the same rights, namespaces excepted (which the
fork server enters once for all), and evaluates the program with the same code. For the bench alone.
"""

import base64
import json
import os
import subprocess  # nosec B404
import sys

import falcon

from function.app import create_app
from function.settings import load_settings
from function.store import open_store
from sandbox import confine, guest, landlock, zygote
from sandbox.generation import configuration
from sandbox.policy import Policy, load_policy
from sandbox.sandbox import Kind, Outcome, Sandbox
from tools.serve import ROOT


class InterpreterEachTime(Sandbox):
    """Runs each program in an interpreter started for it; the checks come first, as ever."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        start = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); import tools.baseline as b; b.main()"
        )
        self._command = [sys.executable, "-I", "-c", start, json.dumps(configuration(policy))]

    def run(self, source: str, *, helpers: bool = False, unchecked: bool = False) -> Outcome:
        """Return the outcome of a program, as far as the bench needs it."""
        request = {"source": source, "helpers": helpers, "unchecked": unchecked}
        result = subprocess.run(  # nosec B603
            self._command, input=json.dumps(request).encode(), capture_output=True, check=False
        )
        kind: Kind = "ok" if result.returncode == 0 else "error"
        return Outcome(kind, result.stdout.decode(), result.stderr.decode())


def main() -> None:
    """Be the interpreter: import, confine, and run the program that comes on descriptor 0."""
    config = json.loads(sys.argv[1])
    world = zygote._world(config)
    readable = zygote._readable_paths(config["readable_paths"])
    abi = landlock.abi()
    confine.confine(
        confine.Layers(
            rlimits=tuple((which, limit) for which, limit in config["rlimits"]),
            uid=config["first_uid"] if os.geteuid() == 0 else None,
            ruleset=(landlock.create_ruleset(readable, abi), abi) if abi else None,
            filter=base64.b64decode(config["filter"]),
        )
    )
    guest.main(world)


def get_app() -> falcon.App:
    """Return the service with this sandbox in place of its own."""
    settings = load_settings(os.environ)
    sandbox = InterpreterEachTime(load_policy(settings.policy_path))
    return create_app(settings, sandbox, open_store(""))
