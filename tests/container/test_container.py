"""The image as an owner runs it: what it holds, what holds it, and what it survives."""

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from function import __version__
from tests.conftest import message
from tests.container.conftest import (
    BASE,
    IMAGE,
    KNOWN,
    Start,
    compose_command,
    compose_service,
    docker,
    flags,
    health,
    output_of,
)
from tests.faults.parts import overload
from tools.serve import ROOT

pytestmark = [pytest.mark.container, pytest.mark.timeout(900)]

TOKEN = "7100000001:AAE" + "x" * 32
BUSY = "while True: pass"


def test_it_is_healthy_within_ten_seconds_and_answers(start: Start) -> None:
    container = start(ready=False)
    assert health(container.name, time.monotonic()) == "healthy"
    assert container.ask("2+2") == "4 = 2+2"


def test_every_layer_that_a_container_allows_is_in_force(start: Start) -> None:
    layers = start().get("/health")["sandbox"]["layers"]
    assert {"uid", "rlimits", "no_new_privs", "landlock", "seccomp"} <= layers.keys()


def test_the_service_holds_the_listed_capabilities_and_cannot_gain_any(start: Start) -> None:
    bits = {"KILL": 5, "SETGID": 6, "SETUID": 7}  # capability.h
    expected = sum(1 << bits[name] for name in compose_service()["cap_add"])
    container = start()
    for process in ("gunicorn", "zygote.main()"):
        status = container.python(
            f"print(open('/proc/{container.pids(process)[0]}/status').read())"
        )
        fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
        assert int(fields["CapBnd"], 16) == expected
        assert int(fields["CapEff"], 16) == expected
        assert fields["NoNewPrivs"] == "1"


def test_nothing_can_be_written_but_a_temporary_file_that_cannot_run(start: Start) -> None:
    script = """
import os, subprocess
for folder in ("/", "/app", "/app/sandbox", "/etc", "/opt/venv", "/secrets", "/var/tmp"):
    try:
        open(folder + "/probe", "w")
        print("WRITTEN", folder)
    except OSError:
        pass
with open("/tmp/probe", "w") as file:
    file.write("#!/bin/sh")
os.chmod("/tmp/probe", 0o755)
try:
    subprocess.run(["/tmp/probe"])
    print("RAN")
except PermissionError:
    print("as it should be")
"""
    assert start().python(script) == "as it should be\n"


def test_the_image_holds_no_package_installer_no_compiler_and_no_test(start: Start) -> None:
    container = start()
    for command in ("pip", "pip3", "gcc", "cc", "tcc"):
        docker("exec", container.name, "sh", "-c", f"command -v {command}", fails=True)
    listing = container.python("import os; print(sorted(os.listdir('/app')))")
    assert listing == "['function', 'policy.yaml', 'sandbox', 'sbom.cdx.json']\n"
    found = container.python("from pathlib import Path; print(*Path('/secrets').iterdir())")
    assert found == "/secrets/config.json\n"


def test_the_image_adds_little_to_its_base(image: str) -> None:
    sizes = [int(docker("inspect", "--format={{.Size}}", name)) for name in (image, BASE)]
    assert sizes[0] - sizes[1] < 40_000_000


def test_a_hostile_program_finds_neither_token_nor_way_out_with_the_checker_off(
    start: Start,
) -> None:
    """Every hostile program of the corpus, by the service's own Python in the same container."""
    corpus = ROOT / "tests/corpus/attacks.jsonl"
    container = start(
        f"--mount=type=bind,source={corpus},target=/corpus.jsonl,readonly", config={"TOKEN": TOKEN}
    )
    script = f"""
import json
from concurrent.futures import ThreadPoolExecutor
from sandbox.policy.loader import load_policy
from sandbox.sandbox import Sandbox
box = Sandbox(load_policy("/app/policy.yaml"))
box.start()
rows = [json.loads(line) for line in open("/corpus.jsonl")]
rows = [row for row in rows if row["kind"] in ("os-escape", "ast-bypass")]
with ThreadPoolExecutor(4) as pool:
    outcomes = pool.map(lambda row: box.run(row["source"], unchecked=True), rows)
    for row, outcome in zip(rows, outcomes):
        if "PWNED" in outcome.output or {TOKEN!r} in outcome.output:
            print(row["id"], outcome.output)
print(len(rows), "tried;", box.run("2+2").output)
"""
    report = container.python(script)
    assert report.count("\n") == 2, report  # a print's own newline, and that of the echoed value
    assert int(report.split()[0]) > 200
    assert container.ask("2+2") == "4 = 2+2"


