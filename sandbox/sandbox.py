"""The sandbox as the rest of the project sees it: programs in, outcomes out."""

import ast
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

from sandbox.check.checker import Violation, check, examine
from sandbox.check.source import Unparsed
from sandbox.fork_server.outcome import Kind, Outcome
from sandbox.fork_server.request import request
from sandbox.fork_server.zygote_process import Generation, SandboxUnavailable, ZygoteGone, rlimits
from sandbox.policy.loader import Policy
from sandbox.self_test import ProbeResult, run_probes

__all__ = ["BoundaryOpen", "Kind", "Outcome", "Sandbox", "SandboxUnavailable"]

log = logging.getLogger(__name__)

_MOST_SHOWN = 5  # failed probes in one message
_PROBE_PATIENCE = 30.0  # seconds that a probe may wait for a guest


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
        """Take the first policy, and the files that the self-test shows to be out of reach."""
        self._policy = policy
        self._secrets = secrets
        self._probes: tuple[ProbeResult, ...] = ()
        self._generation: Generation | None = None
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
            new = Generation(policy)
            try:
                self._probes = self._test(new)
            except BaseException:
                new.close()
                raise
            self._swap(new)

    def probe(self) -> tuple[ProbeResult, ...]:
        """Try again now what must be impossible, in guests as programs get them."""
        generation = self._generation
        if generation is None:
            raise SandboxUnavailable("the sandbox is not started")
        return _probe(generation, self._secrets)

    def _test(self, generation: Generation) -> tuple[ProbeResult, ...]:
        results = _probe(generation, self._secrets)
        failed = [r for r in results if r.required and not r.passed]
        if failed:
            raise BoundaryOpen(failed)
        return results

    def _swap(self, new: Generation) -> None:
        old, self._generation, self._policy = self._generation, new, new.policy
        if old is not None:
            old.close()

    def close(self) -> None:
        """End the zygote; programs that run may finish within their time."""
        with self._changing:
            if self._generation is not None:
                self._generation.close()
                self._generation = None

    def run(
        self,
        source: str,
        tree: ast.Module | Unparsed | None = None,
        *,
        helpers: bool = False,
        unchecked: bool = False,
    ) -> Outcome:
        """Check a program and run it in a process of its own.

        Takes any text, and what `parse` has made of it, if that is known; `helpers` binds nf and
        fact; `unchecked` leaves out the checker, the import guard and the reduced builtins, so that
        the operating system's layers are alone. Never raises. A run whose zygote dies is repeated
        once, as programs have no side effects.
        """
        reason = "it is not started"
        for _ in range(2):
            generation = self._generation
            if generation is None:
                break
            if not unchecked:
                violations, tree = examine(source, generation.policy, tree)
                if violations:
                    return _refusal(violations)
            asked = request(source, tree, helpers=helpers, unchecked=unchecked)
            try:
                outcome = generation.run(asked, generation.policy.limits.queue_seconds)
            except ZygoteGone as error:
                reason = str(error)
                self._restart(generation, reason)
            except OSError as error:
                reason = str(error)
                break
            else:
                self._renew_if_old(generation)
                return outcome
        return Outcome("unavailable", error=f"the sandbox cannot run programs now ({reason})")

    def _restart(self, dead: Generation, reason: str) -> None:
        with self._changing:
            if self._generation is not dead:
                return
            log.warning("starting another zygote: %s", reason)
            dead.kill()
            try:
                self._swap(Generation(dead.policy))
                self._restarts += 1
            except SandboxUnavailable as error:
                log.error("%s", error)

    def _renew_if_old(self, generation: Generation) -> None:
        limits = generation.policy.limits
        age = time.monotonic() - generation.started
        if generation.served < limits.zygote_guests and age < limits.zygote_minutes * 60:
            return
        with self._changing:
            if self._renewing or self._generation is not generation:
                return
            self._renewing = True
        threading.Thread(target=self._renew, args=[generation], name="zygote-renewal").start()

    def _renew(self, old: Generation) -> None:
        try:
            new = Generation(old.policy)
        except SandboxUnavailable as error:
            log.error("the zygote stays, for its successor did not start: %s", error)
            return
        finally:
            self._renewing = False
        with self._changing:
            if self._generation is old:
                self._swap(new)
            else:
                new.close()

    def status(self) -> dict[str, Any]:
        """Return what health reports: the layers in force, and counts of guests and restarts."""
        generation = self._generation
        if generation is None:
            return {"serving": False}
        return {
            "serving": True,
            "layers": generation.layers,
            "probes": {result.name: result.passed for result in self._probes},
            "guests": {
                "prepared": generation.prepared,
                "running": generation.running,
                "served": generation.served,
            },
            "zygote": {
                "restarts": self._restarts,
                "age_seconds": round(time.monotonic() - generation.started),
            },
        }


def _probe(generation: Generation, secrets: Sequence[str]) -> tuple[ProbeResult, ...]:
    def run(source: str) -> Outcome:
        try:
            return generation.run(request(source, unchecked=True), _PROBE_PATIENCE)
        except ZygoteGone as error:
            return Outcome("unavailable", error=str(error))

    policy = generation.policy
    in_force = {layer for layer, detail in generation.layers.items() if detail}
    first = policy.identity.first_uid
    return run_probes(
        run,
        layers=in_force | policy.required_layers,
        zygote=generation.pid,
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


def _refusal(violations: Sequence[Violation]) -> Outcome:
    first = violations[0]
    kind: Kind = "syntax_error" if first.rule == "syntax" else "rejected"
    return Outcome(kind, error=first.message, violations=tuple(violations))
