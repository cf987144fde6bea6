"""A zygote's memory cgroup: it bounds all guests together, and is gone with them."""

import dataclasses
import os
import time
from pathlib import Path

import pytest

from sandbox.kernel import cgroup
from tests.sandbox.guests import WITHOUT, guests

# More than the group may hold, touched, where no rlimit is in the way.
HOG = "held = bytearray(300 << 20)\nlen(held)"


@pytest.fixture
def small(policy):
    """A policy whose zygote has 160 MiB for one guest and itself."""
    rlimits = dataclasses.replace(policy.rlimits, address_space_mib=80)
    limits = dataclasses.replace(policy.limits, concurrent_guests=1, prepared_guests=1)
    return dataclasses.replace(policy, rlimits=rlimits, limits=limits)


def outcome_of(started, source):
    from sandbox.fork_server.zygote_process import KilledFromOutside

    try:
        return started.run_source(source)
    except KilledFromOutside as killed:
        return killed.outcome


def test_the_cgroup_alone_bounds_memory_and_leaves_nothing(small):
    with guests(small, *WITHOUT) as started:
        if "cgroup" not in started.layers:
            pytest.skip("this machine has no memory cgroup for this user")
        group = started._group
        assert str(started.pid) in (group / "cgroup.procs").read_text().split()
        assert outcome_of(started, HOG).kind == "memory_limit"
        assert started.run_source("2+2").output == "4\n"
    with guests(small, *WITHOUT, cgroup_mib=0) as started:
        assert "cgroup" not in started.layers
        assert started.run_source(HOG).output == f"{300 << 20}\n"
    deadline = time.monotonic() + 5
    while group.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_where_no_group_can_be_had_there_is_none(tmp_path):
    assert cgroup.limit_memory(os.getpid(), 1 << 30, tmp_path) is None
    (tmp_path / "memory").write_text("")
    (tmp_path / "cgroup.controllers").write_text("cpu io")
    assert cgroup.limit_memory(os.getpid(), 1 << 30, tmp_path) is None


def own_groups():
    return [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]


def test_the_groups_of_services_that_were_killed_are_swept(tmp_path):
    """In folders that look like a hierarchy."""
    if not any("memory" in controllers.split(",") for _, controllers, _ in own_groups()):
        pytest.skip("the memory controller is not one of version 1")
    left, others = tmp_path / "memory/calcubot-4194305-0", tmp_path / "memory/calcubot-1-0"
    left.mkdir(parents=True)
    others.mkdir()
    group = cgroup.limit_memory(os.getpid(), 1 << 30, tmp_path)
    assert group is not None
    assert (group / "memory.limit_in_bytes").read_text() == str(1 << 30)
    assert (group / "cgroup.procs").read_text() == str(os.getpid())
    assert not left.exists()
    assert others.exists()


@pytest.mark.parametrize("own", ["/", f"/{cgroup._SERVICE}"])
def test_in_version_2_a_group_is_made_beside_the_service_and_has_its_limit(tmp_path, own):
    """In folders that look like a hierarchy whose root is delegated to a container."""
    (tmp_path / cgroup._SERVICE).mkdir()
    (tmp_path / "cgroup.subtree_control").write_text("")
    group = cgroup._limit(os.getpid(), tmp_path, own, "memory.max", 1 << 30)
    assert group.parent == tmp_path
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory"
    assert (group / "memory.max").read_text() == str(1 << 30)
    assert (group / "cgroup.procs").read_text() == str(os.getpid())
