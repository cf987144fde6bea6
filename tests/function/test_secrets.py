"""While the function holds a token, no process that may run a program holds a trace of it."""

import base64
import contextlib
import json
import os
import re
import secrets
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT, message, running_services


def below(pid):
    """Return the living processes below one."""
    children = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        children += map(int, (task / "children").read_text().split())
    return children + [deeper for child in children for deeper in below(child)]


def memory(pid):
    """Return all that a process can read of its own memory."""
    content = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            first, last = (int(end, 16) for end in line.split()[0].split("-"))
            if line.split()[1].startswith("r") and "[v" not in line:  # [vvar], [vsyscall]
                with contextlib.suppress(OSError):  # a mapped file may end before its mapping
                    file.seek(first)
                    content.append(file.read(last - first))
    return b"".join(content)


def forms(secret):
    """Return the ways in which a text may lie in memory."""
    plain = secret.encode()
    return plain, secret.encode("utf-16-le"), secret.encode("utf-32-le"), base64.b64encode(plain)


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """Return two secrets of a service, a marker in a program that it runs, and its processes:
    zygote and guests, which are stopped, and the function's own.
    """
    token, webhook_secret = f"7100000001:{secrets.token_urlsafe(26)}", secrets.token_urlsafe(30)
    folder = tmp_path_factory.mktemp("secrets")
    config, policy = folder / "config.json", folder / "policy.yaml"
    settings = {"TOKEN": token, "WEBHOOK_SECRET": webhook_secret, "BOT_USERNAME": "a_bot"}
    config.write_text(json.dumps(settings))
    config.chmod(0o600)
    whole = (ROOT / "policy.yaml").read_text("utf-8")
    policy.write_text(re.sub("wall_seconds: .*", "wall_seconds: 100", whole))  # time for a look
    marker = secrets.token_hex(16)
    program = f"marker = '{marker}'\nfor _ in range(2 * 10**7): len(marker)"
    with running_services(folder) as start:
        service = start(CONFIG_PATH=str(config), POLICY_PATH=str(policy))
        ask = threading.Thread(
            target=service.request,
            args=("POST", "/message", message(program)),
            kwargs={"Authorization": webhook_secret},
        )
        ask.start()
        zygote = next(pid for pid in below(service.process.pid) if runs_zygote(pid))
        wait_for_work(zygote)
        guests = below(zygote)
        for pid in guests:
            os.kill(pid, signal.SIGSTOP)
        function = [pid for pid in below(service.process.pid) if pid not in {zygote, *guests}]
        yield token, webhook_secret, marker, [zygote, *guests], function
        for pid in guests:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        ask.join()


def runs_zygote(pid):
    return b"zygote.main" in Path(f"/proc/{pid}/cmdline").read_bytes()


def wait_for_work(zygote):
    """Return when a program runs: some guest has spent a tenth of a second."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for pid in below(zygote):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                if int(fields[11]) >= os.sysconf("SC_CLK_TCK") // 10:  # utime, proc_pid_stat(5)
                    return
        time.sleep(0.02)
    pytest.fail("no program ran")


def test_no_trace_of_the_secrets_is_where_programs_run(held):
    token, webhook_secret, marker, running, function = held
    assert len(running) > 4  # zygote, prepared guests, and the one that runs
    try:
        seen = {pid: memory(pid) for pid in running}
    except PermissionError:
        pytest.skip("guests are closed to this user as well; it takes root to look into them")
    assert [pid for pid, content in seen.items() if marker.encode() in content]
    assert any(token.encode() in memory(pid) for pid in function)
    own_part = token.partition(":")[2]
    for pid, content in seen.items():
        for secret in (own_part, webhook_secret):
            assert [form for form in forms(secret) if form in content] == [], pid
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        assert environment.count(b"=") < 10
        assert own_part.encode() not in environment


def test_guests_hold_no_descriptor_but_their_own_pipes(held):
    *_, marker, running, _ = held
    try:
        guests = [pid for pid in running if marker.encode() in memory(pid)]
    except PermissionError:
        pytest.skip("guests are closed to this user as well; it takes root to look into them")
    assert guests
    for pid in guests:
        links = {link.name: link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir()}
        assert links.keys() <= {"0", "1", "2", "3"}
        assert links.pop("2") == Path("/dev/null")
        assert all(str(target).startswith("pipe:") for target in links.values()), links
