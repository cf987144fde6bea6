"""Two services that share a Valkey or Redis server, as behind a balancer."""

import json
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Service, message
from tests.valkey import ValkeyServer, running_valkey

SECRET = "fixture-secret"


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    with running_valkey(tmp_path) as server:
        yield server


@pytest.fixture
def replicas(
    valkey: ValkeyServer, start_service: Callable[..., Service], tmp_path: Path
) -> list[Service]:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"WEBHOOK_SECRET": SECRET}))
    return [start_service(CONFIG_PATH=str(config), STORE=valkey.address) for _ in range(2)]


def post(service: Service, update_id: int, text: str, kind: str = "message") -> Any:
    update = {"update_id": update_id, kind: message(text)}
    headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
    response = service.request("POST", "/webhook", update, **headers)
    assert response.status == 200
    return response.json() if response.data else None


def test_a_preference_holds_at_every_replica(replicas: list[Service]) -> None:
    one, other = replicas
    assert post(one, 1, "2+2")["text"] == "4 = 2+2"
    post(one, 2, "/mode")
    assert post(other, 3, "2+2")["text"] == "4"
    post(other, 4, "/mode")
    assert post(one, 5, "2+2")["text"] == "4 = 2+2"


def test_a_repeat_gets_its_answer_from_any_replica(replicas: list[Service]) -> None:
    answers = [post(service, 7, "random.random()") for service in replicas * 2]
    assert all(answer == answers[0] for answer in answers)


def test_an_edit_is_known_at_every_replica(replicas: list[Service]) -> None:
    one, other = replicas
    post(one, 1, "2+2")
    assert post(other, 2, "2+2", "edited_message") is None
    assert post(other, 3, "2+3", "edited_message")["text"] == "5 = 2+3"


def test_answers_go_on_without_the_server_and_sharing_resumes(
    replicas: list[Service], valkey: ValkeyServer
) -> None:
    one, other = replicas
    valkey.stop()
    for service in replicas:
        started = time.monotonic()
        assert post(service, 1, "2+2")["text"] == "4 = 2+2"
        assert time.monotonic() - started < 5
    post(one, 2, "/mode")
    assert [health(service)["state"] for service in replicas] == ["degraded"] * 2
    valkey.start()
    deadline, numbers = time.monotonic() + 20, count(3)
    while post(other, next(numbers), "2+2")["text"] != "4":
        assert time.monotonic() < deadline
        time.sleep(0.2)
        post(one, next(numbers), "1+1")  # finds the server, and brings what was set meanwhile
    assert [health(service)["state"] for service in replicas] == ["ok"] * 2


def health(service: Service) -> Any:
    return service.request("GET", "/health").json()["store"]
