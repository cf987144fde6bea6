"""A policy in two parts: the whole, and what is left without modules beyond the standard library.

Each part has a zygote of its own, so that a program that needs no library is not forked from a
process that has imported them: with sympy, numpy and matplotlib that is 3 times as dear.
"""

import sys
from dataclasses import replace

from sandbox.policy.loader import Policy


def libraries(policy: Policy) -> list[str]:
    """Return the allowed modules that are not Python's own."""
    return [name for name in policy.allowed_imports if not is_standard(name)]


def without_libraries(policy: Policy) -> Policy:
    """Return the policy of programs that need none; that of those that do has the other user ids.

    `policy` itself is returned where it has no libraries.
    """
    if not libraries(policy):
        return policy
    names, modules = policy.preloaded, policy.allowed_imports
    identity = policy.identity
    return replace(
        policy,
        allowed_imports={name: modules[name] for name in modules if is_standard(name)},
        preloaded={name: module for name, module in names.items() if is_standard(module)},
        prelude=(),
        warm_up=(),
        limits=replace(policy.limits, picture_bytes=0),
        identity=replace(identity, uid_count=identity.uid_count - identity.uid_count // 2),
    )


def with_libraries(policy: Policy) -> Policy:
    """Return the policy of programs that need one; the last half of the user ids is theirs."""
    first, count = policy.identity.first_uid, policy.identity.uid_count
    others = count - count // 2
    identity = replace(policy.identity, first_uid=first + others, uid_count=count // 2)
    return replace(policy, identity=identity)


def is_standard(module: str) -> bool:
    """Return whether a module is Python's own."""
    return module.partition(".")[0] in sys.stdlib_module_names
