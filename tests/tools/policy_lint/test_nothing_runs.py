"""A linted file may be anyone's: nothing of it runs outside a guest, writes or stays.

Every field of the file, and every module beside it, tries to leave a mark. Tried as the user of the
tests and, where that is root, as a plain user.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools.policy_lint.edits import POLICY

ROOT = Path(__file__).resolve().parents[3]
LINT = [sys.executable, "-m", "tools.policy_lint"]
# Where only root can go to the interpreter of the tests, it is mounted for the plain user alone in
# its place: a folder of nothing else, that anybody can enter, hides the closed one.
CLOSED = next((p for p in reversed(Path(sys.base_prefix).parents) if not p.stat().st_mode & 1), "")
MOUNTED = """
mount --bind "$0" /mnt && mount -t tmpfs -o mode=755 tmpfs "$1" && mkdir -p "$0" &&
mount --move /mnt "$0" && shift && exec "$@"
"""
MOUNT = ["unshare", "--mount", "sh", "-c", MOUNTED, sys.base_prefix, str(CLOSED)]
DROP = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PLAIN = [*(MOUNT if CLOSED else []), *DROP]


def can_be_plain() -> bool:
    """Whether this is root, and a plain user can run the interpreter."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return False
    command = [*PLAIN, sys.executable, "-c", "import yaml"]
    return subprocess.run(command, cwd="/", capture_output=True, check=False).returncode == 0


USERS = [
    pytest.param([], id="as the user of the tests"),
    pytest.param(
        PLAIN,
        id="as a plain user",
        marks=pytest.mark.skipif(not can_be_plain(), reason="needs root, and what a user can run"),
    ),
]

MODULES = """
  - beside
  - package.child
  - colorsys
  - this.child
  - referencing.jsonschema
  - tools.serve
"""
PROGRAMS = """
  - open('MARK-program', 'w').close()
  - |
    import os
    os.system('touch MARK-shell')
  - "import statistics; statistics.sys.modules['os'].system('touch MARK-modules')"
  - "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen'][0]('id')"
  - "while True: pass"
  - "[0] * 10**10"
  - 1/0
"""
# What replaces what in policy.yaml.
MODULES_FIELDS = (
    ("allowed_imports:\n", f"allowed_imports:{MODULES}"),
    ("preloaded:\n", "preloaded:\n  beside: beside\n  print: math\n"),
    ("blocked_words:\n", "blocked_words:\n  - '(?#MARK-word)\\b(os|sys)x\\b'\n"),
    ("readable_paths:\n", "readable_paths:\n  - '/usr/lib/$(touch MARK-path)'\n"),
    ("warm_up: []", "warm_up: [import beside]"),
)
PROGRAM_FIELDS = (
    ("prelude: []", f"prelude:{PROGRAMS}"),
    ("warm_up: []", "warm_up:\n  - open('MARK-warm', 'w').close()"),
    ("cpu_seconds: 2", "cpu_seconds: 1"),
)
OPEN = ("dangerous_names:\n", "dangerous_attrs:\n", "allowed_dunders:\n", "denied_syscalls:\n")


def replaced(edits: tuple[tuple[str, str], ...], folder: Path) -> str:
    text = POLICY
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return text.replace("MARK", str(folder / "mark"))


def opened(text: str) -> str:
    """The same under a policy that refuses and denies as little as a file can say."""
    lines: list[str] = []
    skipping = False
    for line in text.splitlines(keepends=True):
        if line in OPEN:
            lines.append(line.replace(":", ": []"))
        skipping = line in OPEN or (skipping and line[:1] in " #")
        lines += [] if skipping else [line]
    return "".join(lines)


FILES: dict[str, Callable[[Path], str]] = {
    "modules and paths": lambda folder: replaced(MODULES_FIELDS, folder),
    "programs": lambda folder: replaced(PROGRAM_FIELDS, folder),
    "programs, and nothing refused": lambda folder: opened(replaced(PROGRAM_FIELDS, folder)),
    "a tag": lambda folder: f"a: !!python/object/apply:os.system ['touch {folder}/mark-tag']",
    "a device to extend": lambda _: "extends: /dev/zero\n",
    "a program to extend": lambda folder: f"extends: {folder}/beside.py\n",
    "a slow word": lambda _: POLICY.replace("blocked_words:\n", "blocked_words:\n  - '(a|aa)+;'\n"),
}
# Runs a command, whose orphans become its own children (PR_SET_CHILD_SUBREAPER, prctl(2)), and
# prints how that ended, and whether any of its processes is left ten seconds later.
REAPER = """
import ctypes, os, subprocess, sys, time
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0
with open("../out", "wb") as out, open("../errors", "wb") as errors:
    lint = subprocess.Popen(sys.argv[1:], stdout=out, stderr=errors)
print(lint.pid, flush=True)
status, until, is_left = lint.wait(), time.monotonic() + 10, True
while is_left and time.monotonic() < until:
    try:
        is_left = os.waitpid(-1, os.WNOHANG) is not None
    except ChildProcessError:
        is_left = False
    time.sleep(0.02)
print(status, is_left)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that anybody may write to, of modules that leave a mark when they are imported."""
    here = tmp_path / "here"
    for name in ("beside", "package/__init__", "package/child", "colorsys", "json", "yaml", "this"):
        file = here / f"{name}.py"
        file.parent.mkdir(exist_ok=True, parents=True)
        mark = here / f"mark-{name.replace('/', '-')}"
        file.write_text(f"open({str(mark)!r}, 'w').close()\n")
    (here / "cache").mkdir()
    here.chmod(0o777)
    (here / "cache").chmod(0o777)
    return here


