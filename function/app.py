"""Wires the pieces: create_app() for tests, get_app() for gunicorn. Nothing else."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from function import __version__, machine, natural
from function.bot import Bot
from function.delivery.api_delivery import ApiDelivery
from function.delivery.deduplicate import Deduplication
from function.delivery.lease import Leases
from function.errors import BotApiError
from function.http.gateway import Inline, Message
from function.http.health import Health
from function.http.page import Page
from function.http.response import App, RequestLog, add_error_handlers
from function.http.webhook import Webhook
from function.observability import events
from function.settings import Settings, load_settings
from function.state import Store, open_store
from function.state.signed import signed
from function.telegram.types import Identity
from sandbox import PolicyError, PolicyWatch, Sandbox, SandboxUnavailable, load_policy

if TYPE_CHECKING:
    from function.telegram.client import BotApi

log = logging.getLogger(__name__)

LAST_GOOD_POLICY = "LAST_GOOD_POLICY"  # where it is kept; set by function.gunicorn_conf
CANNOT_START = 2  # the exit status, of a worker and then of the service


def create_app(
    settings: Settings,
    sandbox: Sandbox,
    store: Store,
    api: BotApi | None = None,
    watch: PolicyWatch | None = None,
) -> App:
    """Return the WSGI application that answers with a started sandbox.

    With `api`, answers travel by calls of it instead of in the webhook's responses. `watch` tells
    health and metrics of edits to the policy.
    """
    me = Identity(settings.bot_id, settings.bot_username or None)
    bot = Bot(sandbox, store, me, settings.token, api.fetch_text if api else None, natural)
    texts = signed(store, settings.token)
    delivery = ApiDelivery(bot, store, texts, api) if api else None
    answer = delivery.accept if delivery else Deduplication(bot, texts, Leases(store)).answer
    if delivery:
        delivery.outbox.start()
    if settings.metrics and watch:
        from function.observability import metrics

        metrics.serve(
            settings.metrics,
            sandbox=sandbox.status,
            policy=watch.status,
            store=store.status,
            outbox=delivery.outbox.status if delivery else None,
        )
    app = App(middleware=[RequestLog()])
    app.add_route("/webhook", Webhook(settings, answer))
    app.add_route("/message", Message(settings, bot))
    app.add_route("/inline", Inline(settings, bot, delivery))
    health = Health(settings, sandbox, store, watch)
    app.add_route("/health", health)
    app.add_route("/health/ready", health, suffix="ready")
    app.add_route("/", Page(settings, sandbox, me))
    for path in ("/health/live", "/test"):
        app.add_route(path, health, suffix="live")
    add_error_handlers(app)
    return app


def get_app() -> App:
    """Return what the environment describes, or end with the reason and its cure."""
    try:
        return _app()
    except (ValueError, PolicyError, SandboxUnavailable) as error:
        log.critical("%s", error)
    except RuntimeError as error:
        if "new thread" not in str(error):
            raise
        log.critical("%s", machine.too_few_tasks())
    sys.exit(CANNOT_START)


def _app() -> App:
    settings = load_settings(os.environ)
    store = open_store(settings.store)
    sandbox = _start_sandbox(settings)
    watch = PolicyWatch(sandbox, settings.policy_path, os.environ.get(LAST_GOOD_POLICY))
    if not settings.webhook_secret:
        log.warning("no TOKEN in %s: the bot answers anybody, for a trial", settings.config_path)
    api = None
    if settings.token and (settings.delivery == "api" or not settings.bot_username):
        from function.telegram.client import BotApi  # 30 ms, which few need

        api = BotApi(settings.token, settings.telegram_api_url, timeout=2)
    if api and not settings.bot_username:
        settings = replace(settings, bot_username=_ask_name(api))
    app = create_app(settings, sandbox, store, api if settings.delivery == "api" else None, watch)
    watch.start()
    layers = sandbox.status()["layers"]
    events.emit(
        "serving",
        version=__version__,
        delivery=settings.delivery,
        store=store.status()["kind"],
        layers=",".join(sorted(name for name, detail in layers.items() if detail)),
    )
    return app


def _start_sandbox(settings: Settings) -> Sandbox:
    """Start a sandbox under the policy file, or under the last good one if there has been one.

    A worker that replaces another must not fall over an edit that the other one has refused.
    """
    kept = os.environ.get(LAST_GOOD_POLICY, "")
    try:
        return _started(settings, settings.policy_path)
    except (PolicyError, SandboxUnavailable) as error:
        if not os.path.exists(kept):
            raise
        log.error("the policy is refused, the last good one goes on:\n%s", error)
        return _started(settings, Path(kept))


def _started(settings: Settings, policy: Path) -> Sandbox:
    sandbox = Sandbox(load_policy(policy), [str(settings.config_path)])
    sandbox.start()
    return sandbox


def _ask_name(api: BotApi) -> str:
    """The bot's user name, or "" where Telegram does not answer soon: the start must not hang."""
    try:
        return str(api.call("getMe", answer_seconds=3)["username"]).lower()
    except BotApiError as error:
        log.warning("set BOT_USERNAME, for Telegram does not tell it: %s", error)
        return ""
