"""The page: one file, closed to all but its own origin, told what the policy allows."""

import hashlib
import json
import re
from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest
from falcon import testing

from function.app import create_app
from function.settings import Settings
from function.state.memory import Memory
from sandbox.policy.loader import Policy
from tests.function.conftest import ScriptedSandbox


def page(sandbox: ScriptedSandbox, **settings: Any) -> Any:
    return testing.TestClient(create_app(Settings(**settings), sandbox, Memory())).simulate_get("/")


def facts(html: str) -> Any:
    [text] = re.findall(r'<script type="application/json" id="policy">(.*?)</script>', html)
    return json.loads(text)


@pytest.mark.parametrize("element", ["script", "style"])
def test_only_the_pages_own_code_may_run(scripted: ScriptedSandbox, element: str) -> None:
    result = page(scripted)
    [code] = re.findall(rf"<{element}>(.*?)</{element}>", result.text, re.DOTALL)
    digest = b64encode(hashlib.sha256(code.encode()).digest()).decode()
    directives = result.headers["Content-Security-Policy"].split("; ")
    assert "default-src 'none'" in directives
    assert f"{element}-src 'sha256-{digest}'" in directives


def test_nothing_is_fetched_from_elsewhere_and_the_page_is_small(scripted: ScriptedSandbox) -> None:
    result = page(scripted)
    assert "connect-src 'self'" in result.headers["Content-Security-Policy"]
    targets = re.findall(r'(?:src|href|action)="([^"]*)"', result.text)
    assert [target for target in targets if not target.startswith("data:")] == []
    assert "http" not in result.text
    assert len(result.content) < 50_000


def test_it_shows_the_policy_in_force(scripted: ScriptedSandbox, policy: Policy) -> None:
    scripted.policy = replace(
        policy,
        allowed_imports={"math": None, "json": ("dumps",)},
        limits=replace(policy.limits, wall_seconds=77),
    )
    shown = facts(page(scripted).text)
    assert shown["modules"] == ["json", "math"]
    assert "77 s" in shown["limits"]["Time"]


def test_no_text_of_the_policy_ends_its_element(scripted: ScriptedSandbox, policy: Policy) -> None:
    name = "</script><script>alert(1)</script>"
    scripted.policy = replace(policy, allowed_imports={name: None})
    html = page(scripted).text
    assert name not in html
    assert facts(html)["modules"] == [name]


@pytest.mark.parametrize(("secret", "asked"), [("", False), ("s", True)])
def test_it_asks_for_the_secret_where_one_is_demanded(
    scripted: ScriptedSandbox, secret: str, asked: bool
) -> None:
    result = page(scripted, webhook_secret=secret)
    assert result.status_code == 200
    assert facts(result.text)["secret"] is asked
    assert not secret or f'"{secret}"' not in result.text
