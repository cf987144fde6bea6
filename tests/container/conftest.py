"""The image, built once, and containers of it, started with the flags that compose.yml means.

Run by tools/test --container, with BASE as the base image where the default cannot be had.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from tests.conftest import message
from tests.faults.parts import overload
from tools.serve import ROOT

IMAGE = "calcubot-under-test"
BASE = os.environ.get("BASE", "python:3.14-slim-trixie")
SECRET = "container-test"
KNOWN = {"Authorization": f"Bearer {SECRET}"}


def output_of(
    *command: str, given: str | None = None, fails: bool = False, **environment: str
) -> str:
    """Run a command and return all that it printed; the test fails if it fails unexpectedly."""
    result = subprocess.run(
        command,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=os.environ | {"DOCKER_BUILDKIT": "0"} | environment,
    )
    assert (result.returncode != 0) == fails, f"{' '.join(command)}:\n{result.stdout}"
    return result.stdout


def docker(
    *arguments: str, given: str | None = None, fails: bool = False, **environment: str
) -> str:
    """Run docker, as `output_of` does."""
    return output_of("docker", *arguments, given=given, fails=fails, **environment)


def compose_command() -> list[str] | None:
    """Return the command that compose is here, if there is one."""
    probe = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    if probe.returncode == 0:
        return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else None


def health(name: str, begin: float) -> str:
    """Return what the engine says of a container's health, when it knows or after ten seconds."""
    while True:
        state = docker("inspect", "--format={{.State.Health.Status}}", name).strip()
        if state != "starting" or time.monotonic() > begin + 10 * overload():
            return state
        time.sleep(0.2)


@pytest.fixture(scope="session")
def image() -> str:
    """The image's name."""
    if shutil.which("docker") is None:
        pytest.fail("These tests need a Docker engine and its client: install docker.io")
    return built(IMAGE)


@pytest.fixture(scope="session")
def maths_image(image: str) -> str:
    """The name of the image with algebra, arrays and plots."""
    return built(f"{image}-maths", "--build-arg=MATHS=1")


def built(name: str, *arguments: str) -> str:
    """Build the image under a name, and return that."""
    base = f"--build-arg=BASE={BASE}"
    docker("build", "--network=host", base, *arguments, f"--tag={name}", str(ROOT))
    return name


def compose_service() -> dict[str, Any]:
    """Return the one service of compose.yml."""
    service: dict[str, Any] = yaml.safe_load((ROOT / "compose.yml").read_text())["services"][
        "calcubot"
    ]
    return service


def flags(policy: Path, config: Path) -> list[str]:
    """Return what `docker run` must be told to do as compose does; the port is a free one."""
    service = compose_service()
    limits = service["deploy"]["resources"]["limits"]
    [tmpfs] = [volume for volume in service["volumes"] if volume["type"] == "tmpfs"]
    return [
        "--publish=127.0.0.1:0:8000",
        *(["--init"] if service["init"] else []),
        *(["--read-only"] if service["read_only"] else []),
        *(f"--cap-drop={name}" for name in service["cap_drop"]),
        *(f"--cap-add={name}" for name in service["cap_add"]),
        *(f"--security-opt={option}" for option in service["security_opt"]),
        f"--memory={limits['memory'].rpartition(':-')[2].rstrip('}')}",
        f"--pids-limit={limits['pids']}",
        f"--cpus={min(2, os.cpu_count() or 1)}",
        f"--stop-timeout={service['stop_grace_period'].rstrip('s')}",
        f"--restart={service['restart']}",
        f"--log-driver={service['logging']['driver']}",
        *(f"--log-opt={key}={value}" for key, value in service["logging"]["options"].items()),
        f"--mount=type=bind,source={policy},target=/app/policy.yaml,readonly",
        f"--mount=type=bind,source={config},target=/secrets/config.json,readonly",
        "--mount=type=volume,target=/state",
        f"--mount=type=tmpfs,target={tmpfs['target']},tmpfs-size={tmpfs['tmpfs']['size']}",
    ]


@dataclass(frozen=True)
class Container:
    """A running container, and the file that is its policy.yaml."""

    name: str
    policy: Path
    http: urllib3.PoolManager

    def url(self) -> str:
        """Return where it is served; the port changes when the engine restarts it."""
        return "http://" + docker("port", self.name, "8000/tcp").split()[0]

    def get(self, path: str) -> Any:
        """Return the JSON at a path."""
        return self.http.request("GET", self.url() + path, headers=KNOWN).json()

    def ask(self, text: str) -> str:
        """Return the answer to a private message."""
        url = self.url() + "/message"
        answer = self.http.request("POST", url, json=message(text), headers=KNOWN)
        assert answer.status == 200, answer.data
        body: str = answer.json()["body"]
        return body

    def answers(self, within: float) -> None:
        """Return when 2+2 is answered rightly; fail if that takes longer than so many seconds."""
        deadline = time.monotonic() + within
        while True:
            try:
                assert self.ask("2+2") == "4 = 2+2"
                return
            except (urllib3.exceptions.HTTPError, AssertionError, IndexError):
                assert time.monotonic() < deadline, docker("logs", self.name)
                time.sleep(0.1)

    def python(self, script: str) -> str:
        """Run a script with the image's Python, as root within the container."""
        return docker("exec", "--interactive", self.name, "python", "-", given=script)

    def pids(self, what: str) -> list[int]:
        """Return the process ids, inside, of those whose command line holds a text, in order."""
        script = f"""
import os
for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
    try:
        command = open(f"/proc/{{pid}}/cmdline").read().replace(chr(0), " ")
    except OSError:  # it has ended
        continue
    if pid > 1 and {what!r} in command:
        print(pid)
"""
        return [int(line) for line in self.python(script).split()]

    def kill(self, pid: int, signal: int) -> None:
        """Send a signal to a process inside; the sender may end with the container."""
        script = f"import os; os.kill({pid}, {signal})"
        subprocess.run(["docker", "exec", self.name, "python", "-c", script], check=False)


Start = Callable[..., Container]


@pytest.fixture
def start(image: str, tmp_path: Path) -> Iterator[Start]:
    """Return a function that runs a container as compose does, with more flags if given."""
    names = []

    def run(
        *more: str,
        config: dict[str, str] | None = None,
        ready: bool = True,
        image: str = image,
    ) -> Container:
        name = f"calcubot-test-{os.getpid()}-{len(names)}"
        policy, secret = tmp_path / f"{name}.yaml", tmp_path / f"{name}.json"
        shutil.copy(ROOT / "policy.yaml", policy)
        secret.write_text(json.dumps({"WEBHOOK_SECRET": SECRET} | (config or {})))
        secret.chmod(0o600)
        names.append(name)
        docker("run", "--detach", f"--name={name}", *flags(policy, secret), *more, image)
        container = Container(name, policy, urllib3.PoolManager(timeout=30, retries=False))
        if ready:
            container.answers(within=30)
        return container

    yield run
    for name in names:
        docker("rm", "--force", "--volumes", name)
