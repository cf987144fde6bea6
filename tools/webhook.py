"""Tells Telegram where to bring updates, and which commands to offer.

The token is read from the service's config (CONFIG_PATH, else /secrets/config.json), never from
the command line. Exits with 0 if done, 1 if Telegram refuses or reports trouble, 2 if there is no
token or the command line is wrong.
"""

import argparse
import json
import re
import sys
from datetime import UTC, datetime
from urllib.parse import urlsplit

from function import __version__
from function.errors import BotApiError
from function.settings import Settings, SettingsError
from function.telegram.client import BotApi
from function.telegram.types import Json
from tools.settings import load_settings_with_token

# The kinds of update that function/telegram/updates.py reads; Telegram keeps all others to itself.
ALLOWED_UPDATES = ["message", "edited_message", "inline_query"]

MOST_WAITING = 100  # updates at Telegram, of a bot that keeps up

# What the menu offers, in private chats and in groups, where only commands reach the bot.
COMMANDS = {
    "all_private_chats": {
        "help": "What can be sent, with examples",
        "mode": "Compact or full answers",
        "privacy": "What is kept about you",
    },
    "all_group_chats": {
        "cl": "Run a program: /cl 2+2",
        "help": "What can be sent, with examples",
    },
}


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says and return the exit status."""
    options = read_arguments(arguments)
    try:
        settings = load_settings_with_token()
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    api = BotApi(settings.token, settings.telegram_api_url)
    try:
        if options.verb == "set":
            return set_webhook(api, settings, options)
        if options.verb == "info":
            return show_webhook(api, options.json)
        api.call("deleteWebhook", {"drop_pending_updates": options.drop_pending})
        print("Updates stay at Telegram now, for a day at most; tools/poll fetches them.")
        return 0
    except BotApiError as error:
        print(f"{settings.telegram_api_url}: {error}", file=sys.stderr)
        return 1


def read_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="webhook", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="set|delete|info")
    setting = verbs.add_parser("set", help="bring updates to a URL, with the config's secret")
    url = "https://HOST[:443|80|88|8443]; /webhook is added to a bare host"
    setting.add_argument("url", metavar="URL", help=url)
    deleting = verbs.add_parser("delete", help="keep updates at Telegram, as tools/poll needs")
    for verb in (setting, deleting):
        forget = "forget updates that wait at Telegram"
        verb.add_argument("--drop-pending", action="store_true", help=forget)
    informing = verbs.add_parser("info", help="show the URL, what waits there, and errors")
    informing.add_argument("--json", action="store_true", help="print Telegram's answer as it is")
    options = parser.parse_args(arguments)
    if options.verb == "set" and not re.match(r"https?://[^/]", options.url):
        parser.error(f"{options.url} is no URL: write https://HOST")
    return options


def set_webhook(api: BotApi, settings: Settings, options: argparse.Namespace) -> int:
    """Set webhook and commands (https://core.telegram.org/bots/api#setwebhook)."""
    url = options.url
    if urlsplit(url).path in ("", "/"):
        url = url.rstrip("/") + "/webhook"
    webhook = {
        "url": url,
        "secret_token": settings.webhook_secret,  # there is one where there is a token
        "allowed_updates": ALLOWED_UPDATES,
        "drop_pending_updates": options.drop_pending,
    }
    api.call("setWebhook", webhook)
    print(f"Updates come to {url} now. See how it goes with: tools/webhook info")
    try:
        for scope, commands in COMMANDS.items():
            listed = [{"command": name, "description": text} for name, text in commands.items()]
            api.call("setMyCommands", {"commands": listed, "scope": {"type": scope}})
    except BotApiError as error:
        print(f"The menu of commands is not set ({error}): run this again.", file=sys.stderr)
        return 1
    return 0


def show_webhook(api: BotApi, as_json: bool) -> int:
    """Print what Telegram knows of the webhook; 1 if there is none or something is wrong."""
    info = api.call("getWebhookInfo")
    found = troubles(info)
    if as_json:
        print(json.dumps(info, indent=2))
    else:
        print(f"URL:      {info.get('url') or '(none)'}")
        print(f"Waiting:  {info.get('pending_update_count', 0)} updates")
        print(f"Allowed:  {', '.join(info.get('allowed_updates', [])) or '(default)'}")
        print(*(f"TROUBLE:  {trouble}\n" for trouble in found), sep="", end="")
    return int(bool(found))


def troubles(info: Json) -> list[str]:
    """Return what is wrong with a WebhookInfo, and the cure."""
    if not info.get("url"):
        return ["no webhook is set; cure: tools/webhook set URL"]
    found = []
    if "last_error_message" in info:
        when = datetime.fromtimestamp(info.get("last_error_date", 0), UTC)
        found.append(f"{info['last_error_message']} (last at {when:%Y-%m-%d %H:%M:%S} UTC)")
    if info.get("pending_update_count", 0) > MOST_WAITING:
        found.append("many updates wait; cure: the bot's log and /health say why")
    if sorted(info.get("allowed_updates", [])) != sorted(ALLOWED_UPDATES):
        found.append("other kinds of update are asked for; cure: tools/webhook set URL")
    return found


if __name__ == "__main__":
    sys.exit(main())
