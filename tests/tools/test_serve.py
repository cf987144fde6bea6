import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.ports import free_port
from tools import serve
from tools.serve import ROOT

SERVE = [sys.executable, "-m", "tools.serve"]


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "CONFIG_PATH": ""} | more


def test_the_printed_command_gets_the_answer_and_an_interrupt_ends_quietly(tmp_path: Path) -> None:
    bind = f"127.0.0.1:{free_port()}"
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*SERVE, "--bind", bind], cwd=tmp_path, env=environment(), stdout=output, stderr=output
        )
    try:
        deadline, answer = time.monotonic() + 20, ""
        while "4 = 2+2" not in answer and time.monotonic() < deadline:
            time.sleep(0.1)
            commands = [line for line in log.read_text().splitlines() if "curl" in line]
            for command in commands[:1]:
                answer = subprocess.run(
                    command, shell=True, capture_output=True, text=True, check=False
                ).stdout
        assert '"text": "4 = 2+2"' in answer, log.read_text()
    finally:
        process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    assert "Traceback" not in log.read_text()


def test_a_policy_that_cannot_be_served_is_named_and_nothing_is_retried(tmp_path: Path) -> None:
    policy = tmp_path / "mine.yaml"
    policy.write_text((ROOT / "policy.yaml").read_text().replace("cpu_seconds: 2", "cpu_secs: 2"))
    command = [*SERVE, "--bind", f"127.0.0.1:{free_port()}", "--policy", "mine.yaml"]
    result = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode != 0
    assert f"{policy}:" in result.stderr
    assert "did you mean cpu_seconds" in result.stderr
    assert result.stderr.count("Booting worker") == 1
    assert "Traceback" not in result.stderr


def test_paths_are_those_of_the_callers_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda *command: started.append(command))
    monkeypatch.setattr(os, "environ", {"CONFIG_PATH": "good.json", "STORE": "rel.db"})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").touch()
    serve.main(["--policy", "mine.yaml"])
    assert Path.cwd() == ROOT
    assert os.environ == {
        "CONFIG_PATH": str(tmp_path / "good.json"),
        "STORE": str(tmp_path / "rel.db"),
        "POLICY_PATH": str(tmp_path / "mine.yaml"),
    }
    [(program, _)] = started
    assert program == sys.executable


@pytest.mark.parametrize("bind", ["foo", "127.0.0.1:99999", "127.0.0.1:", ":8000", "a b:1"])
def test_an_address_that_cannot_be_is_refused(
    bind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        serve.main(["--bind", bind])
    assert ended.value.code == 2
    assert "is not HOST:PORT" in capsys.readouterr().err


def test_the_command_names_the_secret_where_there_is_one() -> None:
    assert "Authorization" in serve.question("127.0.0.1:8000", needs_secret=True)


def test_a_policy_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    result = subprocess.run(
        [*SERVE, "--policy", "none.yaml"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert "no such file: none.yaml" in result.stderr
