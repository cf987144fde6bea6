"""The container has room for what the policy allows, or it is told and its cure cures."""

from pathlib import Path

import pytest

from sandbox.policy.document import Finding
from sandbox.policy.extends import read_document
from tests.tools.policy_lint.edits import POLICY, QUICK, follow
from tools.policy_lint import lint
from tools.policy_lint.rules import container as containers
from tools.policy_lint.subject import subject_of
from tools.serve import ROOT

COMPOSE = (ROOT / "compose.yml").read_text()


def found(folder: Path, policy: str, compose: str) -> list[Finding]:
    (folder / "policy.yaml").write_text(policy)
    (folder / "compose.yml").write_text(compose)
    return lint.lint(subject_of(read_document(folder / "policy.yaml")), QUICK)


def test_the_container_as_it_is_has_room(tmp_path: Path) -> None:
    assert found(tmp_path, POLICY, COMPOSE) == []
    [container] = containers.containers(tmp_path / "policy.yaml")
    assert (container.memory_mib, container.pids, container.cpus) == (2560, 256, 2)


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ("${MEMORY:-2560M}", "2g", {"concurrent_guests", "address_space_mib"}),
        ("${MEMORY:-2560M}", "700 MB", {"address_space_mib"}),  # not even one of 512
        ("pids: 256", "pids: 140", {"concurrent_guests", "prepared_guests"}),
        ("${CPUS:-2}", "${CPUS-0.5}", {"concurrent_guests", "cpu_seconds"}),
        ("stop_grace_period: 40s", "stop_grace_period: 0m30s", {"wall_seconds", "queue_seconds"}),
    ],
)
def test_too_little_is_told_at_what_may_be_lowered(
    tmp_path: Path, old: str, new: str, at: set[str]
) -> None:
    assert old in COMPOSE
    compose = COMPOSE.replace(old, new)
    told = found(tmp_path, POLICY, compose)
    assert {one.rule for one in told} == {"container-too-small"}
    lines = POLICY.splitlines()
    assert {lines[one.line - 1].strip().partition(":")[0] for one in told} == at
    for one in told:  # another rule may then tell of limits that depend on this one
        left = found(tmp_path, follow(POLICY, one), compose)
        assert "container-too-small" not in {one.rule for one in left}


KUBERNETES = (ROOT / "tools/kubernetes.yaml").read_text()


def orchestrated(folder: Path, kubernetes: str) -> list[Finding]:
    (folder / "tools").mkdir(exist_ok=True)
    (folder / "tools/kubernetes.yaml").write_text(kubernetes)
    return found(folder, POLICY, COMPOSE)


def test_the_pod_as_it_is_has_room(tmp_path: Path) -> None:
    assert orchestrated(tmp_path, KUBERNETES) == []
    _, pod = containers.containers(tmp_path / "policy.yaml")
    assert (pod.memory_mib, pod.cpus, pod.stop_seconds) == (2560, 2, 40)


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ("memory: 2560Mi", "memory: 2Gi", {"concurrent_guests", "address_space_mib"}),
        ('cpu: "2"', "cpu: 500m", {"concurrent_guests", "cpu_seconds"}),
        ("PeriodSeconds: 45", "PeriodSeconds: 35", {"wall_seconds", "queue_seconds"}),
        ('[sleep, "5"]', '[sleep, "20"]', {"wall_seconds"}),
    ],
)
def test_too_little_in_a_pod_is_told_too(tmp_path: Path, old: str, new: str, at: set[str]) -> None:
    assert old in KUBERNETES
    told = orchestrated(tmp_path, KUBERNETES.replace(old, new))
    assert {one.rule for one in told} == {"container-too-small"}
    assert all(one.message.startswith("tools/kubernetes.yaml gives") for one in told)
    lines = POLICY.splitlines()
    assert {lines[one.line - 1].strip().partition(":")[0] for one in told} == at


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("policy.yaml", "other.yaml"),  # a service that does not mount the policy
        ("          memory: ${MEMORY:-2560M}\n", ""),
        ("${MEMORY:-2560M}", "much"),
        ("${MEMORY:-2560M}", "[2]"),
        ("services:", "services: ["),
        (COMPOSE, ""),
        (COMPOSE, "services: {calcubot: }"),
    ],
)
def test_what_is_not_limited_or_makes_no_sense_is_left_to_compose(
    tmp_path: Path, old: str, new: str
) -> None:
    roomy = POLICY.replace("address_space_mib: 512", "address_space_mib: 800")
    assert found(tmp_path, roomy, COMPOSE)
    assert old in COMPOSE
    assert found(tmp_path, roomy, COMPOSE.replace(old, new)) == []
