"""The wall clock jumps: nobody is refused or answered for longer than was meant."""

import json
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from function.state import open_store
from tests.conftest import ROOT, Service, message
from tests.faults.parts import health, is_right

DAY = 86400
JUMPS = pytest.mark.parametrize("jump", [-DAY, DAY], ids=["back", "ahead"])

# Loaded by the service's interpreters at their start (site): time.time() is as far off as a file
# says. The machine's clock, and that of guests, stays; monotonic clocks never jump.
SITECUSTOMIZE = """
import time
real = time.time
def time_off():
    with open({path!r}) as file:
        return real() + float(file.read())
time.time = time_off
time.time_ns = lambda: int(time_off() * 10**9)  # what logging reads from Python 3.13 on
"""


@JUMPS
def test_counts_begin_anew_after_their_time_whatever_the_clock_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    store, real = open_store(str(tmp_path / "state.db")), time.time
    for expected in (1, 2, 3):
        assert store.count("sender", 60) == expected
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    assert store.count("sender", 60) == 1
    assert store.count("sender", 60) == 2
    monkeypatch.setattr(time, "time", lambda: real() + jump + 61)
    assert store.count("sender", 60) == 1
    store.set("mode", "compact", DAY)
    assert store.get("mode") == "compact"
    store.close()


def test_a_clock_that_is_corrected_lets_nobody_count_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, real = open_store(str(tmp_path / "state.db")), time.time
    for expected, off in ((1, 0.0), (2, -0.001), (3, -1.0), (4, 1.0)):
        monkeypatch.setattr(time, "time", lambda off=off: real() + off)
        assert store.count("claim", 5) == expected
    store.close()


@JUMPS
def test_a_running_service_answers_rightly_whatever_the_clock_did(
    start_service: Callable[..., Service], tmp_path: Path, jump: int
) -> None:
    offset = tmp_path / "offset"
    offset.write_text("0")
    (tmp_path / "site").mkdir()
    script = tmp_path / "site" / "sitecustomize.py"
    script.write_text(SITECUSTOMIZE.format(path=str(offset)))
    service = start_service(
        STORE=str(tmp_path / "state.db"),
        LOG_FORMAT="json",
        PYTHONPATH=f"{script.parent}:{ROOT}",
    )
    post(service, 1, "/mode")
    first = post(service, 2, "random.random()")
    for number, off, went_back in ((3, jump, jump < 0), (4, 0, jump > 0)):
        offset.write_text(str(off))
        assert post(service, number, "2+2") == "4"  # the mode is still known
        assert abs(log_time(service) - time.time() - off) < 60  # it did jump
        assert all(is_right(service) for _ in range(10))
        if went_back:  # else the answer is a day old, and forgotten
            assert post(service, 2, "random.random()") == first
    assert health(service)["store"]["state"] == "ok"


def post(service: Service, number: int, text: str) -> Any:
    update = {"update_id": number, "message": message(text, message_id=number)}
    response = service.request("POST", "/webhook", update)
    assert response.status == 200
    return response.json()["text"]


def log_time(service: Service) -> float:
    """Return the time of the service's last log line."""
    line = json.loads(service.logs().splitlines()[-1])
    return datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%S%z").timestamp()
