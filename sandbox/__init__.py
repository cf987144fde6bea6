"""Runs untrusted Python programs within one policy; knows nothing of Telegram or HTTP.

These are the public names. They are imported when they are first used, because a zygote loads
modules of this package too and its guests would pay for all that comes with them.
"""

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from sandbox.check.checker import Violation as Violation
    from sandbox.check.source import Unparsed as Unparsed
    from sandbox.check.source import parse as parse
    from sandbox.fork_server.outcome import Kind as Kind
    from sandbox.fork_server.outcome import Outcome as Outcome
    from sandbox.fork_server.png import Picture as Picture
    from sandbox.fork_server.zygote_process import SandboxUnavailable as SandboxUnavailable
    from sandbox.fork_server.zygote_process import longest_answer_seconds as longest_answer_seconds
    from sandbox.policy.loader import Limits as Limits
    from sandbox.policy.loader import Policy as Policy
    from sandbox.policy.loader import PolicyError as PolicyError
    from sandbox.policy.loader import load_policy as load_policy
    from sandbox.policy_watch import PolicyWatch as PolicyWatch
    from sandbox.sandbox import Sandbox as Sandbox

_MODULES = {
    "Kind": "fork_server.outcome",
    "Limits": "policy.loader",
    "Outcome": "fork_server.outcome",
    "Picture": "fork_server.png",
    "Policy": "policy.loader",
    "PolicyError": "policy.loader",
    "PolicyWatch": "policy_watch",
    "Sandbox": "sandbox",
    "SandboxUnavailable": "fork_server.zygote_process",
    "Unparsed": "check.source",
    "Violation": "check.checker",
    "load_policy": "policy.loader",
    "longest_answer_seconds": "fork_server.zygote_process",
    "parse": "check.source",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
