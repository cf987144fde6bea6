"""Settings: what the environment and the secrets file say, checked once at start.

README.md beside this has the variables and the file's keys.
"""

import hashlib
import hmac
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Of the secrets file, each with its form and the cure of another.
KEYS = {
    "TOKEN": (r"\d+:[A-Za-z0-9_-]+", "copy it from @BotFather"),
    "WEBHOOK_SECRET": (
        r"[A-Za-z0-9_-]{1,256}",
        "use 1 to 256 letters, digits, _ and -, or leave it out",
    ),
    "BOT_USERNAME": (r"@?[A-Za-z0-9_]{3,32}", "write the name that @BotFather shows"),
}


class SettingsError(ValueError):
    """A setting that cannot be served with; the text is one line: what, where, and the cure."""


@dataclass(frozen=True)
class Settings:
    """Everything that is configured. An empty text stands for what is not set."""

    config_path: Path = Path("/secrets/config.json")
    policy_path: Path = ROOT / "policy.yaml"
    delivery: str = "reply"  # or api
    telegram_api_url: str = "https://api.telegram.org"
    store: str = ""
    metrics: tuple[str, int] | None = None  # host and port
    token: str = field(default="", repr=False)
    webhook_secret: str = field(default="", repr=False)  # must come with every update
    bot_username: str = ""

    @cached_property
    def gateway_secrets(self) -> tuple[str, ...]:
        """What a gateway may offer: the webhook's secret, or the token."""
        return tuple(filter(None, (self.webhook_secret, self.token)))

    @property
    def bot_id(self) -> int | None:
        """The bot's own id, which its token begins with."""
        return int(self.token.partition(":")[0]) if self.token else None


def load_settings(environment: Mapping[str, str]) -> Settings:
    """Read the environment and the secrets file. Raises SettingsError."""
    path = Path(environment.get("CONFIG_PATH") or Settings.config_path)
    secrets = _secrets(path, may_be_absent=not environment.get("CONFIG_PATH"))
    token = secrets["TOKEN"]
    webhook_secret = secrets["WEBHOOK_SECRET"] or _derived_secret(token)
    delivery = environment.get("DELIVERY") or Settings.delivery
    if delivery not in ("reply", "api"):
        raise SettingsError(f"DELIVERY is {delivery!r}: set it to reply or api")
    if delivery == "api" and not token:
        raise SettingsError(f"DELIVERY=api needs TOKEN in {path}: add it, or set DELIVERY=reply")
    api_url = environment.get("TELEGRAM_API_URL") or Settings.telegram_api_url
    if not re.match(r"https?://[^/]", api_url):
        raise SettingsError(f"TELEGRAM_API_URL is {api_url!r}: write it as http://HOST:PORT")
    metrics = environment.get("METRICS", "")
    host, _, port = metrics.rpartition(":")
    if metrics and not (host and port.isdecimal()):
        raise SettingsError(f"METRICS is {metrics!r}: write HOST:PORT, such as 127.0.0.1:9100")
    return Settings(
        config_path=path,
        policy_path=Path(environment.get("POLICY_PATH") or Settings.policy_path),
        delivery=delivery,
        telegram_api_url=api_url.rstrip("/"),
        store=environment.get("STORE", ""),
        metrics=(host, int(port)) if metrics else None,
        token=token,
        webhook_secret=webhook_secret,
        bot_username=secrets["BOT_USERNAME"].lstrip("@").lower(),
    )


def _secrets(path: Path, *, may_be_absent: bool) -> dict[str, str]:
    """The value of every key of the secrets file; "" for what is not set."""
    config = _read(path, may_be_absent=may_be_absent)
    for key in config.keys() - KEYS.keys():
        close = get_close_matches(key.upper(), KEYS, 1, 0.5)
        cure = f"did you mean {close[0]}?" if close else f"write one of {', '.join(sorted(KEYS))}"
        raise SettingsError(f"{path}: {key!r} is no key of this file: {cure}")
    secrets = {}
    for key, (form, cure) in KEYS.items():
        value = config.get(key, "")
        if not isinstance(value, str) or (value and not re.fullmatch(form, value)):
            raise SettingsError(f"{path}: {key} is not valid: {cure}")
        secrets[key] = value
    return secrets


def _read(path: Path, *, may_be_absent: bool) -> Mapping[str, object]:
    try:
        config = json.loads(path.read_text("utf-8"))
    except OSError as error:
        if may_be_absent and isinstance(error, FileNotFoundError):
            return {}
        raise SettingsError(
            f"{path} cannot be read ({error.strerror}): {_cure(path, error)}"
        ) from None
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}:{error.colno}"
        raise SettingsError(
            f'{where}: {error.msg}: write JSON such as {{"TOKEN": "..."}}'
        ) from None
    except (ValueError, RecursionError):
        raise SettingsError(f"{path} is no JSON in UTF-8: save it as such") from None
    if not isinstance(config, dict):
        raise SettingsError(f'{path} holds no JSON object: write {{"TOKEN": "..."}}')
    return config


def _cure(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "write it, or correct CONFIG_PATH"
    if not isinstance(error, PermissionError):
        return "set CONFIG_PATH to a file"
    uid, parents = os.geteuid(), reversed(path.absolute().parents)
    closed = next((folder for folder in parents if not os.access(folder, os.X_OK)), None)
    if closed:
        return f"uid {uid} may not enter {closed}: mount a folder of its own there (chown)"
    return f"make it readable for uid {uid} (chown), or set CONFIG_PATH"


def _derived_secret(token: str) -> str:
    """A secret that only holders of the token can make; its hexadecimal digits suit Telegram."""
    return hmac.digest(token.encode(), b"webhook secret", hashlib.sha256).hex() if token else ""
