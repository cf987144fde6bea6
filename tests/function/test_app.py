"""The service as it is started: gunicorn, the real sandbox, real HTTP."""

import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Service
from tests.function.telegram.test_update_corpus import (
    ROWS,
    SECRET,
    SETTINGS,
    bodies,
    check_call,
    each,
)


def configured(folder: Path) -> dict[str, str]:
    """The environment of the bot that the corpus is for."""
    path = folder / "config.json"
    path.write_text(
        json.dumps(
            {"TOKEN": SETTINGS.token, "WEBHOOK_SECRET": SECRET, "BOT_USERNAME": "pycalc_demo_bot"}
        )
    )
    return {"CONFIG_PATH": str(path)}


def test_the_corpus_is_answered_over_http(
    start_service: Callable[..., Service], tmp_path: Path
) -> None:
    policy = (ROOT / "policy.yaml").read_text("utf-8")
    patient = tmp_path / "policy.yaml"  # for all updates are of one person
    patient.write_text(re.sub("sender_concurrent: .*", "sender_concurrent: 4", policy))
    service = start_service(**configured(tmp_path), POLICY_PATH=str(patient))

    def check(row: dict[str, Any]) -> None:
        headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET, **row.get("headers", {})}
        sent = {name: value for name, value in headers.items() if value is not None}
        for body in bodies(row):
            method, path = row.get("http_method", "POST"), row.get("endpoint", "/webhook")
            response = service.request(method, path, body, **sent)
            while response.status == 503:  # many programs at once: as Telegram does
                time.sleep(int(response.headers["Retry-After"]))
                response = service.request(method, path, body, **sent)
            assert response.status in each(row["expect"]["status"]), row["name"]
            taken = response.status == 200 and response.data
            check_call(row["expect"], response.json() if taken else {})

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(check, (row for row in ROWS if "input(" not in str(row))))
    for row in ROWS:
        if "input(" in str(row):  # alone, as its user's next message would be its answer
            check(row)
    assert "Traceback" not in service.logs()
    assert SETTINGS.token not in service.logs()


def test_a_refused_body_does_not_cost_the_connection(service: Service) -> None:
    for size in (100_000, 2_000_000):
        assert service.request("POST", "/message", b" " * size).status >= 400
        assert service.ask("2+2")["text"] == "4 = 2+2"


def test_many_at_once_are_all_answered(service: Service) -> None:
    def ask(number: int) -> str:
        chat = {"id": number, "type": "private"}
        text = service.ask(f"{number}+1", chat=chat, **{"from": {"id": number}})["text"]
        return str(text)

    with ThreadPoolExecutor(20) as threads:
        said = list(threads.map(ask, range(1, 101)))
    assert said == [f"{number + 1} = {number}+1" for number in range(1, 101)]


def test_a_program_of_several_lines_gives_its_output(service: Service) -> None:
    assert service.ask("for i in range(3):\n    print(i)\ni * 10")["text"] == "0\n1\n2\n20"


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"DELIVERY": "pigeon"}, "DELIVERY is 'pigeon'"),
        ({"POLICY_PATH": "/nowhere/policy.yaml"}, "/nowhere/policy.yaml"),
        ({"STORE": "ftp://x"}, "no store"),
    ],
)
def test_a_wrong_setting_ends_the_service_with_the_reason(
    start_service: Callable[..., Service], environment: dict[str, str], told: str
) -> None:
    with pytest.raises(pytest.fail.Exception, match=told) as ended:
        start_service(**environment)
    assert "Traceback" not in str(ended.value)


def test_one_line_sums_up_what_is_served(service: Service) -> None:
    [line] = [line for line in service.logs().splitlines() if " INFO serving " in line]
    for field in ("version=", "delivery=reply", "store=memory", "layers=", "seccomp"):
        assert field in line
