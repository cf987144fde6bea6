"""What the bot says in words of its own: sentences.toml, with what the policy in force says."""

import tomllib
from pathlib import Path
from typing import Any, Literal

from function.errors import Reason
from function.parts import Parts, marked
from function.program import can_draw, has_algebra
from function.telegram.types import Action
from sandbox import Kind, Policy

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
EXAMPLES: tuple[str, ...] = tuple(_TEXTS["examples"])


def say(name: str, **values: object) -> Parts:
    """A sentence, with values that are no stranger's."""
    return marked(_TEXTS["sentences"][name].format(**values))


def say_limit(limit: Kind | Reason | Literal["source"], policy: Policy) -> Parts:
    """Which limit was met, and what to do where something can be done."""
    return marked(_TEXTS["limits"][limit].format(**_limits(policy)))


def about(action: Action, policy: Policy, username: str | None) -> Parts:
    """The answer to what runs nothing and changes nothing."""
    match action:
        case "start" | "help":
            return _help(policy, username)
        case "too_long":
            return say_limit("source", policy)
    return say(action)


def _help(policy: Policy, username: str | None) -> Parts:
    """What the bot does, with examples, and the imports and limits that are in force."""
    examples = [*EXAMPLES]
    if has_algebra(policy):
        examples.append("integrate(sin(x)**2, x)")
    if can_draw(policy):
        examples.append("plt.plot([1, 4, 9, 16])")
    return say(
        "help",
        examples="\n".join(f"`{each}`" for each in examples),
        inline=f" In any chat: `@{username} 2+2`." if username else "",
        preloaded=", ".join(sorted(policy.preloaded)),
        imports=", ".join(sorted(policy.allowed_imports)),
        asks=" A program that calls input() asks you." if policy.limits.input_bytes else "",
        **_limits(policy),
    )


def _limits(policy: Policy) -> dict[str, Any]:
    return {
        "limits": policy.limits,
        "rlimits": policy.rlimits,
        "output": _size(policy.limits.output_bytes),
        "source": _size(policy.limits.source_bytes),
    }


def _size(count: int) -> str:
    """A number of bytes, in KiB where that is exact."""
    return f"{count // 1024} KiB" if count % 1024 == 0 else f"{count} bytes"