def test_the_sandboxs_own_tests_pass_inside(image: str, tmp_path: Path) -> None:
    """The same flags, the same Python; the repository is mounted and nothing else differs."""
    folder = ROOT / "tests"
    arguments = [f"--build-arg=BASE={BASE}", f"--build-arg=IMAGE={image}"]
    file = f"--file={folder / 'container/Dockerfile'}"
    docker("build", "--network=host", *arguments, file, f"--tag={image}-with-tests", str(folder))
    config = tmp_path / "config.json"
    config.write_text("{}")
    as_compose = [flag for flag in flags(ROOT / "policy.yaml", config) if "restart" not in flag]
    run = ["run", "--rm", *as_compose, f"--mount=type=bind,source={ROOT},target=/repo,readonly"]
    run += ["--workdir=/repo", "--env=PYTHONPATH=/repo"]
    run += ["--env=HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis", f"{image}-with-tests"]
    tests = ["/opt/tests/bin/python", "-m", "pytest", "-p", "no:cacheprovider", "-rs", "-q"]
    report = docker(*run, *tests, "--numprocesses=2", "tests/sandbox")
    assert " passed" in report


def test_with_libraries_it_answers_and_draws_within_its_memory(
    start: Start, maths_image: str
) -> None:
    container = start("--memory=3584M", image=maths_image, ready=False)
    container.answers(within=30 * overload())
    question = "integrate(sin(x)**2, x)"
    assert container.ask(question) == f"x/2 - sin(x)*cos(x)/2 = {question}"
    drawing = message("plt.plot([1, 2])\nplt.title('汉字 ひらがな 한국어')")
    url = f"{container.url()}/message"
    answer = container.http.request("POST", url, json=drawing, headers=KNOWN).json()
    assert len(answer["pictures"]) == 1
    assert "caption" not in answer  # which would tell signs that no font has
    libraries = container.get("/health")["sandbox"]["libraries"]
    assert libraries["serving"] is True
    assert {"uid", "landlock", "seccomp"} <= libraries["layers"].keys()
    used = docker("stats", "--no-stream", "--format={{.MemUsage}}", container.name)
    assert float(used.partition("MiB")[0]) < 300, used


@pytest.mark.parametrize(
    ("process", "position"), [("zygote.main()", 0), ("gunicorn", 1), ("gunicorn", 0)]
)
def test_zygote_worker_and_master_are_replaced_when_killed(
    start: Start, process: str, position: int
) -> None:
    container = start()
    container.kill(container.pids(process)[position], signal.SIGKILL)
    container.answers(within=10)


def test_a_zygote_that_is_stopped_is_replaced(start: Start) -> None:
    container = start()
    container.kill(container.pids("zygote.main()")[0], signal.SIGSTOP)
    container.answers(within=40)


def test_memory_at_the_containers_limit_ends_the_program_and_not_the_service(start: Start) -> None:
    container = start("--memory=192m", "--memory-swap=192m")
    before = container.pids("gunicorn")
    answer = container.ask("x = [bytes([1]) * 10**7 for _ in range(40)]\nlen(x)")
    assert "memory" in answer
    container.answers(within=2)
    assert container.pids("gunicorn") == before


def test_many_programs_stay_within_the_containers_processes(start: Start) -> None:
    container = start()
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(container.ask("sum(range(10**5))")))
        for _ in range(60)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 60
    assert all("4999950000" in answer or "again" in answer for answer in answers)
    container.answers(within=2)


def test_a_good_edit_of_the_policy_takes_effect_and_a_bad_one_does_not(start: Start) -> None:
    container = start()
    text = container.policy.read_text()
    before = container.get("/health")["policy"]["sha256"]
    container.policy.write_text(text.replace("  - statistics\n", ""))
    deadline = time.monotonic() + 10
    while container.get("/health")["policy"]["sha256"] == before:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert "statistics" in container.ask("import statistics")
    container.policy.write_text("version: [")
    time.sleep(3)
    assert container.ask("2+2") == "4 = 2+2"


def test_told_to_stop_it_finishes_what_runs_and_ends_with_0(start: Start) -> None:
    container = start()
    answers: list[str] = []
    asker = threading.Thread(target=lambda: answers.append(container.ask(BUSY)))
    asker.start()
    time.sleep(0.5)
    docker("stop", container.name)
    asker.join()
    assert "longer than the limit" in answers[0]  # of CPU time, or on a busy machine of all time
    assert docker("inspect", "--format={{.State.ExitCode}}", container.name) == "0\n"
    assert "Traceback" not in docker("logs", container.name)


