"""One sender cannot take what others need; who is alone may."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from function.errors import TooMany
from function.rate_limit import RateLimit
from function.state.memory import Memory
from sandbox.policy.loader import Limits, Policy


@pytest.fixture
def limits(policy: Policy) -> Limits:
    return replace(policy.limits, sender_concurrent=2, sender_per_minute=5)


@pytest.fixture
def rate_limit() -> RateLimit:
    return RateLimit(Memory())


def test_no_more_than_the_limit_run_at_once(rate_limit: RateLimit, limits: Limits) -> None:
    with rate_limit.slot(1, limits, 0), rate_limit.slot(1, limits, 0):
        with pytest.raises(TooMany, match="user_concurrent"), rate_limit.slot(1, limits, 0):
            pass
        with rate_limit.slot(2, limits, 0):
            pass
    with rate_limit.slot(1, limits, 0):
        pass


def test_a_program_waits_for_its_turn(rate_limit: RateLimit, limits: Limits) -> None:
    most, running, lock = 0, 0, threading.Lock()

    def run(_: int) -> None:
        nonlocal most, running
        with rate_limit.slot(1, limits, 10):
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.001)
            with lock:
                running -= 1

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(run, range(200)))
    assert most <= 2


def test_who_is_alone_may_start_many_a_minute(rate_limit: RateLimit, limits: Limits) -> None:
    for _ in range(50):
        with rate_limit.slot(1, limits, 0):
            pass


def test_while_others_run_the_rate_holds(rate_limit: RateLimit, limits: Limits) -> None:
    for _ in range(5):
        with rate_limit.slot(1, limits, 0):
            pass
    with (
        rate_limit.slot(2, limits, 0),
        pytest.raises(TooMany, match="user_rate"),
        rate_limit.slot(1, limits, 0),
    ):
        pass


def test_the_rate_is_shared_through_the_store(limits: Limits) -> None:
    store = Memory()
    for _ in range(5):
        with RateLimit(store).slot(1, limits, 0):
            pass
    other = RateLimit(store)
    with other.slot(2, limits, 0), pytest.raises(TooMany), other.slot(1, limits, 0):
        pass
