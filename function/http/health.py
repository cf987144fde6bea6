"""GET /health, /health/ready, /health/live and /test: what probes and operators ask."""

import platform
from dataclasses import dataclass
from importlib.metadata import version
from ipaddress import ip_address

import falcon

from function import __version__
from function.http.request import credentials, knows
from function.http.response import respond
from function.settings import Settings
from function.state import Store
from sandbox import PolicyWatch, Sandbox


@dataclass(frozen=True)
class Health:
    """Whether the service responds, whether programs can be run, and what is in force."""

    settings: Settings
    sandbox: Sandbox
    store: Store
    watch: PolicyWatch | None

    def on_get_live(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """Respond at all: a process that does not should be restarted."""
        respond(resp, {"status": "ok"})

    def on_get_ready(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """Respond 503 while programs cannot be run: send no requests, it recovers by itself."""
        serving = bool(self.sandbox.status().get("serving"))
        resp.status = falcon.HTTP_200 if serving else falcon.HTTP_503
        respond(resp, {"status": "ok" if serving else "failing"})

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Respond as `on_get_ready`; to an operator with what is in force, and no secret.

        An operator knows the secret, or asks from this machine and through no proxy.
        """
        self.on_get_ready(req, resp)
        if not self._is_operator(req):
            return
        policy = self.sandbox.policy
        in_file = self.watch.status() if self.watch else {}
        respond(
            resp,
            {
                "status": "ok" if resp.status == falcon.HTTP_200 else "failing",
                "open": not self.settings.webhook_secret,
                "policy": {"path": str(policy.path), "sha256": policy.sha256, **in_file},
                "sandbox": self.sandbox.status(),
                "store": self.store.status(),
                "versions": {
                    "calcubot": __version__,
                    "python": platform.python_version(),
                    "kernel": platform.release(),
                    "falcon": version("falcon"),
                    "gunicorn": version("gunicorn"),
                },
            },
        )

    def _is_operator(self, req: falcon.Request) -> bool:
        if knows(self.settings.gateway_secrets, *credentials(req)):
            return True
        came_through = any(map(req.get_header, ("Forwarded", "X-Forwarded-For", "Via")))
        try:
            return ip_address(req.remote_addr).is_loopback and not came_through
        except ValueError:
            return False

    on_head, on_head_ready, on_head_live = on_get, on_get_ready, on_get_live