def test_a_config_of_another_owner_is_refused_with_its_cure(image: str, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    config.chmod(0o600)
    shutil.chown(config, 1000, 1000)
    as_compose = [f for f in flags(ROOT / "policy.yaml", config) if "restart" not in f]
    report = docker("run", "--rm", *as_compose, image, fails=True)
    assert "/secrets/config.json cannot be read" in report
    assert "Traceback" not in report


def test_it_serves_on_the_port_that_the_platform_names(start: Start) -> None:
    container = start("--env=PORT=8080", ready=False)
    assert health(container.name, time.monotonic()) == "healthy"
    script = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8080/test').status)"
    assert container.python(script) == "200\n"


def test_another_user_is_told_what_it_needs_and_serves_with_it(image: str, tmp_path: Path) -> None:
    as_user = ["run", "--rm", "--user=1000:1000", "--read-only", "--cap-drop=ALL", "--tmpfs=/tmp"]
    assert "uid 1000 may not enter /secrets" in docker(*as_user, image, fails=True)
    (tmp_path / "config.json").write_text("{}")
    shutil.chown(tmp_path, 1000, 1000)
    name = f"calcubot-test-{os.getpid()}-user"
    mount = f"--mount=type=bind,source={tmp_path},target=/secrets,readonly"
    docker(*as_user, "--detach", f"--name={name}", mount, image)
    try:
        assert health(name, time.monotonic()) == "healthy"
    finally:
        docker("stop", name)


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("--pids-limit=60", "allow at least 80"),
        ("--memory=40m", "allow at least 64"),
        ("--ulimit=nofile=64:64", "allow at least 256"),
        ("--ipc=none", "neither /dev/shm nor /tmp can be written"),
    ],
)
def test_a_shortage_ends_the_container_with_what_it_needs(image: str, flag: str, told: str) -> None:
    assert told in docker("run", "--rm", "--read-only", flag, image, fails=True)


def test_the_image_says_what_it_is_and_holds(image: str) -> None:
    [found] = json.loads(docker("inspect", image))
    assert found["Config"]["Labels"]["org.opencontainers.image.version"] == __version__
    listed = json.loads(docker("run", "--rm", image, "cat", "/app/sbom.cdx.json"))
    assert {"falcon", "gunicorn", "pyyaml"} <= {each["name"] for each in listed["components"]}


def test_compose_brings_it_up_within_ten_seconds_as_these_tests_do(
    start: Start, tmp_path: Path
) -> None:
    compose = compose_command()
    if compose is None:
        pytest.skip("neither docker compose nor docker-compose is installed")
    text = (ROOT / "compose.yml").read_text().replace("image: calcubot", f"image: {IMAGE}")
    if compose == ["docker-compose"]:  # version 1 knows the limit by its older name alone
        text = text.replace("          pids: 256\n", "").replace(
            "    read_only: true\n    cap", "    read_only: true\n    pids_limit: 256\n    cap"
        )
    (tmp_path / "compose.yml").write_text(text.replace("${PORT:-8704}", "0"))
    (tmp_path / "config.json").write_text("{}")
    shutil.copy(ROOT / "policy.yaml", tmp_path)
    project = f"calcubot-test-{os.getpid()}"
    compose += ["--project-directory", str(tmp_path), "--project-name", project]
    compose += ["--file", str(tmp_path / "compose.yml")]
    expected = settings(start(ready=False).name)
    try:
        begin = time.monotonic()
        output_of(*compose, "up", "--detach", "--no-build")
        of_project = f"--filter=label=com.docker.compose.project={project}"
        [name] = docker("ps", "--quiet", of_project).split()
        assert health(name, begin) == "healthy"
        assert settings(name) == expected
        docker("exec", name, "python", "-c", "import os; os.stat('/secrets/config.json')")
    finally:
        output_of(*compose, "down", "--timeout=5")


def settings(name: str) -> dict[str, object]:
    """Return what the engine holds a container to."""
    [found] = json.loads(docker("inspect", name))
    host = found["HostConfig"]
    plain = ["ReadonlyRootfs", "Init", "Memory", "PidsLimit", "NanoCpus"]
    plain += ["CapDrop", "SecurityOpt", "LogConfig"]
    return {key: host[key] for key in plain} | {
        "CapAdd": sorted(cap.removeprefix("CAP_") for cap in host["CapAdd"]),
        "RestartPolicy": host["RestartPolicy"]["Name"],
        "StopTimeout": found["Config"]["StopTimeout"],
        "Mounts": sorted((mount["Destination"], mount["RW"]) for mount in found["Mounts"]),
        "Published": [port["HostIp"] for port in host["PortBindings"]["8000/tcp"]],
    }