def start(folder: Path, *arguments: str, user: list[str]) -> "subprocess.Popen[str]":
    """Lint in a folder, beneath a process that waits for all that this starts."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    environment |= {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    environment |= {"TMPDIR": str(folder)}
    command = [sys.executable, "-c", REAPER, *user, *LINT, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, text=True)


def lint(folder: Path, text: str, user: list[str]) -> tuple[float, Any]:
    """Lint a text; return the seconds that it took, and what was found."""
    (folder / "policy.yaml").write_text(text)
    before = set(folder.rglob("*"))
    began = time.monotonic()
    with start(folder, "--format", "json", "policy.yaml", user=user) as reaper:
        said, _ = reaper.communicate()
    seconds = time.monotonic() - began
    errors = (folder / "../errors").read_text()
    _, status, is_left = said.split()
    assert (is_left, errors) == ("False", "")
    assert set(folder.rglob("*")) == before
    found = json.loads((folder / "../out").read_text())["findings"]
    assert int(status) == any(one["severity"] == "error" for one in found), found
    return seconds, found


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_nothing_of_a_linted_file_runs_or_stays(
    folder: Path, text: Callable[[Path], str], user: list[str]
) -> None:
    usual, _ = lint(folder, POLICY, user)
    seconds, found = lint(folder, text(folder), user)
    assert any(one["severity"] == "error" for one in found)
    assert seconds < 5 or seconds < 8 * usual  # where the machine is shared
    if text in (FILES["programs"], FILES["programs, and nothing refused"]):
        tried = {one["line"] for one in found if one["rule"].startswith("warm-up-")}
        assert len(tried) == PROGRAMS.count("\n  - ") + 1, found  # and the one of warm_up


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("policy", ["policy.yaml", "strict.yaml", "maths.yaml"])
def test_a_plain_user_can_lint_what_is_shipped(folder: Path, policy: str, user: list[str]) -> None:
    if policy == "maths.yaml":
        for module in ("matplotlib", "sympy"):
            pytest.importorskip(module, reason="the packages of maths.txt are not installed")
    file = ROOT / ("" if policy == "policy.yaml" else "sandbox/policies") / policy
    with start(folder, "--strict", "--format", "json", str(file), user=user) as reaper:
        said, _ = reaper.communicate()
    found = json.loads((folder / "../out").read_text())["findings"]
    assert (said.split()[1:], (folder / "../errors").read_text()) == (["0", "False"], "")
    assert all(one["accepted"] for one in found)
    assert not [one["message"] for one in found if one["rule"] == "not-tried"]


LOOP = POLICY.replace("warm_up: []", "warm_up: ['while True: pass']").replace(
    "cpu_seconds: 2", "cpu_seconds: 8"
)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGPIPE])
def test_nothing_outlives_a_lint_that_is_ended(
    folder: Path, sign: signal.Signals, user: list[str]
) -> None:
    (folder / "policy.yaml").write_text(LOOP)
    with start(folder, "policy.yaml", user=user) as reaper:
        assert reaper.stdout
        lint = int(reaper.stdout.readline())
        while not any(map(is_busy, below(lint))):
            assert reaper.poll() is None
            time.sleep(0.05)
        os.kill(lint, sign)
        said, _ = reaper.communicate()
    assert said.split() == [str(-sign), "False"]
    assert (folder / "../errors").read_text() == ""


def below(pid: int) -> list[int]:
    """The processes that a process started, and those that these started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = list(map(int, task.read_text().split()))
        except OSError:
            continue
        found += children + [one for child in children for one in below(child)]
    return found


def is_busy(pid: int) -> bool:
    """Whether a process is there and has used half a second of processor time."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    ticks = int(fields[11]) + int(fields[12])
    return fields[0] != "Z" and ticks > os.sysconf("SC_CLK_TCK") / 2
