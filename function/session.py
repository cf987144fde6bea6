"""What the bot keeps of a user in a chat: the last answer, and a program that waits for input."""

import json
from dataclasses import dataclass
from typing import NamedTuple

from function.state.store import Texts
from function.telegram.types import Request

ANSWER_SECONDS = 86400
QUESTION_SECONDS = 900


class Question(NamedTuple):
    """A program that asked for more lines than it had."""

    program: str
    stdin: str


@dataclass(frozen=True)
class Sessions:
    """What is kept, by chat and user. May be used from any thread."""

    texts: Texts

    def last_answer(self, request: Request) -> str:
        """The last answer as a literal of Python; "" for none."""
        return self.texts.get(_key("last", request)) or ""

    def keep_answer(self, request: Request, value: str) -> None:
        """Keep an answer, or with "" that the last one was nothing to go on with."""
        self.texts.set(_key("last", request), value, ANSWER_SECONDS)

    def ask(self, request: Request, question: Question | None) -> None:
        """Remember what the user is asked; None for nothing any more."""
        kept = json.dumps(question) if question else ""
        self.texts.set(_key("question", request), kept, QUESTION_SECONDS)

    def question(self, request: Request) -> Question | None:
        """What the user was asked; None for nothing."""
        kept = self.texts.get(_key("question", request))
        match json.loads(kept) if kept else None:
            case [str(program), str(stdin)]:
                return Question(program, stdin)
        return None


def _key(kind: str, request: Request) -> str:
    return f"{kind}:{request.address.chat_id}:{request.user}"
