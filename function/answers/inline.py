"""An answer as inline results (https://core.telegram.org/bots/api#inlinequeryresultarticle)."""

import hashlib

from function.answers.replies import has_value, lines, render
from function.answers.sentences import say
from function.calculator import Answer
from function.parts import Parts, code, parts, text_of
from function.telegram.lengths import MESSAGE_UNITS, beginning, units
from function.telegram.types import Article
from sandbox import Policy

TITLE_UNITS = 64
DESCRIPTION_UNITS = 200


def articles(answer: Answer, policy: Policy) -> tuple[Article, ...]:
    """The answer as results: `4 = 2+2`, `2+2 = 4` and `4`, or else the one there is.

    A hint is their description; what else the text may mean is a result of its own.
    """
    output, program = answer.output, answer.expression
    texts = [f"{output} = {program}", f"{program} = {output}", output]
    if answer.outcome.pictures and output:
        return (article(lines([render(answer, policy, compact=True), say("pictures_elsewhere")])),)
    if not has_value(answer) or units(texts[0]) > MESSAGE_UNITS:
        return (article(render(answer, policy, compact=True)),)
    warning = text_of(answer.hint)
    results = [article((code(text),), about=warning) for text in dict.fromkeys(texts)]
    for value, calculation in answer.others:
        message = parts("Read as a calculation: ", code(f"{calculation} = {value}"))
        results.append(article(message, title=f"{value} = {calculation}"))
    return tuple(results)


def article(message: Parts, *, title: str = "", about: str = "") -> Article:
    """A message as a result, with an id (1 to 64 bytes) that differs where the text does.

    Without a `title` and words `about` it, the message itself is shown.
    """
    text = text_of(message)
    line = " ".join(text.split())
    title = title or line
    if units(title) > TITLE_UNITS:
        title = beginning(title, TITLE_UNITS - 1) + "…"
    more = beginning(" ".join(about.split()) or (line if title != line else ""), DESCRIPTION_UNITS)
    return Article(hashlib.sha256(text.encode()).hexdigest()[:32], title, more, message)
