"""An answer as a reply: what a chat is told, within Telegram's limits, in safe parts."""

from collections.abc import Iterable

from function.answers.sentences import say, say_limit
from function.calculator import Answer
from function.parts import Parts, code, marked, parts, text_of
from function.telegram.lengths import CAPTION_UNITS, MESSAGE_UNITS, cut, units
from function.telegram.types import Reply
from sandbox import Policy

NOTE_UNITS = 600  # the longest error, hint or refusal
REFUSALS_SHOWN = 3


def reply(answer: Answer, policy: Policy, *, compact: bool = False) -> Reply:
    """An answer for a chat. `compact` leaves the program out of `4 = 2+2`."""
    message = render(answer, policy, compact=compact)
    document, pictures = answer.document, answer.outcome.pictures
    if document and not answer.omitted and units(answer.output) <= units(text_of(message)):
        document = ""  # the message is the whole
    if not document and not pictures:
        return Reply(message)
    shown = {"compact": compact, "with_pictures": bool(pictures)}
    caption = render(answer, policy, CAPTION_UNITS, **shown)
    return Reply(message, caption, document, pictures=pictures)


def question(answer: Answer) -> Reply:
    """What a program printed that has no line left for `input`, for the user to answer."""
    printed = [(code(cut(answer.output, MESSAGE_UNITS // 2, answer.end, answer.omitted)),)]
    return Reply(lines([*(printed if answer.output else []), say("waits")]), asks=True)


def render(
    answer: Answer,
    policy: Policy,
    room: int = MESSAGE_UNITS,
    *,
    compact: bool = False,
    with_pictures: bool = False,
) -> Parts:
    """An answer within `room` units: output, then an error or a reason, then a hint.

    Without output it speaks of pictures, unless they are shown `with_pictures`.
    """
    notes = [_cut(note) for note in (*_verdict(answer, policy), answer.hint) if note]
    if not answer.output:
        if answer.outcome.kind == "ok" and not with_pictures:
            notes.insert(0, say("pictures_elsewhere" if answer.outcome.pictures else "no_output"))
        return lines(notes)
    room -= sum(units(text_of(note)) + 1 for note in notes)
    shown = cut(answer.output, room, answer.end, answer.omitted)
    echo = f"{answer.output} = {answer.expression}"
    if has_value(answer) and not compact and units(echo) <= room:
        shown = echo
    return lines([(code(shown),), *notes])


def has_value(answer: Answer) -> bool:
    """Whether what was printed is the value of an expression, in one line."""
    is_line = answer.output and not answer.omitted and "\n" not in answer.output
    return bool(is_line and answer.expression)


def lines(texts: Iterable[Parts]) -> Parts:
    """Texts below one another."""
    return tuple(
        part for index, text in enumerate(texts) for part in (parts("\n", *text) if index else text)
    )


def _cut(note: Parts) -> Parts:
    """A note within NOTE_UNITS: its longest part is shortened."""
    excess = units(text_of(note)) - NOTE_UNITS
    if excess <= 0:
        return note
    longest = max(note, key=lambda part: len(part.text))
    shorter = longest._replace(text=cut(longest.text, units(longest.text) - excess))
    return tuple(shorter if part is longest else part for part in note)


def _verdict(answer: Answer, policy: Policy) -> list[Parts]:
    """Why the program did not end well, if it did not."""
    match answer.outcome.kind:
        case "ok":
            return [(code(answer.warning),)] if answer.warning else []
        case "error":
            return [(code(answer.error or "The program failed and did not say why."),)]
        case "syntax_error":
            return [(code(_syntax_error(answer)),)]
        case "rejected":
            return _refusal(answer)
        case kind:
            return [say_limit(kind, policy)]


def _syntax_error(answer: Answer) -> str:
    error = answer.error or "SyntaxError: invalid syntax"
    line = f" (line {answer.violations[0].line})" if answer.violations else ""
    excerpt = f"{answer.excerpt}\n" if answer.excerpt else ""
    return f"{excerpt}{error}{line}"


def _refusal(answer: Answer) -> list[Parts]:
    first, *others = answer.violations
    if not others:
        line = f"line {first.line}: " if first.line > 1 else ""
        return [parts(f"Not run: {line}", *marked(first.message))]
    notes = [parts(f"Not run:\nline {first.line}: ", *marked(first.message))]
    # What is allowed instead stands behind a semicolon, and is said once.
    notes += [
        parts(f"line {each.line}: ", *marked(each.message.partition(";")[0]))
        for each in others[: REFUSALS_SHOWN - 1]
    ]
    if len(answer.violations) > REFUSALS_SHOWN:
        notes.append(parts(f"… and {len(answer.violations) - REFUSALS_SHOWN} more."))
    return notes
