"""The sandbox as the rest of the project sees it: programs in, outcomes out."""

import ast
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

from sandbox.check.checker import Violation, check, examine
from sandbox.check.libraries import needs_libraries
from sandbox.check.source import Unparsed, parse
from sandbox.fork_server.outcome import Kind, Outcome
from sandbox.fork_server.program import Options, encode
from sandbox.fork_server.slots import Slots
from sandbox.fork_server.supervisor import Supervisor
from sandbox.fork_server.zygote_process import (
    KilledFromOutside,
    SandboxUnavailable,
    ZygoteGone,
    ZygoteProcess,
)
from sandbox.policy.libraries import in_parts
from sandbox.policy.loader import Policy
from sandbox.self_test import ProbeResult, Results, run_probes

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


class _Serving(NamedTuple):
    """A policy in force, with the zygotes for programs that need its libraries and that do not.

    `libraries` is None where the policy has none, or where that zygote did not start: then
    `missing` says why. `probes` are those of the start.
    """

    policy: Policy
    probes: Results
    plain: Supervisor
    libraries: Supervisor | None = None
    missing: str = ""

    @property
    def supervisors(self) -> tuple[Supervisor, ...]:
        return (self.plain, self.libraries) if self.libraries else (self.plain,)

    def close(self) -> None:
        for supervisor in self.supervisors:
            supervisor.close()

    def supervisor_for(self, tree: ast.Module | Unparsed) -> Supervisor | None:
        """Return what forks the guest of a program; None if that is missing."""
        if self.plain.process.policy is self.policy or isinstance(tree, Unparsed):
            return self.plain
        names = self.libraries.process.prelude_names if self.libraries else frozenset()
        names |= self.policy.preloaded.keys() - self.plain.process.policy.preloaded.keys()
        return self.libraries if needs_libraries(tree, names) else self.plain


class Sandbox:
    """Runs programs under one policy at a time. Every method may be called from any thread."""

    def __init__(self, policy: Policy, secrets: Sequence[str] = ()) -> None:
        """Hold the first policy, and the files that the self-test shows to be out of reach."""
        self._policy = policy
        self._secrets = secrets
        self._serving: _Serving | None = None
        self._changing = threading.Lock()

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    def start(self) -> None:
        """Start the zygote and test the boundary. Raises SandboxUnavailable, with the cure.

        Where only the policy's libraries cannot be had, that is logged, and programs that need none
        are served; `status` says so.
        """
        self.reload(self._policy)

    def reload(self, policy: Policy) -> None:
        """Test the boundary under a policy and put it in force; running programs keep the old one.

        Raises SandboxUnavailable, and then the old policy goes on.
        """
        _check_programs(policy)
        with self._changing:
            old = self._serving
            self._serving = self._start(policy, must_be_whole=bool(old and old.libraries))
            self._policy = policy
            if old is not None:
                old.close()

    def _start(self, policy: Policy, *, must_be_whole: bool) -> _Serving:
        restarts = [one.restarts for one in self._serving.supervisors] if self._serving else []
        restarts += [0, 0]
        slots = Slots(policy.limits.concurrent_guests)
        small, whole = in_parts(policy)
        plain, probes = self._started(small, slots)
        serving = _Serving(policy, probes, Supervisor(plain, restarts[0]))
        if whole is None:
            return serving
        try:
            process, more = self._started(whole, slots)
        except BaseException as error:
            if must_be_whole or not isinstance(error, SandboxUnavailable):
                plain.close()
                raise
            log.error("programs that need libraries are not served: %s", error)
            return serving._replace(missing=str(error))
        libraries = Supervisor(process, restarts[1])
        return serving._replace(libraries=libraries, probes=_worst(probes, more))

    def _started(self, policy: Policy, slots: Slots) -> tuple[ZygoteProcess, Results]:
        """Return a zygote whose boundary was tested, and what was found."""
        process = ZygoteProcess(policy, slots=slots)
        try:
            results = probe_zygote(process, self._secrets)
            failed = [r for r in results if r.required and not r.passed]
            if failed:
                raise BoundaryOpen(failed)
        except BaseException:
            process.close()
            raise
        return process, results

    def probe(self) -> Results:
        """Try again now what must be impossible, in guests as programs get them."""
        if self._serving is None:
            raise SandboxUnavailable("the sandbox is not started")
        supervisors = self._serving.supervisors
        return _worst(*(probe_zygote(one.process, self._secrets) for one in supervisors))

    def close(self) -> None:
        """End the zygotes; programs that run may finish within their time."""
        with self._changing:
            if self._serving is not None:
                self._serving.close()
                self._serving = None

    def run(
        self,
        source: str,
        tree: ast.Module | Unparsed | None = None,
        **options: Unpack[Options],
    ) -> Outcome:
        """Check a program and run it in a process of its own.

        Takes any text, and what `parse` has made of it, if that is known. Never raises. A run whose
        zygote dies, or whose guest is killed early from outside, is repeated once, as programs have
        no side effects.
        """
        try:
            return self._run(source, tree, options)
        except Exception as error:
            log.exception("a program could not be run")
            return Outcome("crashed", error=f"the sandbox failed: {type(error).__name__}")

    def _run(self, source: str, tree: ast.Module | Unparsed | None, options: Options) -> Outcome:
        waits_until = time.monotonic() + self._policy.limits.queue_seconds
        outcome = _unavailable("it is not started")
        tries = 2
        while tries:
            serving = self._serving
            if serving is None:
                break
            if not options.get("unchecked"):
                violations, tree = examine(source, serving.policy, tree)
                violations = violations or _too_much_input(options, serving.policy)
                if violations:
                    return _refusal(violations)
            tree = tree or parse(source)
            supervisor = serving.supervisor_for(tree)
            if supervisor is None:
                return Outcome("error", error="the libraries that this needs are out of order")
            process = supervisor.process
            encoded = encode(source, tree, **options)
            try:
                outcome = process.run(encoded, max(0.0, waits_until - time.monotonic()))
            except ZygoteGone as error:
                outcome = _unavailable(str(error))
                supervisor.restart(process, str(error))
                tries -= serving is self._serving  # no try is lost to a reload
            except KilledFromOutside as error:
                outcome = error.outcome
                tries -= 1
            except OSError as error:
                return _unavailable(str(error))
            else:
                supervisor.renew_if_old(process)
                break
        return outcome

    def status(self) -> dict[str, Any]:
        """Return what health reports: the layers in force, and counts of guests and restarts.

        `libraries` is there where the policy has them: the same of their own zygote.
        """
        serving = self._serving
        if serving is None:
            return {"serving": False}
        probes = {result.name: result.passed for result in serving.probes}
        status = {"serving": True, "probes": probes} | serving.plain.status()
        if serving.libraries:
            status["libraries"] = {"serving": True} | serving.libraries.status()
        elif serving.missing:
            status["libraries"] = {"serving": False, "reason": serving.missing}
        return status


