"""Dockerfile, compose.yml and tools/kubernetes.yaml agree with the service and with each other."""

import re
import tomllib
from typing import Any

import pytest
import yaml

import function
from sandbox import Policy, longest_answer_seconds
from tools.serve import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = (ROOT / "compose.yml").read_text()
MANIFESTS = list(yaml.safe_load_all((ROOT / "tools/kubernetes.yaml").read_text()))
DEPLOYMENTS = [each for each in MANIFESTS if each["kind"] == "Deployment"]
BOT = DEPLOYMENTS[0]["spec"]["template"]["spec"]
[CONTAINER] = BOT["containers"]


def test_there_is_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == function.__version__
    assert f"ARG VERSION={function.__version__}\n" in DOCKERFILE
    assert CONTAINER["image"] == f"calcubot:{function.__version__}"


def test_compose_passes_every_setting_of_the_environment() -> None:
    readme = (ROOT / "function/README.md").read_text()
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", readme, re.MULTILINE)) - {"PORT"}
    passed = yaml.safe_load(COMPOSE)["services"]["calcubot"]["environment"].keys()
    mounted = {"CONFIG_PATH", "POLICY_PATH"}
    assert passed | mounted == documented
    assert {each["name"] for each in CONTAINER["env"]} <= documented


def test_who_stops_the_service_waits_for_the_longest_answer(policy: Policy) -> None:
    needed = longest_answer_seconds(policy) + 2  # see function/gunicorn_conf.py
    grace = yaml.safe_load(COMPOSE)["services"]["calcubot"]["stop_grace_period"]
    assert int(grace.rstrip("s")) > needed
    [_, pause] = CONTAINER["lifecycle"]["preStop"]["exec"]["command"]
    assert BOT["terminationGracePeriodSeconds"] - int(pause) > needed


def test_kubernetes_gives_what_compose_gives() -> None:
    limits = yaml.safe_load(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", COMPOSE))["services"]["calcubot"][
        "deploy"
    ]["resources"]["limits"]
    given = CONTAINER["resources"]["limits"]
    assert given["memory"].removesuffix("Mi") == limits["memory"].removesuffix("M")
    assert given["cpu"] == str(limits["cpus"])


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: each["metadata"]["name"])
def test_pods_are_restricted(deployment: Any) -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    pod = deployment["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]
    kinds = {key for volume in pod["volumes"] for key in volume} - {"name"}
    assert kinds <= {"secret", "configMap", "emptyDir"}


def test_probes_ask_for_liveness_and_readiness_apart() -> None:
    asked = {name: CONTAINER[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")}
    assert asked == {
        "liveness": {"path": "/health/live", "port": "http"},
        "readiness": {"path": "/health/ready", "port": "http"},
    }
