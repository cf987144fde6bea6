"""One at a time among all who share a store; what a dead holder leased is free again soon."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from function.delivery import lease as module
from function.delivery.lease import Leases
from function.errors import Busy
from function.state import Store, open_store
from function.state.memory import Memory

LEASE = 0.5


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = Memory() if request.param == "memory" else open_store(str(tmp_path / "state.db"))
    yield opened
    opened.close()


@pytest.fixture
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEASE_SECONDS", LEASE)
    monkeypatch.setattr(module, "RENEW_SECONDS", LEASE / 10)


def test_one_at_a_time_holds_a_lease(store: Store) -> None:
    replicas, inside, lock = [Leases(store), Leases(store)], [], threading.Lock()

    def work(number: int) -> None:
        with replicas[number % 2].acquire("7"):
            assert lock.acquire(blocking=False)
            inside.append(number)
            time.sleep(0.01)
            lock.release()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(16)))
    assert sorted(inside) == list(range(16))
    assert store.status()["state"] == "ok"


def test_different_work_does_not_wait(store: Store) -> None:
    leases = Leases(store)
    with leases.acquire("7"), leases.acquire("8"):
        pass


def test_a_lease_lasts_as_long_as_its_holder_works(
    store: Store, short_lease: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS", 3 * LEASE)
    with Leases(store).acquire("7"), pytest.raises(Busy) as busy, Leases(store).acquire("7"):
        pass
    assert busy.value.retry_after > 0


def test_what_a_dead_holder_leased_is_free_after_a_lease(store: Store, short_lease: None) -> None:
    store.count("lease:7", LEASE)  # and nobody renews it
    started = time.monotonic()
    with Leases(store).acquire("7"):
        assert time.monotonic() - started > LEASE / 2


def test_a_lease_that_nobody_renews_ends_though_the_store_keeps_it(
    store: Store, short_lease: None
) -> None:
    store.set("lease:7", "1", 1000)
    with Leases(store).acquire("7"):
        pass


def test_a_lease_that_ends_in_an_error_is_free_at_once(store: Store) -> None:
    leases = Leases(store)
    with pytest.raises(ZeroDivisionError), leases.acquire("7"):
        raise ZeroDivisionError
    assert store.get("lease:7") is None


def test_nothing_runs_while_nothing_is_held(store: Store) -> None:
    with Leases(store).acquire("7"):
        assert "leases" in names()
    deadline = time.monotonic() + 10
    while "leases" in names():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def names() -> list[str]:
    return [thread.name for thread in threading.enumerate()]
