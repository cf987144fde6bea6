"""The boundary's self-test under a policy, as findings."""

from collections.abc import Iterator

from sandbox.policy.loader import Policy
from sandbox.sandbox import BoundaryOpen, Sandbox, SandboxUnavailable
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
    "Deny what the message names; the other rules say by which entry.",
)
RULES = {rule.id: rule for rule in (UNAVAILABLE, FAILED)}


def find(subject: Subject, policy: Policy) -> Iterator[Finding]:
    """One finding for each probe that a layer should have refused; a start runs all of them."""
    sandbox = Sandbox(policy)
    try:
        sandbox.start()
    except BoundaryOpen as error:
        for probe in error.failed:
            message = f"the probe {probe.name!r} got through: {probe.detail}"
            cure = "deny what it calls, or require the layer that refuses it"
            yield subject.at_heading(FAILED, "denied_syscalls", message, cure, probe.name)
    except SandboxUnavailable as error:
        message, _, cure = str(error).partition("; cure: ")
        yield subject.at_heading(UNAVAILABLE, "required_layers", message, cure or "see SECURITY.md")
    finally:
        sandbox.close()
