"""What a zygote's own troubles cost: an answer is late at most, and nothing is left open."""

import errno
import os
import resource
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sandbox.fork_server.program import encode
from sandbox.fork_server.zygote_process import ZygoteProcess, longest_answer_seconds
from sandbox.policy.loader import Policy
from sandbox.sandbox import Outcome, Sandbox
from tests.sandbox.test_sandbox import eventually, guests, zygote_pid


@pytest.fixture
def own_sandbox(policy: Policy) -> Iterator[Sandbox]:
    sandbox = Sandbox(policy)
    sandbox.start()
    yield sandbox
    sandbox.close()


def test_a_stopped_zygote_is_replaced_before_any_timeout(own_sandbox: Sandbox) -> None:
    os.kill(zygote_pid(own_sandbox), signal.SIGSTOP)
    started = time.monotonic()
    for _ in range(own_sandbox.policy.limits.prepared_guests + 1):
        assert own_sandbox.run("2+2").output == "4\n"
    assert time.monotonic() - started < 10
    assert own_sandbox.status()["zygote"]["restarts"] == 1


def test_no_outcome_comes_later_than_it_is_said_to(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here its zygote stops, is found stuck, and is replaced."""
    limits = replace(policy.limits, wall_seconds=1, queue_seconds=0)
    sandbox = Sandbox(replace(policy, limits=limits))
    monkeypatch.setattr("sandbox.fork_server.zygote_process._LATE_SECONDS", 1.5)
    sandbox.start()
    try:
        with ThreadPoolExecutor(1) as pool:
            started = time.monotonic()
            running = pool.submit(sandbox.run, "import time\ntime.sleep(60)", unchecked=True)
            eventually(lambda: sandbox.status()["guests"]["running"] == 1)
            os.kill(zygote_pid(sandbox), signal.SIGSTOP)
            assert running.result().kind == "wall_limit"
        assert time.monotonic() - started < longest_answer_seconds(sandbox.policy)
    finally:
        sandbox.close()


def test_zygotes_that_die_leave_no_descriptor(own_sandbox: Sandbox) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        os.kill(zygote_pid(own_sandbox), signal.SIGKILL)
        assert own_sandbox.run("2+2").output == "4\n"
    assert len(os.listdir("/proc/self/fd")) == before


def test_without_descriptors_answers_wait_and_the_zygote_stays(own_sandbox: Sandbox) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free + 2, limits[1]))
    try:
        outcomes = [own_sandbox.run("2+2") for _ in range(10)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert {outcome.kind for outcome in outcomes} == {"unavailable"}
    assert all("no descriptors" in outcome.error for outcome in outcomes)
    assert own_sandbox.run("2+2").output == "4\n"
    assert own_sandbox.status()["zygote"]["restarts"] == 0


def test_a_guest_that_nobody_waits_for_any_more_is_ended(own_sandbox: Sandbox) -> None:
    """As when the function is killed: its ends of the pipes are closed without a word."""
    assert own_sandbox._serving is not None
    process = own_sandbox._serving.plain.process
    guest = process._acquire_guest()
    process._start_clock(guest)
    guest.send(encode("import time\ntime.sleep(60)", unchecked=True))
    prepared = own_sandbox.policy.limits.prepared_guests
    eventually(lambda: len(guests(own_sandbox)) == prepared + 1)
    guest.close()
    eventually(lambda: len(guests(own_sandbox)) == prepared, seconds=5)
    assert own_sandbox.run("2+2").output == "4\n"


def test_a_zygote_that_cannot_be_started_is_an_answer_and_heals(
    own_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_process(*arguments: object, **options: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with monkeypatch.context() as patch:
        patch.setattr("sandbox.fork_server.zygote_process.subprocess.Popen", no_process)
        assert own_sandbox._serving is not None
        process = own_sandbox._serving.plain.process
        process.kill()
        process._process.wait()
        assert own_sandbox.run("2+2").kind == "unavailable"
    assert own_sandbox.run("2+2").output == "4\n"


def test_a_program_that_meets_one_reload_after_another_is_run(
    own_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    reloads = iter(range(3))
    run = ZygoteProcess.run

    def reloaded_first(self: ZygoteProcess, encoded: bytes, timeout: float) -> Outcome:
        if encoded == encode("2+2") and next(reloads, None) is not None:
            own_sandbox.reload(own_sandbox.policy)
        return run(self, encoded, timeout)

    monkeypatch.setattr(ZygoteProcess, "run", reloaded_first)
    assert own_sandbox.run("2+2").output == "4\n"
    assert next(reloads, None) is None
