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
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

from function import __version__, natural
from function.bot import Bot
from function.delivery.api_delivery import ApiDelivery
from function.errors import Busy, Refused, Undelivered
from function.observability import events, logs
from function.settings import load_settings
from function.state import open_store
from function.state.signed import Signed
from function.telegram.client import BotApi
from function.telegram.types import Identity, Json
from sandbox.policy.loader import PolicyError, load_policy
from sandbox.sandbox import Sandbox, SandboxUnavailable
from tools.webhook import ALLOWED_UPDATES

POLL_SECONDS = 50  # Telegram waits so long for an update
SHORTEST_POLL_SECONDS = 0.5
PAUSE_SECONDS = 3.0  # before the next try when Telegram cannot be reached
TRIES = 5  # of one update while Telegram can be reached, for all others wait
LONGEST_PAUSE_SECONDS = 60  # between them

log = logging.getLogger(__name__)


class Interruption:
    """Ctrl-C and SIGTERM: they end a wait for Telegram at once, and an answer not at all."""

    def __init__(self) -> None:
        self.came = False
        self._waiting = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def wait_for(self, work: Callable[[], Any]) -> Any:
        """Do work that can be given up, trying until it is done; returns None if interrupted."""
        while not self.came:
            self._waiting = True
            try:
                return work()
            except Undelivered as error:
                log.warning("Telegram cannot be reached: %s", error)
                time.sleep(PAUSE_SECONDS)
            except KeyboardInterrupt:
                break
            finally:
                self._waiting = False
        return None

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True
        if self._waiting:
            raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Poll until told to end, and return the exit status."""
    parser = argparse.ArgumentParser(prog="poll", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    parser.parse_args(arguments)
    logs.configure("text")
    interruption = Interruption()
    try:
        logs.configure(os.environ.get("LOG_FORMAT") or "text")
        settings = load_settings(os.environ)
        if not settings.token:
            raise ValueError("No TOKEN: write it into the config that CONFIG_PATH names.")
        store = open_store(settings.store)
        sandbox = Sandbox(load_policy(settings.policy_path))
        sandbox.start()
    except (ValueError, PolicyError, SandboxUnavailable) as error:
        log.critical("%s", error)
        return 2
    api = BotApi(settings.token, settings.telegram_api_url)
    try:
        me = interruption.wait_for(lambda: api.call("getMe"))
        if me is not None:
            log.info("answering as @%s; Ctrl-C ends", me["username"])
            identity = Identity(settings.bot_id, me["username"].lower())
            bot = Bot(sandbox, store, identity, settings.token, api.fetch_text, natural)
            texts = Signed(store, settings.token)
            answer_all(api, ApiDelivery(bot, store, texts, api), interruption)
    except Refused as error:
        log.critical("%s", explain(error))
        return 1
    finally:
        sandbox.close()
        store.close()
    return 0


def answer_all(api: BotApi, delivery: ApiDelivery, interruption: Interruption) -> None:
    """Answer updates as they come until interrupted. Raises Refused.

    An update is answered before Telegram is told that it came: one cut short comes again.
    """
    request = {"offset": 0, "timeout": POLL_SECONDS, "allowed_updates": ALLOWED_UPDATES}
    fetch = partial(api.call, "getUpdates", request, answer_seconds=POLL_SECONDS + 10)
    tries = 0
    while not interruption.came:
        asked = time.monotonic()
        updates = interruption.wait_for(fetch)
        if not updates and time.monotonic() - asked < SHORTEST_POLL_SECONDS:  # it does not wait
            interruption.wait_for(partial(time.sleep, SHORTEST_POLL_SECONDS))
        for update in updates or ():
            tries += 1
            pause = answer(delivery, update)
            if pause is not None and tries < TRIES:
                interruption.wait_for(partial(time.sleep, pause))
                break
            if pause is not None:
                log.error("given up: update %d", update["update_id"])
            tries = 0
            request["offset"] = update["update_id"] + 1
            if interruption.came:
                break
    if request["offset"]:
        with suppress(Undelivered):
            api.call("getUpdates", request | {"timeout": 0, "limit": 1})


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
