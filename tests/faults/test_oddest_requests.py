"""For every field of every route, the longest and oddest that HTTP lets through: nobody waits.

What a request costs is compared with a request of the same size that holds nothing: in CPU time of
the worker, which a busy machine does not change. How long others waited meanwhile is printed.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import urllib3

from function.http.request import BODY_BYTES, MOST_VALUES
from tests.conftest import Service, message
from tests.faults.parts import parts, users

SIZE = BODY_BYTES - 2000  # of a field as JSON; the rest of the body fits beside it
TIMES = 10  # what the oddest may cost, compared with as many bytes of nothing
SLACK_SECONDS = 0.05  # of CPU time, in which a program is checked and run
MEMORY_MIB = 64

Fields = Callable[[Any], dict[str, Any]]


def private(**fields: Any) -> dict[str, Any]:
    number = next(users)
    person = {"id": number, "is_bot": False, "first_name": "Ada"}
    sent = message("1", **{"from": person, "chat": {"id": number, "type": "private"}})
    return sent | fields


def update(**fields: Any) -> dict[str, Any]:
    return {"update_id": next(users)} | fields


def query(**fields: Any) -> dict[str, Any]:
    return {"id": "1", "from": {"id": next(users)}, "query": "2+2", "offset": ""} | fields


MESSAGE_FIELDS: dict[str, Fields] = {
    "text": lambda odd: {"text": odd},
    "caption": lambda odd: {"text": None, "caption": odd},
    "entities": lambda odd: {"entities": odd},
    "entity type": lambda odd: {"entities": [{"type": odd, "offset": 0, "length": 1}]},
    "first name": lambda odd: {"from": {"id": 1, "is_bot": False, "first_name": odd}},
    "user": lambda odd: {"from": odd},
    "user's id": lambda odd: {"from": {"id": odd}},
    "chat": lambda odd: {"chat": odd},
    "chat's id": lambda odd: {"chat": {"id": odd, "type": "private"}},
    "chat's type": lambda odd: {"chat": {"id": 1, "type": odd}},
    "message's id": lambda odd: {"message_id": odd},
    "thread": lambda odd: {"message_thread_id": odd},
    "reply": lambda odd: {"reply_to_message": {"text": odd}, "text": "/cl"},
    "document": lambda odd: {"document": {"file_id": "x", "file_name": odd}, "text": None},
    "unknown": lambda odd: {"unknown": odd},
}
QUERY_FIELDS = ("id", "from", "query", "offset")


def fits(unit: str, before: str = '"', after: str = '"') -> str:
    """As many units as a field has room for, as JSON."""
    return before + unit * (SIZE // len(unit)) + after


SPAN = '{"type":"pre","offset":0,"length":900000},'

# As JSON texts: several of them no dump would write.
ODD = {
    "letters": fits("a"),
    "names": fits("a,"),
    "statements": fits("a;"),
    "strings": fits('\\"a\\" '),
    "lines": fits("\\n"),
    "operators": fits("-"),
    "commas": fits("1,5 "),
    "emoji": fits("\\ud83d\\ude00"),
    "lone surrogates": fits("\\ud800"),
    "NUL": fits("\\u0000"),
    "backticks": fits("` @a "),
    "digits": fits("9", "", ""),
    "deep list": fits("[", "", ""),
    "as many lists as may be": "[" + "[]," * (MOST_VALUES - 100) + "[]]",
    "as many objects as may be": "[" + '{"a":{}},' * (MOST_VALUES - 100) + "{}]",
    "as much code as may be": "[" + SPAN * (SIZE // len(SPAN)) + "[]]",
    "list of numbers": fits("1,", "[", "1]"),
    "list of lists": fits("[],", "[", "[]]"),
    "list of objects": fits("{},", "[", "{}]"),
    "many keys": "{" + ",".join(f'"{n}":0' for n in range(SIZE // 12)) + "}",
    "a small float": fits("0", "0.", "1"),
}

MARK = "ODD"


def bodies(route: str) -> Iterator[tuple[str, str]]:
    """The name of each field of a route, and a body in which MARK stands for it."""
    if route == "/inline":
        asked = {"from_user_id": 1, "inline_query_id": "1", "query": "2+2"}
        for name in asked:
            yield name, json.dumps(asked | {name: MARK})
        return
    for name, fields in MESSAGE_FIELDS.items():
        odd = private(**fields(MARK))
        yield name, json.dumps(odd if route == "/message" else update(message=odd))
    if route == "/webhook":
        yield "update_id", json.dumps({"update_id": MARK, "message": private()})
        yield "edited", json.dumps(update(edited_message=private(text=MARK)))
        for name in QUERY_FIELDS:
            yield f"query's {name}", json.dumps(update(inline_query=query(**{name: MARK})))


def cpu_seconds(pid: int) -> float:
    """The CPU time of all threads of a process so far (proc(5), schedstat)."""
    spent = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            spent += int((task / "schedstat").read_text().split()[0])
    return spent / 1e9


def peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


class Bystander:
    """Another client, which asks GET /test all the time."""

    def __init__(self, service: Service) -> None:
        self.waited: list[float] = []
        self._service = service
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "Bystander":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._stop.wait(0.005):
            begun = time.monotonic()
            assert self._service.request("GET", "/test").status == 200
            self.waited.append(time.monotonic() - begun)


@pytest.mark.parametrize("route", ["/webhook", "/message", "/inline"])
def test_the_oddest_costs_no_more_than_its_size(
    service: Service, route: str, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = parts(service).worker

    def cost(body: bytes) -> tuple[float, int]:
        before = cpu_seconds(worker)
        status = 0
        with suppress(urllib3.exceptions.HTTPError):
            status = service.request("POST", route, body).status
        return cpu_seconds(worker) - before, status

    cost(b" " * SIZE + b"{}")
    with Bystander(service) as other:
        time.sleep(0.5)
        nothing = min(cost(b'{"x": "%b"}' % (b"a" * SIZE))[0] for _ in range(5))
        quiet, idle = max(other.waited), peak_mib(worker)
        costs = {}
        for field, body in bodies(route):
            for name, odd in ODD.items():
                sent = body.replace(f'"{MARK}"', odd).encode()
                costs[field, name], status = cost(sent)
                assert status in (200, 400, 413), (field, name, status)
    worst = sorted(costs, key=costs.__getitem__)[-5:]
    grown = peak_mib(worker) - idle
    dearest = ", ".join(f"{' '.join(each)} {costs[each] * 1e3:.0f} ms" for each in worst)
    with capsys.disabled():
        print(  # noqa: T201
            f"\n{route}: {len(costs)} requests of {SIZE >> 10} KiB, of which one that holds nothing"
            f" takes {nothing * 1e3:.1f} ms of CPU time; the dearest: {dearest}. GET /test took"
            f" {max(other.waited) * 1e3:.0f} ms at most, {quiet * 1e3:.0f} when it was quiet;"
            f" memory grew by {grown:.0f} MiB"
        )
    assert costs[worst[-1]] < TIMES * nothing + SLACK_SECONDS, worst[-1]
    assert grown < MEMORY_MIB
