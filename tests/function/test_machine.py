"""What the machine lacks is told with what the service needs."""

import resource
from collections.abc import Iterator

import pytest

from function import machine


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int]]]:
    """Limits of open files, of which the last is in force."""
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    return limits


def test_the_limit_of_descriptors_is_raised_as_far_as_needed(files: list[tuple[int, int]]) -> None:
    files.append((256, 1 << 20))
    assert machine.connections(1000) == 1000
    assert files[-1] == (1000 + machine.OTHER_DESCRIPTORS, 1 << 20)
    files.append((5000, resource.RLIM_INFINITY))
    assert machine.connections(1000) == 1000
    assert files[-1][0] == 5000


def test_fewer_descriptors_make_fewer_connections_and_too_few_are_refused(
    files: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_limits", lambda *_: iter(()))
    files.append((256, 512))
    assert machine.connections(1000) == 512 - machine.OTHER_DESCRIPTORS
    machine.check()
    files.append((64, 64))
    with pytest.raises(machine.Shortage, match="only 64 files may be open: allow at least 256"):
        machine.check()


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"memory": [1 << 40, 32 << 20], "pids": [80]}, r"only 32 MiB .*: allow at least 64"),
        ({"memory": [64 << 20], "pids": [60, 1000]}, r"too few processes .*: allow at least 80"),
    ],
)
def test_limits_of_the_control_group_are_compared(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, list[int]], told: str
) -> None:
    monkeypatch.setattr(machine, "_limits", lambda controller, *_: iter(limits[controller]))
    with pytest.raises(machine.Shortage, match=told):
        machine.check()


@pytest.mark.parametrize("limits", [{"memory": [64 << 20], "pids": [80]}, {}])
def test_with_enough_and_without_limits_nothing_is_lacking(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, list[int]]
) -> None:
    monkeypatch.setattr(machine, "_limits", lambda controller, *_: iter(limits.get(controller, ())))
    machine.check()
