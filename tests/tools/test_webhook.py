"""Telling a Bot API server where the bot is."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from function.telegram.types import Identity
from function.telegram.updates import COMMANDS as KNOWN
from function.telegram.updates import read_update
from tests.bot_api_server import UPDATE_KINDS, BotApiServer, running
from tools.serve import ROOT
from tools.webhook import ALLOWED_UPDATES, COMMANDS

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def server() -> Iterator[BotApiServer]:
    with running() as state:
        yield state


@pytest.fixture
def webhook(server: BotApiServer, tmp_path: Path) -> Run:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"TOKEN": server.token, "WEBHOOK_SECRET": "well-known"}))

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        addresses = {"CONFIG_PATH": str(config), "TELEGRAM_API_URL": server.url}
        return subprocess.run(
            [sys.executable, "-m", "tools.webhook", *arguments],
            cwd=tmp_path,
            env=clean | addresses | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def test_set_registers_address_secret_kinds_and_commands(
    webhook: Run, server: BotApiServer
) -> None:
    result = webhook("set", "https://example.org")
    assert (result.returncode, result.stderr) == (0, "")
    assert "https://example.org/webhook" in result.stdout
    assert server.webhook == {
        "url": "https://example.org/webhook",
        "secret_token": "well-known",
        "allowed_updates": ["message", "edited_message", "inline_query"],
        "drop_pending_updates": False,
    }
    assert server.commands.keys() == {"all_private_chats", "all_group_chats"}
    assert "cl" in [each["command"] for each in server.commands["all_group_chats"]]
    assert webhook("info").returncode == 0


def test_set_that_is_done_by_half_says_which_half(webhook: Run, server: BotApiServer) -> None:
    server.be("setMyCommands", (400, "Bad Request"))
    result = webhook("set", "https://example.org")
    assert result.returncode == 1
    assert "Updates come to https://example.org/webhook now" in result.stdout
    assert "The menu of commands is not set" in result.stderr
    assert server.webhook["url"] == "https://example.org/webhook"


def test_info_tells_of_updates_that_wait(webhook: Run, server: BotApiServer) -> None:
    webhook("set", "https://example.org")
    server.updates = [{"update_id": n} for n in range(101)]
    assert "many updates wait" in webhook("info").stdout


def test_a_path_of_ones_own_is_kept(webhook: Run, server: BotApiServer) -> None:
    assert webhook("set", "https://example.org:8443/my/bot", "--drop-pending").returncode == 0
    assert server.webhook["url"] == "https://example.org:8443/my/bot"
    assert server.webhook["drop_pending_updates"] is True


def test_info_tells_trouble_and_its_cure(webhook: Run, server: BotApiServer) -> None:
    result = webhook("info")
    assert result.returncode == 1
    assert "cure: tools/webhook set URL" in result.stdout
    webhook("set", "https://example.org")
    server.webhook |= {"last_error_date": 1, "last_error_message": "Connection refused"}
    result = webhook("info")
    assert result.returncode == 1
    assert "Connection refused (last at 1970-01-01 00:00:01 UTC)" in result.stdout
    assert json.loads(webhook("info", "--json").stdout)["url"] == "https://example.org/webhook"


def test_delete_forgets_what_waits_if_told_to(webhook: Run, server: BotApiServer) -> None:
    webhook("set", "https://example.org")
    server.updates = [{"update_id": 1}]
    assert webhook("delete").returncode == 0
    assert (server.webhook, len(server.updates)) == ({}, 1)
    assert webhook("delete", "--drop-pending").returncode == 0
    assert server.updates == []


@pytest.mark.parametrize(
    ("arguments", "environment", "status", "said"),
    [
        (["set", "http://example.org"], {}, 1, "HTTPS URL must be provided"),
        (
            ["info"],
            {"CONFIG_PATH": "/nowhere.json"},
            2,
            "/nowhere.json cannot be read (No such file",
        ),
        (["info"], {"DELIVERY": "pigeon"}, 2, "DELIVERY"),
        (["set", "not-a-url"], {}, 2, "not-a-url is no URL"),
        ([], {}, 2, "usage:"),
        (["set"], {}, 2, "URL"),
    ],
)
def test_what_goes_wrong_is_said(
    webhook: Run, arguments: list[str], environment: dict[str, str], status: int, said: str
) -> None:
    result = webhook(*arguments, **environment)
    assert result.returncode == status
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_refused_token_is_not_shown(webhook: Run, server: BotApiServer) -> None:
    server.be("*", (401, "Unauthorized"))
    result = webhook("info")
    assert result.returncode == 1
    assert "401 Unauthorized" in result.stderr
    assert server.token not in result.stderr


def test_every_kind_that_is_asked_for_is_read() -> None:
    assert set(ALLOWED_UPDATES) <= UPDATE_KINDS
    message = {"message_id": 1, "chat": {"id": 1, "type": "private"}, "text": "2+2"}
    query = {"id": "1", "from": {"id": 1}, "query": "2+2", "offset": ""}
    for kind in ALLOWED_UPDATES:
        update = {kind: query if kind == "inline_query" else message}
        assert read_update(update, Identity(), 16384) is not None


def test_every_command_that_is_offered_is_known() -> None:
    assert {name for commands in COMMANDS.values() for name in commands} <= {
        "cl",
        *KNOWN,
    }
