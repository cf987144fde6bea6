"""What the bot says of itself: greeting, help, privacy, and how to send a program."""

from function.answers.limits import limit_sentence, size
from function.answers.replies import lines
from function.parts import Parts, code, parts
from function.telegram.types import Action
from sandbox import Policy

SEND_AS_TEXT = parts(
    "I cannot fetch files here. Please send the program as a text message instead."
)
NOT_A_PROGRAM = parts("This file is too long or no text. Please send the program as a message.")
FILE_LATER = parts("Telegram does not give me the file now. Try again in a moment.")
MODE_IS_PRIVATE = parts("Compact or full answers are your own choice: send /mode to me in private.")
TOO_SLOW = parts("This takes too long here. Send it to me in a private chat.")

EXAMPLES = (
    "2+2",
    "math.sqrt(2) * 10**3",
    "total = 0\nfor year in range(1, 11):\n    total = (total + 1200) * 1.03\nround(total, 2)",
)
PRIVACY = (
    "Your programs run in a sandbox that ends with them. They and their output are not logged.\n"
    "Kept are: your choice of /mode; for a day, a fingerprint of each message that I answered,"
    " to tell whether an edit changed it, and your last answer in each chat, which _ and ans stand"
    " for in your next program; for two hours, my answers, to repeat one that was lost on its way;"
    " for a quarter of an hour, a program of yours that waits for input, with its lines. Nothing is"
    " given to others."
)

_MESSAGES: dict[Action, Parts] = {
    "privacy": parts(PRIVACY),
    "usage": parts("Send a program after the command, for example: ", code("/cl 2+2")),
    "unknown_command": parts(
        "I know no such command. Send me Python, for example ", code("2+2"), ", or /help."
    ),
    "no_text": parts(
        "I can read text only. Send me Python, for example ", code("2+2"), ", or /help."
    ),
}


def about(action: Action, policy: Policy, username: str | None) -> Parts:
    """The answer to what runs nothing and changes nothing."""
    match action:
        case "start" | "help":
            return _help(policy, username)
        case "too_long":
            return parts(limit_sentence("source", policy))
    return _MESSAGES[action]


def _help(policy: Policy, username: str | None) -> Parts:
    """What the bot does, with examples, and the imports and limits that are in force."""
    limits, rlimits = policy.limits, policy.rlimits
    inline: Parts = ()
    if username:
        inline = parts(" In any chat: ", code(f"@{username} 2+2"), ".")
    asks = " A program that calls input() asks you." if limits.input_bytes else ""
    greeting = (
        "I am a Python calculator. Send me anything from a sum to a whole program:"
        " I answer with what it prints and the value of its last expression.\n"
    )
    rules = (
        f"\nReady to use: {', '.join(sorted(policy.preloaded))}.\n"
        f"May be imported: {', '.join(sorted(policy.allowed_imports))}.\n"
        f"Limits: {rlimits.cpu_seconds} s of computing, {limits.wall_seconds} s in all,"
        f" {rlimits.address_space_mib} MiB of memory, {size(limits.output_bytes)} printed,"
        f" {size(limits.source_bytes)} of program.\n"
        f"_ and ans are your last answer.{asks}\n"
        "/mode: compact or full answers. /privacy: what is kept."
    )
    groups = parts("\nIn groups: ", code("/cl 2+2"), ", or a reply to me.", *inline, rules)
    examples: tuple[str, ...] = EXAMPLES
    if "sympy" in policy.allowed_imports and policy.prelude:
        examples += ("integrate(sin(x)**2, x)",)
    if "plt" in policy.preloaded and limits.picture_bytes:
        examples += ("plt.plot([1, 4, 9, 16])",)
    return lines([parts(greeting), *((code(text),) for text in examples), groups])


def mode_message(compact: bool) -> Parts:
    """Says which of the two kinds of answer is in force now."""
    kind, example = ("compact", "4") if compact else ("full", "4 = 2+2")
    return parts(f"Answers are {kind} now: ", code(example), ". /mode changes it back.")
