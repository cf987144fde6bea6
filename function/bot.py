"""What the bot does about a request: runs its program, explains itself, or changes a setting."""

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from function.answers import guide
from function.answers.replies import Reply, article, articles, reply, say
from function.calculator import Answer, calculate
from function.natural.hints import normalise, parses
from function.observability import events
from function.rate_limit import Senders, TooMany
from function.state import Store
from function.telegram import bot_api as telegram
from function.telegram.bot_api import Bot, InlineQuery, Json, Request
from sandbox import Sandbox

INLINE_THREADS = 32
INLINE_SECONDS = 1.5  # of the two in which a query must be answered
INLINE_PATIENCE = 1.0  # of these, for programs of the same sender to end
CACHE_SECONDS = 300  # Telegram's default
MODE_SECONDS = 400 * 86400
RETRY_SECONDS = {"busy": 2, "unavailable": 15}

# A query that names nothing else has the same answer for everybody at any time.
CONSTANT_NAMES = frozenset(
    {"math", "nf", "fact", "abs", "divmod", "float", "int", "len", "max", "min", "pow", "range"}
    | {"round", "sum", "and", "else", "if", "in", "not", "or", "True", "False"}
)
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")


class Busy(Exception):
    """No program can be run now: `reply` says so to a person, `retry_after` is in seconds."""

    def __init__(self, reply: Reply, retry_after: int) -> None:
        super().__init__(reply.message.text)
        self.reply = reply
        self.retry_after = retry_after


class Chat:
    """Answers requests, one at a time or many at once; knows nothing of how answers travel.

    `fetch` reads the text of a file that was sent, given its id and the most bytes to take; it
    raises ValueError for one that is no program. Without it files are not read.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        store: Store,
        bot: Bot,
        token: str = "",  # nosec B107: none
        fetch: Callable[[str, int], str] | None = None,
    ) -> None:
        self.bot = bot
        self._sandbox = sandbox
        self._store = store
        self._token = token
        self._fetch = fetch
        self._senders = Senders(store)
        # Queries that take too long finish in the background.
        self._inline = ThreadPoolExecutor(INLINE_THREADS, thread_name_prefix="inline")

    def close(self) -> None:
        """Wait for the queries in the background."""
        self._inline.shutdown()

    def reply(self, request: Request) -> Reply:
        """What to say to a message. Raises Busy."""
        match request.wish:
            case "run":
                return self._run(request, request.text)
            case "document":
                return self._run_file(request)
            case "mode":
                return Reply(self._mode(request))
            case "start" | "help":
                return Reply(guide.help_message(self._sandbox.policy, self.bot.username))
            case other:
                return Reply(guide.MESSAGES[other])

    def results(self, query: InlineQuery) -> Json:
        """The call that answers an inline query, within two seconds. Raises Busy.

        What does not parse yet is not run; the next key comes at once.
        """
        if query.offset or not query.text.strip():
            return telegram.answer_inline_query(query.id, [], CACHE_SECONDS)
        if not parses(query.text) and normalise(query.text) is None:
            return telegram.answer_inline_query(query.id, [], 0)
        in_this_request = copy_context().run
        running = self._inline.submit(
            in_this_request, self._calculate, query.text, query.sender, inline=True
        )
        try:
            answer = running.result(INLINE_SECONDS)
        except (TimeoutError, TooMany) as error:
            running.cancel()
            sentence = str(error) or "This takes too long here. Send it to me in a private chat."
            return telegram.answer_inline_query(query.id, [article(say(sentence))], 0)
        found = articles(answer, self._sandbox.policy)
        constant = answer.outcome.kind == "ok" and CONSTANT_NAMES.issuperset(
            _NAME.findall(query.text)
        )
        return telegram.answer_inline_query(query.id, found, CACHE_SECONDS if constant else 0)

    def _run(self, request: Request, program: str) -> Reply:
        compact = self._store.get(_mode_key(request)) is not None
        try:
            answer = self._calculate(program, request.sender)
        except TooMany as error:
            return Reply(say(str(error)))
        return reply(answer, self._sandbox.policy, compact=compact)

    def _run_file(self, request: Request) -> Reply:
        if self._fetch is None:
            return Reply(guide.SEND_AS_TEXT)
        try:
            program = self._fetch(request.text, self._sandbox.policy.limits.source_bytes)
        except ValueError:
            return Reply(guide.NOT_A_PROGRAM)
        return self._run(request, program)

    def _calculate(self, program: str, sender: int, *, inline: bool = False) -> Answer:
        """Run a program in its sender's turn. Raises Busy and TooMany."""
        policy = self._sandbox.policy
        patience = INLINE_PATIENCE if inline else policy.limits.queue_seconds
        started = time.monotonic()
        with self._senders.turn(sender, policy.limits, patience):
            answer = calculate(program, self._sandbox, token=self._token, helpers=inline)
        events.program(answer.outcome, sender, time.monotonic() - started, self._token)
        retry_after = RETRY_SECONDS.get(answer.outcome.kind)
        if retry_after is not None:
            raise Busy(reply(answer, policy), retry_after)
        return answer

    def _mode(self, request: Request) -> telegram.Message:
        if not request.place.private:
            return guide.MODE_IS_PRIVATE
        compact = self._store.get(_mode_key(request)) is None
        self._store.set(_mode_key(request), "compact" if compact else "", MODE_SECONDS)
        return guide.mode_message(compact)


def _mode_key(request: Request) -> str:
    return f"mode:{request.sender}"
