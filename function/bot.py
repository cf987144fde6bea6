"""What the bot does about a request: runs its program, explains itself, or changes a setting."""

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

from function.answers.inline import article, articles
from function.answers.replies import question, reply
from function.answers.sentences import about, say, say_limit
from function.calculator import Answer, Reader, calculate, read_program
from function.errors import Busy, TooMany, Undelivered
from function.observability import events
from function.parts import Parts
from function.program import (
    Program,
    uses,
    value_of,
    with_last_answer,
    words_with_last_answer,
)
from function.rate_limit import RateLimit
from function.session import Question, Sessions
from function.state import Store
from function.state.signed import signed
from function.telegram import updates
from function.telegram.lengths import MESSAGE_UNITS
from function.telegram.types import Identity, InlineQuery, Json, Reply, Request, Results
from sandbox import Sandbox, Unparsed

INLINE_THREADS = 32
INLINE_SECONDS = 1.5  # of the two in which a query must be answered
INLINE_WAIT = 1.0  # of these, for other programs of the same user to end
CACHE_SECONDS = 300  # Telegram's default
NO_LINE_LEFT = "EOFError: EOF when reading a line"  # Python's own words
MODE_SECONDS = 400 * 86400
RETRY_SECONDS = {"busy": 2, "unavailable": 15}

# A query that names nothing else has the same answer for everybody at any time.
CONSTANT_NAMES = frozenset(
    {"math", "nf", "fact", "abs", "divmod", "float", "int", "len", "max", "min", "pow", "range"}
    | {"round", "sum", "and", "else", "if", "in", "not", "or", "True", "False"}
)
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")


class Bot:
    """Answers requests, one at a time or many at once; knows nothing of how answers travel.

    `fetch` reads the text of a file that was sent, given its id and the most bytes to read; it
    raises ValueError for one that is no program. Without it files are not read, nor sent.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        store: Store,
        identity: Identity,
        token: str = "",  # nosec B107: none
        fetch: Callable[[str, int], str] | None = None,
        reader: Reader | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._store = store
        self._identity = identity
        self._token = token
        self._fetch = fetch
        self._reader = reader
        self._rate_limit = RateLimit(store)
        self._sessions = Sessions(signed(store, token))
        # Queries that take too long finish in the background.
        self._inline = ThreadPoolExecutor(INLINE_THREADS, thread_name_prefix="inline")

    def close(self) -> None:
        """Wait for the queries in the background."""
        self._inline.shutdown()

    def read(self, update: Json) -> Request | InlineQuery | None:
        """What an update asks of this bot; None for what is not for it, which is logged."""
        longest = max(self._sandbox.policy.limits.source_bytes, MESSAGE_UNITS)
        request = updates.read_update(update, self._identity, longest)
        if request is None:
            kind = next((key for key in update if key != "update_id"), "")
            events.emit("ignored", kind=kind[:40])
        return request

    def reply(self, request: Request) -> Reply | None:
        """What to say to a message; None for nothing. Raises Busy, and Undelivered for a file."""
        asked = None if request.edited else self._sessions.question(request)
        try:
            reply = self._reply(request, asked)
        except TooMany as error:
            return Reply(self.explain(error))
        if asked and not (reply and reply.asks):  # not before: a busy request comes again
            self._sessions.ask(request, None)
        return reply

    def _reply(self, request: Request, asked: Question | None) -> Reply | None:
        match request.action:
            case "run" | "reply" if asked and request.typed:
                return self._run(request, asked.program, f"{asked.stdin}{request.typed}\n")
            case "reply":
                events.emit("ignored", kind="reply")
                return None
            case "run":
                return self._run(request, request.text, request.stdin or "")
            case "document":
                return self._run_file(request)
            case "mode":
                return Reply(self._mode(request))
            case action:
                return Reply(about(action, self._sandbox.policy, self._identity.username))

    def explain(self, error: Busy | Undelivered) -> Parts:
        """What to say to a person whose request could not be answered."""
        if isinstance(error, Undelivered):
            return say("file_later")
        if isinstance(error, TooMany):
            events.emit("limited", reason=error.reason)
        return say_limit(error.reason, self._sandbox.policy)

    def results(self, query: InlineQuery) -> Results:
        """What to show for an inline query, within two seconds. Raises Busy.

        What does not parse yet is not run; the next key comes at once.
        """
        if query.offset or not query.text.strip():
            return Results(cache_seconds=CACHE_SECONDS)
        program = self._program(query.text)
        if isinstance(program.tree, Unparsed):
            return Results()
        in_this_request = copy_context().run
        running = self._inline.submit(
            in_this_request, self._calculate, program, query.user, inline=True
        )
        try:
            answer = running.result(INLINE_SECONDS)
        except TimeoutError:
            running.cancel()
            return Results((article(say("too_slow")),))
        except TooMany as error:
            return Results((article(self.explain(error)),))
        constant = answer.outcome.kind == "ok" and CONSTANT_NAMES.issuperset(
            _NAME.findall(query.text)
        )
        found = articles(answer, self._sandbox.policy)
        return Results(found, CACHE_SECONDS if constant else 0)

    def _program(self, text: str) -> Program:
        return read_program(text, self._reader, self._sandbox.policy)

    def _run(self, request: Request, text: str, stdin: str = "") -> Reply:
        compact = self._store.get(_mode_key(request)) is not None
        last_answer = partial(self._sessions.last_answer, request)
        program = with_last_answer(self._program(text), last_answer)
        if isinstance(program.tree, Unparsed):
            read = self._program(words_with_last_answer(text, last_answer))
            program = read if read.calculation else program
        answer = self._calculate(program, request.user, stdin)
        lacks_line = answer.outcome.error.startswith(NO_LINE_LEFT)
        if lacks_line and uses(program.tree, "input", "stdin"):
            stdin += "\n" if stdin and not stdin.endswith("\n") else ""
            self._sessions.ask(request, Question(text, stdin))
            return question(answer)
        if answer.outcome.kind == "ok" and answer.output:
            self._sessions.keep_answer(request, value_of(program, answer.outcome.output))
        return reply(answer, self._sandbox.policy, compact=compact)

    def _run_file(self, request: Request) -> Reply:
        if self._fetch is None:
            return Reply(say("no_files"))
        try:
            text = self._fetch(request.text, self._sandbox.policy.limits.source_bytes)
        except ValueError:
            return Reply(say("no_program"))
        return self._run(request, text)

    def _calculate(
        self, program: Program, user: int, stdin: str = "", *, inline: bool = False
    ) -> Answer:
        """Run a program within its user's limits. Raises Busy and TooMany."""
        limits = self._sandbox.policy.limits
        started = time.monotonic()
        with self._rate_limit.slot(user, limits, INLINE_WAIT if inline else limits.queue_seconds):
            answer = calculate(
                program,
                self._sandbox,
                self._reader,
                token=self._token,
                stdin=stdin,
                inline=inline,
                documents=self._fetch is not None and not inline,
            )
        events.program(answer.outcome, user, time.monotonic() - started, self._token)
        kind = answer.outcome.kind
        if kind == "busy" or kind == "unavailable":
            raise Busy(kind, RETRY_SECONDS[kind])
        return answer

    def _mode(self, request: Request) -> Parts:
        if not request.address.private:
            return say("mode_is_private")
        compact = self._store.get(_mode_key(request)) is None
        self._store.set(_mode_key(request), "compact" if compact else "", MODE_SECONDS)
        return say("mode_compact" if compact else "mode_full")


def _mode_key(request: Request) -> str:
    return f"mode:{request.user}"
