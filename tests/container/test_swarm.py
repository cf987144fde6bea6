"""compose.yml as `docker stack deploy` runs it: replicas that share, are killed, renewed, kept."""

import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.conftest import message
from tests.container.conftest import docker
from tests.container.swarm import HEALTHY_WITHIN, STORE_PORT, Stack, swarm
from tests.function.test_replay import LOST, SECRET, Telegram, program
from tests.ports import free_port
from tests.valkey import running_valkey
from tools.serve import ROOT

pytestmark = [pytest.mark.container, pytest.mark.timeout(900)]

CONNECTIONS = 8
WORK = "for _ in range(10**6): pass"  # so that some are always being answered
MOST = 20  # programs that a user may have run in a minute, while others ask as well
MONITOR = "5s"  # instead of 30 s, in which an update waits to see each new replica fail


@dataclass(frozen=True)
class Deployed:
    """The stack, and how to deploy it with another policy."""

    stack: Stack
    folder: Path
    deploy: Callable[[Path], None]


@pytest.fixture(scope="module")
def deployed(image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    state = docker("info", "--format={{.Swarm.LocalNodeState}}").strip()
    if state != "inactive":
        pytest.skip(f"the engine's swarm is {state}: it is not for a test to use")
    folder, name = tmp_path_factory.mktemp("swarm"), "calcubot-test"
    config, override = folder / "config.json", folder / "override.yml"
    config.write_text(json.dumps({"WEBHOOK_SECRET": SECRET}))
    service = {"image": image, "deploy": {"update_config": {"monitor": MONITOR}}}
    override.write_text(json.dumps({"services": {"calcubot": service}}))
    files = [f"--compose-file={file}" for file in (ROOT / "compose.yml", override)]
    environment = {"STORE": f"redis://127.0.0.1:{STORE_PORT}", "REPLICAS": "2", "CPUS": "1"}
    environment |= {"PORT": str(free_port()), "CONFIG": str(config)}

    def deploy(policy: Path) -> None:
        flags = ["--resolve-image=never", "--detach=true", *files]
        docker("stack", "deploy", *flags, name, POLICY=str(policy), **environment)

    with running_valkey(folder) as valkey, swarm(name):
        text = (ROOT / "policy.yaml").read_text()
        policy = folder / "policy.yaml"
        policy.write_text(re.sub(r"sender_per_minute: \d+", f"sender_per_minute: {MOST}", text))
        deploy(policy)
        with Stack(name, valkey.port) as stack:
            stack.healthy()
            yield Deployed(stack, folder, deploy)


def post(url: str, update_id: int, text: str, user: int) -> str:
    """Bring one update and return the answer's text."""
    person = {"id": user, "is_bot": False, "first_name": "Ada"}
    sent = message(
        text, message_id=update_id, chat=person | {"type": "private"}, **{"from": person}
    )
    headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
    body = {"update_id": update_id, "message": sent}
    response = urllib3.request("POST", url + "/webhook", json=body, headers=headers, timeout=60)
    assert response.status == 200, response.data
    answer: str = response.json()["text"]
    return answer


NUMBERS = itertools.count(1)


@contextmanager
def load(stack: Stack) -> Iterator[Telegram]:
    """Bring updates, each from a user of its own, while the body of the `with` runs.

    Each must be answered rightly in the end, and whenever it is repeated.
    """
    telegram, stopped = Telegram(stack.url, seed=1, broken=0), threading.Event()
    brought: list[int] = []

    def updates() -> Iterator[dict[str, Any]]:
        while not stopped.is_set():
            number = next(NUMBERS)
            update = {"update_id": number} | program(number, number, [])
            update["message"]["text"] = f"{WORK}\n{update['message']['text']}"
            brought.append(number)
            yield update

    failures: list[BaseException] = []

    def bring() -> None:
        try:
            telegram.deliver(updates())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=bring) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    try:
        yield telegram
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert telegram.answers.keys() == {*brought}
    for number, answers in telegram.answers.items():
        assert all(answer["text"].startswith(f"{number} ") for answer in answers), answers


def until(telegram: Telegram, answers: int) -> None:
    """Wait for so many more answers."""
    wanted, deadline = telegram.attempts["200"] + answers, time.monotonic() + 180
    while telegram.attempts["200"] < wanted:
        assert time.monotonic() < deadline, telegram.attempts
        time.sleep(0.05)


def test_a_preference_and_an_answer_hold_at_every_replica(deployed: Deployed) -> None:
    stack = deployed.stack
    one, other = stack.healthy()
    user = next(NUMBERS)
    with stack.only(one) as first, stack.only(other) as second:
        assert post(first, next(NUMBERS), "2+2", user) == "4 = 2+2"
        post(first, next(NUMBERS), "/mode", user)
        assert post(second, next(NUMBERS), "2+2", user) == "4"
        repeated = next(NUMBERS)
        answers = {post(url, repeated, "random.random()", user) for url in (first, second)}
        assert len(answers) == 1


def test_what_a_user_may_ask_in_a_minute_is_counted_over_all_replicas(
    deployed: Deployed,
) -> None:
    stack = deployed.stack
    one, other = stack.healthy()
    user = next(NUMBERS)
    with stack.only(one) as first, stack.only(other) as second, load(stack):
        for index in range(2 * MOST):
            answer = post((first, second)[index % 2], next(NUMBERS), "1", user)
            if "You sent many programs" in answer:
                break
    assert MOST <= index < 2 * MOST - 1


def test_a_killed_replica_loses_no_update_and_is_replaced(deployed: Deployed) -> None:
    stack = deployed.stack
    victim, survivor = stack.healthy()
    with load(stack) as telegram:
        until(telegram, 50)
        docker("pause", victim.container)  # what comes to it now is not answered before it dies
        before = stack.taken[victim.container]
        while stack.taken[victim.container] == before:
            time.sleep(0.01)
        docker("kill", "--signal=KILL", victim.container)
        until(telegram, 50)  # by the other one alone
        replicas = stack.healthy(without=[victim])
        until(telegram, 50)
    assert telegram.attempts[LOST]
    assert survivor in replicas
    assert all(stack.taken[replica.container] for replica in (victim, *replicas))


def test_a_rolling_update_is_seen_by_no_one(deployed: Deployed) -> None:
    stack = deployed.stack
    before = stack.healthy()
    with load(stack) as telegram:
        until(telegram, 50)
        docker("service", "update", "--force", "--detach=false", "--quiet", stack.service)
        after = stack.healthy(without=before)
        until(telegram, 50)
    assert not telegram.attempts[LOST]
    assert all(stack.taken[replica.container] for replica in after)


def test_an_update_that_cannot_serve_is_rolled_back_and_seen_by_no_one(deployed: Deployed) -> None:
    stack = deployed.stack
    before = stack.healthy()
    broken = deployed.folder / "broken.yaml"
    broken.write_text("version: [")
    with load(stack) as telegram:
        until(telegram, 50)
        deployed.deploy(broken)
        deadline = time.monotonic() + HEALTHY_WITHIN
        status = "--format={{.UpdateStatus.State}}"
        while docker("service", "inspect", status, stack.service).strip() != "rollback_completed":
            assert time.monotonic() < deadline, docker("service", "ps", stack.service)
            time.sleep(0.2)
        until(telegram, 50)
    assert not telegram.attempts[LOST]
    assert {*stack.healthy()} == {*before}
