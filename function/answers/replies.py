"""Words for people: what the bot says, as messages that Telegram takes as they are.

A message holds 1 to 4096 characters (https://core.telegram.org/bots/api#sendmessage), an inline
query's result id 1 to 64 bytes (#inlinequeryresultarticle). What a program printed stands in a
`pre` or `code` entity, in which nothing is a link, a mention or a command.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from function.answers.visible import beginning, cut, units
from function.calculator import Answer
from function.parts import Part, Parts, code, parts, text_of
from function.telegram.bot_api import Article, Entity, Json, Message
from sandbox import Policy

MESSAGE_UNITS = 4096
CAPTION_UNITS = 1024
TITLE_UNITS = 64
DESCRIPTION_UNITS = 200
NOTE_UNITS = 600  # the longest error, hint or refusal
REFUSALS_SHOWN = 3
EMPTY: Json = {"type": "empty", "body": ""}

NO_MESSAGE = Message("")


@dataclass(frozen=True)
class Reply:
    """What is said to one message. Output that does not fit is also in `document`, whole."""

    message: Message
    caption: Message = NO_MESSAGE
    document: str = ""


def reply(answer: Answer, policy: Policy, *, compact: bool = False) -> Reply:
    """An answer for a chat. `compact` leaves the program out of `4 = 2+2`."""
    message = _message(answer, policy, compact, MESSAGE_UNITS)
    if units(answer.output) <= units(message.text):
        return Reply(message)
    caption = _message(answer, policy, compact, CAPTION_UNITS)
    return Reply(message, caption, answer.output)


def _message(answer: Answer, policy: Policy, compact: bool, room: int) -> Message:
    output = answer.output
    notes = [_cut(note) for note in _notes(answer, policy)]
    if not output:
        return compose(notes if answer.outcome.kind != "ok" else [parts("No output."), *notes])
    room -= sum(units(text_of(note)) + 1 for note in notes)
    echo = f"{output} = {answer.expression}"
    has_echo = answer.outcome.kind == "ok" and answer.expression and "\n" not in output
    fits = has_echo and not compact and units(echo) <= room
    return compose([[code(echo if fits else cut(output, room))], *notes])


def _cut(note: Parts) -> Parts:
    """A note within NOTE_UNITS: its longest part is shortened."""
    excess = units(text_of(note)) - NOTE_UNITS
    if excess <= 0:
        return note
    longest = max(note, key=lambda part: len(part.text))
    shorter = longest._replace(text=cut(longest.text, units(longest.text) - excess))
    return tuple(shorter if part is longest else part for part in note)


def articles(answer: Answer, policy: Policy) -> list[Article]:
    """The answer as inline results: `4 = 2+2`, `2+2 = 4` and `4`, or else the one there is."""
    output, program = answer.output, answer.expression
    texts = [f"{output} = {program}", f"{program} = {output}", output]
    is_value = answer.outcome.kind == "ok" and program and output and "\n" not in output
    if not is_value or units(texts[0]) > MESSAGE_UNITS:
        return [article(_message(answer, policy, compact=True, room=MESSAGE_UNITS))]
    return [article(compose([[code(text)]])) for text in dict.fromkeys(texts)]


def article(message: Message) -> Article:
    """A message as an inline result, with an id that differs where the text does."""
    line = " ".join(message.text.split())
    title = line if units(line) <= TITLE_UNITS else beginning(line, TITLE_UNITS - 1) + "…"
    more = beginning(line, DESCRIPTION_UNITS) if title != line else ""
    digest = hashlib.sha256(message.text.encode()).hexdigest()[:32]
    return Article(digest, title, more, message)


def gateway(call: Json | None) -> Json:
    """A call as the gateway reads it: its fields, and the text again under `type` and `body`."""
    if call is None:
        return EMPTY
    fields = {name: value for name, value in call.items() if name != "method"}
    return fields | ({"type": "text", "body": call["text"]} if "text" in call else EMPTY)


def _notes(answer: Answer, policy: Policy) -> list[Parts]:
    """What is said beside the output: an error, why the program did not end well, a hint."""
    return _verdict(answer, policy) + ([answer.hint] if answer.hint else [])


def _verdict(answer: Answer, policy: Policy) -> list[Parts]:
    outcome, limits = answer.outcome, policy.limits
    match outcome.kind:
        case "ok":
            return []
        case "error":
            return [(code(answer.error or "The program failed and did not say why."),)]
        case "syntax_error":
            return [(code(_syntax_error(answer)),)]
        case "rejected":
            return _refusal(answer)
        case "cpu_limit":
            text = f"Stopped: it computed longer than the limit of {policy.rlimits.cpu_seconds} s."
        case "wall_limit":
            text = f"Stopped: it took longer than the limit of {limits.wall_seconds} s."
        case "memory_limit":
            text = (
                f"Stopped: it needs more memory than the {policy.rlimits.address_space_mib} MiB"
                " that a program may use."
            )
        case "output_limit":
            text = f"Stopped: it printed more than the limit of {size(limits.output_bytes)}."
        case "crashed":
            text = "Stopped: the program crashed the Python that ran it."
        case "busy":
            text = "Too many programs at once just now. Please try again in a few seconds."
        case "unavailable":
            text = "Out of order just now. Please try again in a minute."
    return [parts(text)]


def _syntax_error(answer: Answer) -> str:
    error = answer.error or "SyntaxError: invalid syntax"
    line = f" (line {answer.violations[0].line})" if answer.violations else ""
    excerpt = f"{answer.excerpt}\n" if answer.excerpt else ""
    return f"{excerpt}{error}{line}"


def _refusal(answer: Answer) -> list[Parts]:
    first, *others = answer.violations
    if not others:
        line = f"line {first.line}: " if first.line > 1 else ""
        return [parts(f"Not run: {line}", *_named(first.message))]
    notes = [parts(f"Not run:\nline {first.line}: ", *_named(first.message))]
    # What is allowed instead stands behind a semicolon, and is said once.
    notes += [
        parts(f"line {each.line}: ", *_named(each.message.partition(";")[0]))
        for each in others[: REFUSALS_SHOWN - 1]
    ]
    if len(answer.violations) > REFUSALS_SHOWN:
        notes.append(parts(f"… and {len(answer.violations) - REFUSALS_SHOWN} more."))
    return notes


def _named(message: str) -> Parts:
    """A violation's message in parts: names of the program stand in backticks, and hold none."""
    pieces = enumerate(message.split("`"))
    return parts(*(code(piece) if index % 2 else piece for index, piece in pieces if piece))


def compose(lines: Iterable[Iterable[Part]]) -> Message:
    """Put texts below one another."""
    text = ""
    entities = []
    for line in lines:
        text += "\n" if text else ""
        for kind, piece in line:
            if kind and piece:
                entities.append(Entity(kind, units(text), units(piece)))
            text += piece
    return Message(text, tuple(entities))


def say(*pieces: str | Part) -> Message:
    """A sentence of ours: words as str, code as parts."""
    return compose([parts(*pieces)])


def size(count: int) -> str:
    """A number of bytes, in KiB where that is exact."""
    return f"{count // 1024} KiB" if count % 1024 == 0 else f"{count} bytes"
