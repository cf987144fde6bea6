"""The sandbox as the rest of the project sees it: programs in, outcomes out."""

import ast
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.check.checker import Violation, check, examine
from sandbox.check.source import Unparsed
from sandbox.fork_server import program
from sandbox.fork_server.outcome import Kind, Outcome
from sandbox.fork_server.zygote_process import (
    KilledFromOutside,
    SandboxUnavailable,
    ZygoteGone,
    ZygoteProcess,
    rlimits,
)
from sandbox.policy.loader import Policy
from sandbox.self_test import ProbeResult, run_probes

__all__ = ["BoundaryOpen", "Kind", "Outcome", "Sandbox", "SandboxUnavailable"]

log = logging.getLogger(__name__)

_MOST_SHOWN = 5  # failed probes in one message
_PROBE_TIMEOUT = 30.0  # seconds that a probe may wait for a guest


class BoundaryOpen(SandboxUnavailable):
    """The self-test could do what must be impossible; `failed` has those probes."""

    def __init__(self, failed: Sequence[ProbeResult]) -> None:
        self.failed = tuple(failed)
        what = "; ".join(f"{result.name}: {result.detail}" for result in failed[:_MOST_SHOWN])
        if len(failed) > _MOST_SHOWN:
            what += f"; and {len(failed) - _MOST_SHOWN} more"
        super().__init__(
            f"the self-test found the boundary open ({what}); cure: deny the call in "
            "denied_syscalls of policy.yaml, or bring back the layer that refuses it"
        )


class Sandbox:
    """Runs programs under one policy at a time. Every method may be called from any thread."""

    def __init__(self, policy: Policy, secrets: Sequence[str] = ()) -> None:
        """Hold the first policy, and the files that the self-test shows to be out of reach."""
        self._policy = policy
        self._secrets = secrets
        self._probes: tuple[ProbeResult, ...] = ()
        self._process: ZygoteProcess | None = None
        self._changing = threading.Lock()
        self._renewing = False
        self._restarts = 0

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    def start(self) -> None:
        """Start the zygote and test the boundary. Raises SandboxUnavailable, with the cure."""
        self.reload(self._policy)

    def reload(self, policy: Policy) -> None:
        """Test the boundary under a policy and put it in force; running programs keep the old one.

        Raises SandboxUnavailable, and then the old policy goes on.
        """
        _check_warm_up(policy)
        with self._changing:
            new = ZygoteProcess(policy)
            try:
                self._probes = self._test(new)
            except BaseException:
                new.close()
                raise
            self._swap(new)

    def probe(self) -> tuple[ProbeResult, ...]:
        """Try again now what must be impossible, in guests as programs get them."""
        process = self._process
        if process is None:
            raise SandboxUnavailable("the sandbox is not started")
        return _probe(process, self._secrets)

    def _test(self, process: ZygoteProcess) -> tuple[ProbeResult, ...]:
        results = _probe(process, self._secrets)
        failed = [r for r in results if r.required and not r.passed]
        if failed:
            raise BoundaryOpen(failed)
        return results

    def _swap(self, new: ZygoteProcess) -> None:
        old, self._process, self._policy = self._process, new, new.policy
        if old is not None:
            old.close()

    def close(self) -> None:
        """End the zygote; programs that run may finish within their time."""
        with self._changing:
            if self._process is not None:
                self._process.close()
                self._process = None

    def run(
        self,
        source: str,
        tree: ast.Module | Unparsed | None = None,
        *,
        helpers: bool = False,
        unchecked: bool = False,
        echo_lines: bool = False,
        stdin: str = "",
    ) -> Outcome:
        """Check a program and run it in a process of its own.

        Takes any text, and what `parse` has made of it, if that is known; `stdin` holds the lines
        that `input` reads, at most the policy's `input_bytes`; `echo_lines` is for a program whose
        lines are all expressions, and prints the value of each, not of the last alone; `helpers`
        binds nf and fact; `unchecked` leaves out the checker, the import guard and the reduced
        builtins, so that the operating system's layers are alone. Never raises. A run whose zygote
        dies, or whose guest is killed early from outside, is repeated once, as programs have no
        side effects.
        """
        try:
            options = {"helpers": helpers, "unchecked": unchecked, "echo_lines": echo_lines}
            return self._run(source, tree, stdin, options)
        except Exception as error:
            log.exception("a program could not be run")
            return Outcome("crashed", error=f"the sandbox failed: {type(error).__name__}")

    def _run(
        self,
        source: str,
        tree: ast.Module | Unparsed | None,
        stdin: str,
        options: Mapping[str, bool],
    ) -> Outcome:
        waits_until = time.monotonic() + self._policy.limits.queue_seconds
        outcome = _unavailable("it is not started")
        for _ in range(2):
            process = self._process
            if process is None:
                break
            if not options["unchecked"]:
                violations, tree = examine(source, process.policy, tree)
                violations = violations or _too_much_input(stdin, process.policy)
                if violations:
                    return _refusal(violations)
            encoded = program.encode(source, tree, stdin=stdin, **options)
            try:
                outcome = process.run(encoded, max(0.0, waits_until - time.monotonic()))
            except ZygoteGone as error:
                outcome = _unavailable(str(error))
                self._restart(process, str(error))
            except KilledFromOutside as error:
                outcome = error.outcome
            except OSError as error:
                return _unavailable(str(error))
            else:
                self._renew_if_old(process)
                break
        return outcome

    def _restart(self, dead: ZygoteProcess, reason: str) -> None:
        with self._changing:
            if self._process is not dead:
                return
            log.warning("starting another zygote: %s", reason)
            dead.kill()
            try:
                self._swap(ZygoteProcess(dead.policy))
                self._restarts += 1
            except SandboxUnavailable as error:
                log.error("%s", error)

    def _renew_if_old(self, process: ZygoteProcess) -> None:
        limits = process.policy.limits
        age = time.monotonic() - process.started
        if process.served < limits.zygote_guests and age < limits.zygote_minutes * 60:
            return
        with self._changing:
            if self._renewing or self._process is not process:
                return
            self._renewing = True
        threading.Thread(target=self._renew, args=[process], name="zygote-renewal").start()

    def _renew(self, old: ZygoteProcess) -> None:
        try:
            new = ZygoteProcess(old.policy)
        except SandboxUnavailable as error:
            log.error("the zygote stays, for its successor did not start: %s", error)
            return
        finally:
            self._renewing = False
        with self._changing:
            if self._process is old:
                self._swap(new)
            else:
                new.close()

    def status(self) -> dict[str, Any]:
        """Return what health reports: the layers in force, and counts of guests and restarts."""
        process = self._process
        if process is None:
            return {"serving": False}
        return {
            "serving": True,
            "layers": process.layers,
            "probes": {result.name: result.passed for result in self._probes},
            "guests": {
                "prepared": process.prepared,
                "running": process.running,
                "served": process.served,
            },
            "zygote": {
                "restarts": self._restarts,
                "age_seconds": round(time.monotonic() - process.started),
            },
        }


