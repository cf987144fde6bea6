"""What the environment and the secrets file may say, and what is refused with a cure."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from function.settings import Settings, SettingsError, load_settings

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "7100000001:" + "A" * 35


def load(folder: Path, config: Any, **environment: str) -> Settings:
    path = folder / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return load_settings({"CONFIG_PATH": str(path)} | environment)


def test_without_a_secrets_file_the_bot_replies_to_anybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = tmp_path / "none.json"
    monkeypatch.setattr(Settings, "config_path", nowhere)
    settings = load_settings({})
    assert settings == Settings(config_path=nowhere)
    assert settings.webhook_secret == ""
    assert settings.policy_path == ROOT / "policy.yaml"
    assert settings.bot_id is None


def test_everything_can_be_set(tmp_path: Path) -> None:
    config = {"TOKEN": TOKEN, "WEBHOOK_SECRET": "s-1", "BOT_USERNAME": "@Calc_Bot"}
    settings = load(
        tmp_path,
        config,
        POLICY_PATH="/p.yaml",
        DELIVERY="api",
        TELEGRAM_API_URL="http://localhost:8081/",
        STORE="/s",
        METRICS="127.0.0.1:9100",
    )
    assert settings == Settings(
        config_path=settings.config_path,
        policy_path=Path("/p.yaml"),
        delivery="api",
        telegram_api_url="http://localhost:8081",
        store="/s",
        metrics=("127.0.0.1", 9100),
        token=TOKEN,
        webhook_secret="s-1",
        bot_username="calc_bot",
    )
    assert settings.gateway_secrets == ("s-1", TOKEN)
    assert settings.bot_id == 7100000001


def test_a_secret_is_made_of_the_token_where_none_is_set(tmp_path: Path) -> None:
    settings = load(tmp_path, {"TOKEN": TOKEN})
    assert re.fullmatch("[A-Za-z0-9_-]{1,256}", settings.webhook_secret)
    assert settings.webhook_secret != load(tmp_path, {"TOKEN": TOKEN + "B"}).webhook_secret
    assert settings.gateway_secrets == (settings.webhook_secret, settings.token)


def test_secrets_are_not_in_what_is_printed(tmp_path: Path) -> None:
    settings = load(tmp_path, {"TOKEN": TOKEN, "WEBHOOK_SECRET": "hush-hush"})
    assert TOKEN not in repr(settings)
    assert "hush" not in repr(settings)


@pytest.mark.parametrize(
    ("config", "environment", "told"),
    [
        ("{", {}, r"config\.json:1:2: .*TOKEN"),
        ("[]", {}, "config.json holds no JSON object"),
        ({"token": TOKEN}, {}, "'token' is no key of this file: did you mean TOKEN?"),
        ({"WEBHOOK_SECERT": "x"}, {}, "'WEBHOOK_SECERT' .* did you mean WEBHOOK_SECRET?"),
        ({"zzz": 1}, {}, "'zzz' .* write one of BOT_USERNAME, TOKEN, WEBHOOK_SECRET"),
        ("[" * 100_000, {}, "config.json is no JSON"),
        ({"TOKEN": "TELEGRAM-BOT-TOKEN"}, {}, "TOKEN is not valid: copy it from @BotFather"),
        ({"TOKEN": 5}, {}, "TOKEN is not valid"),
        ({"WEBHOOK_SECRET": "a b"}, {}, "WEBHOOK_SECRET is not valid: use 1 to 256"),
        ({"WEBHOOK_SECRET": "a" * 257}, {}, "WEBHOOK_SECRET is not valid"),
        ({"BOT_USERNAME": "a b"}, {}, "BOT_USERNAME is not valid"),
        ({}, {"DELIVERY": "pigeon"}, "DELIVERY is 'pigeon': set it to reply or api"),
        ({}, {"DELIVERY": "api"}, "DELIVERY=api needs TOKEN"),
        ({}, {"TELEGRAM_API_URL": "localhost"}, "TELEGRAM_API_URL is 'localhost'"),
        *(({}, {"METRICS": at}, "METRICS is") for at in ("9100", ":9100", "h:", "h:x")),
    ],
)
def test_a_mistake_is_refused_in_one_line(
    tmp_path: Path, config: Any, environment: dict[str, str], told: str
) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        load(tmp_path, config, **environment)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="no JSON in UTF-8"):
        load_settings({"CONFIG_PATH": str(path)})


def test_a_file_that_was_named_and_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none.json cannot be read \(No such.*CONFIG_PATH"):
        load_settings({"CONFIG_PATH": str(tmp_path / "none.json")})


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot be read \(Is a directory\)"):
        load_settings({"CONFIG_PATH": str(tmp_path)})