def _worst(*results: Results) -> Results:
    """Return of each probe the result that failed, if one did."""
    by_probe = zip(*results, strict=True)
    return tuple(next((one for one in same if not one.passed), same[0]) for same in by_probe)


def probe_zygote(process: ZygoteProcess, secrets: Sequence[str]) -> Results:
    """Try in guests of a zygote what must be impossible."""

    def run(source: str) -> Outcome:
        try:
            return process.run(encode(source, unchecked=True), _PROBE_TIMEOUT)
        except (ZygoteGone, KilledFromOutside) as error:
            return _unavailable(str(error))

    policy = process.policy
    in_force = {layer for layer, detail in process.layers.items() if detail}
    return run_probes(run, policy, in_force | policy.required_layers, process.pid, secrets)


def _check_programs(policy: Policy) -> None:
    """Raise SandboxUnavailable for a program that would break the policy's own rules."""
    for source in (*policy.prelude, *policy.warm_up):
        if violations := check(source, policy):
            raise SandboxUnavailable(
                f"a program of the policy breaks its rules ({violations[0].message}); "
                "cure: tools/policy-lint says which, and where"
            )


def _unavailable(reason: str) -> Outcome:
    return Outcome("unavailable", error=f"the sandbox cannot run programs now ({reason})")


def _too_much_input(options: Options, policy: Policy) -> list[Violation]:
    size = len(options.get("stdin", "").encode("utf-8", "surrogatepass"))
    limit = policy.limits.input_bytes
    if size <= limit:
        return []
    message = f"the lines for `input` are too long: {size} bytes; at most {limit} may be sent"
    return [Violation("input-too-long", 1, 1, message, "")]


def _refusal(violations: Sequence[Violation]) -> Outcome:
    first = violations[0]
    kind: Kind = "syntax_error" if first.rule == "syntax" else "rejected"
    return Outcome(kind, error=first.message, violations=tuple(violations))
