"""Fixtures that every part's tests may ask for: the policy, a started sandbox, a real service."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import urllib3

from sandbox.policy.loader import Policy, load_policy
from tests.ports import free_port
from tools import serve

ROOT = serve.ROOT
READY_WITHIN = 20  # seconds; generous, for machines that run many tests at once

hypothesis.settings.register_profile("shared-machine", deadline=None)
hypothesis.settings.load_profile("shared-machine")


@pytest.fixture(scope="session")
def policy() -> Policy:
    """The repository's own policy.yaml."""
    return load_policy(ROOT / "policy.yaml")


@pytest.fixture(scope="session")
def sandbox(policy: Policy) -> "Iterator[Sandbox]":  # noqa: F821
    """A started sandbox under the repository's own policy; tests must leave it working.

    Programs have longer than usual to come by their CPU time, on a machine that others use as well.
    """
    from sandbox.sandbox import Sandbox

    started = Sandbox(replace(policy, limits=replace(policy.limits, wall_seconds=60)))
    started.start()
    yield started
    started.close()


@pytest.fixture(scope="session")
def maths() -> "Iterator[Sandbox]":  # noqa: F821
    """A started sandbox under the policy that has libraries, with time as above."""
    for module in ("matplotlib", "sympy"):
        pytest.importorskip(module, reason="the packages of function/maths.txt are not installed")
    from sandbox.sandbox import Sandbox

    policy = load_policy(ROOT / "sandbox/policies/maths.yaml")
    started = Sandbox(replace(policy, limits=replace(policy.limits, wall_seconds=60)))
    started.start()
    yield started
    started.close()


@dataclass(frozen=True)
class Service:
    """A running gunicorn: its address, its process and the file that its logs go to."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    http: urllib3.HTTPConnectionPool

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send one request; `body` is JSON to be, or bytes as they are. Returns the response."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} | headers
        return self.http.request(method, path, body=data, headers=sent, retries=False)

    def ask(self, text: str, **fields: Any) -> Any:
        """Post a private message to /message and return the reply's fields."""
        response = self.request("POST", "/message", message(text, **fields))
        assert response.status == 200, response.data
        return response.json()

    def logs(self) -> str:
        """Return everything that the service has written so far."""
        return self.log.read_text(errors="replace")


def message(text: str, **fields: Any) -> dict[str, Any]:
    """Return a Telegram Message as a person would send it in a private chat."""
    person = {"id": 1, "is_bot": False, "first_name": "Ada"}
    chat = {"id": 1, "type": "private", "first_name": "Ada"}
    return {"message_id": 1, "date": 1, "chat": chat, "from": person, "text": text} | fields


@contextmanager
def running_services(folder: Path) -> Iterator[Callable[..., Service]]:
    """Give a function that starts services, and stop all that it started at the end."""
    started: list[Service] = []

    def start(**environment: str) -> Service:
        url = f"http://127.0.0.1:{free_port()}"
        log = folder / f"service-{len(started)}.log"
        clean: Mapping[str, str] = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        config = {"CONFIG_PATH": str(folder / "no-token.json")}
        (folder / "no-token.json").write_text("{}")
        with log.open("wb") as output:
            process = subprocess.Popen(
                serve.command(url.removeprefix("http://")),
                env={**clean, **config, **environment},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        http = urllib3.connection_from_url(url, timeout=30, maxsize=100)
        service = Service(url, process, log, http)
        started.append(service)
        wait_until_ready(service)
        return service

    try:
        yield start
    finally:
        for service in started:
            service.http.close()
            service.process.send_signal(signal.SIGTERM)
        for service in started:
            try:
                service.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(service.process.pid, signal.SIGKILL)
                raise


def wait_until_ready(service: Service) -> None:
    """Return when the service answers; fail with its logs when it ends or takes too long."""
    deadline = time.monotonic() + READY_WITHIN
    while time.monotonic() < deadline and service.process.poll() is None:
        try:
            if service.request("GET", "/test").status == 200:
                return
        except urllib3.exceptions.HTTPError:
            time.sleep(0.02)
    pytest.fail(f"no answer from the service:\n{service.logs()}")


@pytest.fixture
def start_service(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Return a function that starts a service of its own; keywords become environment variables.

    All of them are stopped after the test, and must end quietly when told to.
    """
    with running_services(tmp_path) as start:
        yield start


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that many tests share: no token, no secret, the repository's own policy."""
    with running_services(tmp_path_factory.mktemp("service")) as start:
        yield start()