def _probe(process: ZygoteProcess, secrets: Sequence[str]) -> tuple[ProbeResult, ...]:
    def run(source: str) -> Outcome:
        try:
            return process.run(program.encode(source, unchecked=True), _PROBE_TIMEOUT)
        except (ZygoteGone, KilledFromOutside) as error:
            return _unavailable(str(error))

    policy = process.policy
    in_force = {layer for layer, detail in process.layers.items() if detail}
    first = policy.identity.first_uid
    return run_probes(
        run,
        layers=in_force | policy.required_layers,
        denied=policy.denied_syscalls,
        zygote=process.pid,
        uids=range(first, first + policy.identity.uid_count),
        rlimits=rlimits(policy),
        secrets=secrets,
    )


def _check_warm_up(policy: Policy) -> None:
    """Raise SandboxUnavailable for a program that would break the policy's own rules."""
    for source in policy.warm_up:
        if violations := check(source, policy):
            raise SandboxUnavailable(
                f"a warm-up program of the policy breaks its rules ({violations[0].message}); "
                "cure: tools/policy-lint says which, and where"
            )


def _unavailable(reason: str) -> Outcome:
    return Outcome("unavailable", error=f"the sandbox cannot run programs now ({reason})")


def _too_much_input(stdin: str, policy: Policy) -> list[Violation]:
    size, limit = len(stdin.encode("utf-8", "surrogatepass")), policy.limits.input_bytes
    if size <= limit:
        return []
    message = f"the lines for `input` are too long: {size} bytes; at most {limit} may be sent"
    return [Violation("input-too-long", 1, 1, message, "")]


def _refusal(violations: Sequence[Violation]) -> Outcome:
    first = violations[0]
    kind: Kind = "syntax_error" if first.rule == "syntax" else "rejected"
    return Outcome(kind, error=first.message, violations=tuple(violations))
