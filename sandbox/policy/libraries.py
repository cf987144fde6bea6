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


def in_parts(policy: Policy) -> tuple[Policy, Policy | None]:
    """Return the policies of programs that need no library, and of those that do.

    The last half of the user ids is theirs. Without libraries the policy itself is the first part,
    and there is no other.
    """
    if not libraries(policy):
        return policy, None
    names, modules, identity = policy.preloaded, policy.allowed_imports, policy.identity
    theirs = identity.uid_count // 2
    others = identity.uid_count - theirs
    plain = replace(
        policy,
        allowed_imports={name: modules[name] for name in modules if is_standard(name)},
        preloaded={name: module for name, module in names.items() if is_standard(module)},
        prelude=(),
        warm_up=(),
        limits=replace(policy.limits, picture_bytes=0),
        identity=replace(identity, uid_count=others),
    )
    identity = replace(identity, first_uid=identity.first_uid + others, uid_count=theirs)
    return plain, replace(policy, identity=identity)


def is_standard(module: str) -> bool:
    """Return whether a module is Python's own."""
    return module.partition(".")[0] in sys.stdlib_module_names
