"""Answers a bot's messages without a public address, by asking Telegram for updates.

Runs the same handlers as the service, with the service's settings (see function/settings.py).
Ctrl-C ends it after the answer in hand; what is not answered then comes again with the next start.
Exits with 0 so ended, 1 if Telegram refuses, 2 if it cannot begin.
"""

import argparse
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, NoReturn

from function import __version__, natural
from function.bot import Bot
from function.delivery.api_delivery import ApiDelivery
from function.errors import Busy, Refused, Undelivered
from function.observability import events, logs
from function.state import open_store
from function.state.signed import signed
from function.telegram.client import BotApi
from function.telegram.types import Identity, Json
from sandbox import PolicyError, Sandbox, SandboxUnavailable, load_policy
from tools.settings import load_settings_with_token
from tools.webhook import ALLOWED_UPDATES

POLL_SECONDS = 50  # Telegram waits so long for an update
SHORTEST_POLL_SECONDS = 0.5
PAUSE_SECONDS = 3.0  # before the next try when Telegram cannot be reached
TRIES = 5  # of one update while Telegram can be reached, for all others wait
LONGEST_PAUSE_SECONDS = 60  # between them

log = logging.getLogger(__name__)


def main(arguments: list[str] | None = None) -> int:
    """Poll until told to end, and return the exit status."""
    parser = argparse.ArgumentParser(prog="poll", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    parser.parse_args(arguments)
    logs.configure("text")
    on_interrupt(end)
    try:
        logs.configure(os.environ.get("LOG_FORMAT") or "text")
        settings = load_settings_with_token()
        store = open_store(settings.store)
        sandbox = Sandbox(load_policy(settings.policy_path))
        with closing(store), closing(sandbox):
            sandbox.start()
            api = BotApi(settings.token, settings.telegram_api_url)
            me = reached(partial(api.call, "getMe"))
            log.info("answering as @%s; Ctrl-C ends", me["username"])
            identity = Identity(settings.bot_id, me["username"].lower())
            bot = Bot(sandbox, store, identity, settings.token, api.fetch_text, natural)
            answer_all(api, ApiDelivery(bot, store, signed(store, settings.token), api))
    except (ValueError, PolicyError, SandboxUnavailable) as error:
        log.critical("%s", error)
        return 2
    except Refused as error:
        log.critical("%s", explain(error))
        return 1
    except KeyboardInterrupt:
        return 0


def on_interrupt(action: Any) -> None:
    """Set what Ctrl-C and SIGTERM do."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, action)


def end(*_: object) -> NoReturn:
    """End whatever waits; a second interrupt changes nothing."""
    on_interrupt(lambda *_: None)  # SIG_IGN would be told as a race of one that has come by now
    raise KeyboardInterrupt


@contextmanager
def finished_first() -> Iterator[None]:
    """Let what is in hand come to its end before an interrupt ends the rest."""
    came = []
    on_interrupt(lambda *_: came.append(True))
    yield
    on_interrupt(end)
    if came:
        end()


def reached(call: Callable[[], Any]) -> Any:
    """Make a call, again and again until Telegram can be reached."""
    while True:
        try:
            return call()
        except Undelivered as error:
            log.warning("Telegram cannot be reached: %s", error)
            time.sleep(PAUSE_SECONDS)


def answer_all(api: BotApi, delivery: ApiDelivery) -> NoReturn:
    """Answer updates as they come. Raises Refused, and KeyboardInterrupt when told to end.

    An update is answered before Telegram is told that it came: one cut short comes again.
    """
    request = {"offset": 0, "timeout": POLL_SECONDS, "allowed_updates": ALLOWED_UPDATES}
    fetch = partial(api.call, "getUpdates", request, answer_seconds=POLL_SECONDS + 10)
    tries = 0
    try:
        while True:
            asked = time.monotonic()
            updates = reached(fetch)
            if not updates and time.monotonic() - asked < SHORTEST_POLL_SECONDS:
                time.sleep(SHORTEST_POLL_SECONDS)  # the server does not wait
            for update in updates:
                with finished_first():
                    pause = answer(delivery, update)
                    tries += 1
                    if pause is not None and tries == TRIES:
                        log.error("given up: update %d", update["update_id"])
                        pause = None
                    if pause is None:
                        request["offset"], tries = update["update_id"] + 1, 0
                if pause is not None:
                    time.sleep(pause)
                    break
    except KeyboardInterrupt:
        if request["offset"]:
            with suppress(Undelivered):
                api.call("getUpdates", request | {"timeout": 0, "limit": 1})
        raise


def answer(delivery: ApiDelivery, update: Json) -> int | None:
    """Answer an update, or return the seconds after which it may be tried again."""
    events.begin(update=update["update_id"])
    try:
        delivery.answer(update)
    except (Busy, Undelivered) as error:
        log.warning("not answered yet: %s", error)
        return min(error.retry_after, LONGEST_PAUSE_SECONDS)
    except Exception:
        log.exception("an update could not be answered")
    return None


def explain(error: Refused) -> str:
    """Return what Telegram refused, and the cure."""
    match error.code:
        case 401 | 404:
            return f"Telegram does not know the token ({error}): copy it anew from @BotFather."
        case 409 if "webhook" in error.description:
            return "Updates go to a webhook. To fetch them instead: tools/webhook delete"
        case 409:
            return "Another program fetches this bot's updates: end that one first."
    return str(error)


if __name__ == "__main__":
    sys.exit(main())
