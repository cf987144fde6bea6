"""GET /: a console in the browser, in one file that fetches nothing from elsewhere."""

import hashlib
import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import falcon

from function.answers.sentences import EXAMPLES
from function.settings import Settings
from function.telegram.types import Identity
from sandbox import Policy, Sandbox


class Page:
    """The page, with what the policy in force allows."""

    def __init__(self, settings: Settings, sandbox: Sandbox, bot: Identity) -> None:
        self._settings = settings
        self._sandbox = sandbox
        self._bot = bot
        html = Path(__file__).with_name("page.html").read_text("utf-8")
        before, mark, after = html.partition('id="policy">{}<')
        self._before, self._after = before + mark[: -len("{}<")], "<" + after
        self._headers = {
            "Content-Security-Policy": _content_security_policy(html),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-cache",
        }

    def on_get(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """Respond 200 with the page; it sends programs to /message."""
        facts = json.dumps(self._facts()).replace("<", "\\u003c")  # no text ends the element
        resp.content_type = falcon.MEDIA_HTML
        resp.set_headers(self._headers)
        resp.data = f"{self._before}{facts}{self._after}".encode()

    on_head = on_get

    def _facts(self) -> dict[str, Any]:
        policy = self._sandbox.policy
        return {
            "secret": bool(self._settings.gateway_secrets),
            "bot": {"id": self._bot.id, "username": self._bot.username},
            "modules": sorted(policy.allowed_imports),
            "limits": _limits(policy),
            "examples": list(EXAMPLES),
        }


def _limits(policy: Policy) -> dict[str, str]:
    limits, rlimits = policy.limits, policy.rlimits
    return {
        "Time": f"{limits.wall_seconds} s, {rlimits.cpu_seconds} s of it computing",
        "Memory": f"{rlimits.address_space_mib} MiB",
        "Program": f"{limits.source_bytes:,} bytes",
        "Output": f"{limits.output_bytes:,} bytes",
    }


def _content_security_policy(html: str) -> str:
    """Allow the page's own script and style, by their hashes, and requests to its own origin.

    https://www.w3.org/TR/CSP3/: pictures come in answers, as data: URLs.
    """
    [script] = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    [style] = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_source(script)}",
            f"style-src {_source(style)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _source(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
