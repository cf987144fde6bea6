"""The boundary's self-test under a policy, as findings."""

from collections.abc import Iterator

from sandbox.policy import Policy
from sandbox.sandbox import Sandbox, SandboxUnavailable
from tools.policy_lint.finding import Finding, Rule
from tools.policy_lint.subject import Subject

UNAVAILABLE = Rule(
    "probe-unavailable",
    "error",
    "The sandbox does not start under this policy on this machine",
    "A layer that the policy requires is not to be had here; the bot would refuse to serve.",
    "required_layers with landlock on a kernel without it",
    "The message names the layer and what to change.",
)
FAILED = Rule(
    "probe-failed",
    "error",
    "Something that must be impossible is possible",
    "The self-test tried it in a real guest, past the checker, and no layer refused.",
    "a socket can be opened",
    "Deny what the message names; run `tools/policy-lint` without --probe for the entry.",
)
RULES = {rule.id: rule for rule in (UNAVAILABLE, FAILED)}


def find(subject: Subject, policy: Policy) -> Iterator[Finding]:
    """One finding for each probe that a required layer should have refused."""
    sandbox = Sandbox(policy)
    try:
        sandbox.start()
        results = sandbox.probe()
    except SandboxUnavailable as error:
        message = f"the sandbox does not start: {error}"
        yield subject.at_heading(
            UNAVAILABLE, "required_layers", message, "change what the message names"
        )
        return
    finally:
        sandbox.close()
    for result in results:
        if result.required and not result.passed:
            message = f"{result.name} is possible: {result.detail}"
            cure = "deny what it needs, or require the layer that refuses it"
            yield subject.at_heading(FAILED, "denied_syscalls", message, cure, result.name)
