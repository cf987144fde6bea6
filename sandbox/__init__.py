"""Runs untrusted Python programs within one policy; knows nothing of Telegram or HTTP.

These are the public names. They are imported when they are first used, because a zygote loads
modules of this package too and its guests would pay for all that comes with them.
"""

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from sandbox.check.checker import Violation
    from sandbox.check.source import Unparsed, parse
    from sandbox.fork_server.outcome import Kind, Outcome
    from sandbox.fork_server.png import Picture
    from sandbox.fork_server.zygote_process import SandboxUnavailable, longest_answer_seconds
    from sandbox.policy.loader import Limits, Policy, PolicyError, load_policy
    from sandbox.policy_watch import PolicyWatch
    from sandbox.sandbox import Sandbox

_NAMES = {  # by module
    "check.checker": ("Violation",),
    "check.source": ("Unparsed", "parse"),
    "fork_server.outcome": ("Kind", "Outcome"),
    "fork_server.png": ("Picture",),
    "fork_server.zygote_process": ("SandboxUnavailable", "longest_answer_seconds"),
    "policy.loader": ("Limits", "Policy", "PolicyError", "load_policy"),
    "policy_watch": ("PolicyWatch",),
    "sandbox": ("Sandbox",),
}


def __getattr__(name: str) -> object:
    """Import a public name from its module (PEP 562)."""
    from importlib import import_module

    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
