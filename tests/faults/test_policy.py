"""Edits of the policy under steady load: no request fails, and none sees half an edit."""

import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, Service, message
from tests.faults.parts import eventually, health, held, is_right, parts, users
from tests.performance import processes

EDITS = int(os.environ.get("EDITS", "12"))  # EDITS=50 for the long form
PROGRAM = "import colorsys\n'wide' * (colorsys.rgb_to_hsv(1, 1, 1)[2] == 1)"
NARROW = (ROOT / "policy.yaml").read_text("utf-8")
WIDE = NARROW.replace("allowed_imports:\n", "allowed_imports:\n  - colorsys\n")
BAD = [
    NARROW[: len(NARROW) // 2],
    NARROW.replace("cpu_seconds: 2", "cpu_seconds: two"),
    NARROW.replace("  - seccomp\n", ""),
    NARROW.replace("  - '@network-io'\n", ""),
    "",
    None,  # deleted
]


def test_good_and_bad_edits_in_turn_cost_no_answer_and_leave_nothing(
    start_service: Callable[..., Service], tmp_path: Path
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(NARROW)
    service = start_service(POLICY_PATH=str(path))
    eventually(lambda: is_right(service))
    eventually(lambda: len(parts(service).guests) == 4)
    before, memory_before = held(service), memory(service)
    answers: Counter[tuple[int, bool, bool]] = Counter()
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            sent = message(PROGRAM, **{"from": {"id": next(users), "is_bot": False}})
            response = service.request("POST", "/message", sent)
            text = response.json()["text"]
            answers[response.status, text == "wide", "colorsys" in text] += 1

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    try:
        for edit in range(EDITS):
            refused = BAD[edit // 2 % len(BAD)]
            text = refused if edit % 2 else (WIDE, NARROW)[edit // 2 % 2]
            put(path, text, by_rename=edit % 4 < 2)
            eventually(lambda bad=edit % 2: ("refused" in health(service)["policy"]) == bad)  # type: ignore[misc]
            if edit % 2 == 0:
                eventually(lambda text=text: in_force(service) == is_wide(text))  # type: ignore[misc]
    finally:
        stop.set()
        for asker in askers:
            asker.join()
    assert answers.keys() == {(200, True, False), (200, False, True)}, answers
    eventually(lambda: is_right(service))
    eventually(lambda: held(service) <= before)
    assert memory(service) < memory_before + 15  # MiB; less than one zygote with its guests


def put(path: Path, text: str | None, *, by_rename: bool) -> None:
    if text is None:
        path.unlink()
    elif by_rename:
        other = path.with_suffix(".new")
        other.write_text(text)
        other.rename(path)
    else:
        path.write_text(text)


def is_wide(text: str | None) -> bool:
    return text == WIDE


def in_force(service: Service) -> bool:
    return service.ask(PROGRAM, **{"from": {"id": next(users), "is_bot": False}})["text"] == "wide"


def memory(service: Service) -> float:
    """Return MiB of proportional set size."""
    return sum(map(processes.memory_mib, processes.tree(service.process.pid)))


@pytest.mark.parametrize("text", [BAD[0], None], ids=["bad", "deleted"])
def test_another_worker_goes_on_with_the_last_good_policy(
    start_service: Callable[..., Service], tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(NARROW)
    service = start_service(POLICY_PATH=str(path), TMPDIR=str(tmp_path))
    put(path, text, by_rename=False)
    eventually(lambda: "refused" in health(service)["policy"])
    os.kill(parts(service).worker, 9)
    eventually(lambda: is_right(service))
    eventually(lambda: "refused" in health(service)["policy"])
    put(path, WIDE, by_rename=False)
    eventually(lambda: in_force(service) and "refused" not in health(service)["policy"])
    assert list(tmp_path.glob("calcubot-*"))
    service.process.terminate()
    assert service.process.wait(20) == 0
    assert not list(tmp_path.glob("calcubot-*"))
