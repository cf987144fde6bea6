"""A linted file may be anyone's: nothing of it runs outside a guest, writes or stays.

Every field of the file, and every module beside it, tries to leave a mark.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.tools.policy_lint.edits import POLICY

TOOL = str(Path(__file__).resolve().parents[3] / "tools/policy-lint")

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
  - "().__class__.__base__.__subclasses__()"
  - "while True: pass"
  - "[0] * 10**10"
  - 1/0
"""
# What replaces what in policy.yaml.
EVERY_FIELD = (
    ("allowed_imports:\n", f"allowed_imports:{MODULES}"),
    ("warm_up: []", f"warm_up:{PROGRAMS}"),
    ("cpu_seconds: 2", "cpu_seconds: 1"),
    ("preloaded:\n", "preloaded:\n  beside: beside\n  print: math\n"),
    ("blocked_words:\n", "blocked_words:\n  - '(?#MARK-word)\\b(os|sys)x\\b'\n"),
    ("readable_paths:\n", "readable_paths:\n  - '/usr/lib/$(touch MARK-path)'\n"),
)
OPEN = ("dangerous_names:\n", "dangerous_attrs:\n", "allowed_dunders:\n", "denied_syscalls:\n")


def every_field(folder: Path) -> str:
    text = POLICY
    for old, new in EVERY_FIELD:
        assert old in text
        text = text.replace(old, new, 1)
    return text.replace("MARK", str(folder / "mark"))


def opened(folder: Path) -> str:
    """The same under a policy that refuses and denies as little as a file can say."""
    lines: list[str] = []
    skipping = False
    for line in every_field(folder).splitlines(keepends=True):
        if line in OPEN:
            lines.append(line.replace(":", ": []"))
        skipping = line in OPEN or (skipping and line[:1] in " #")
        lines += [] if skipping else [line]
    return "".join(lines)


WHOLE = {
    "every field": every_field,
    "every field, and nothing refused": opened,
    "a tag": lambda folder: f"a: !!python/object/apply:os.system ['touch {folder}/mark-tag']",
    "a device to extend": lambda folder: "extends: /dev/zero\n",
    "a program to extend": lambda folder: f"extends: {folder}/beside.py\n",
    "a slow word": lambda folder: POLICY.replace(
        "blocked_words:\n", "blocked_words:\n  - '(a|aa)+;'\n"
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of modules, each of which leaves a mark when it is imported."""
    for name in ("beside", "package/__init__", "package/child", "colorsys", "json", "yaml", "this"):
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        mark = tmp_path / f"mark-{name.replace('/', '-')}"
        file.write_text(f"open({str(mark)!r}, 'w').close()\n")
    tmp_path.chmod(0o777)
    return tmp_path


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
def test_nothing_of_a_linted_file_runs_or_stays(folder: Path, text: "object") -> None:
    assert callable(text)
    (folder / "policy.yaml").write_text(text(folder))
    before = {path.name for path in folder.iterdir()}
    done = subprocess.run(
        [TOOL, "--format", "json", "policy.yaml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        process_group=0,
    )
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["findings"]
    assert {path.name for path in folder.iterdir()} == before


LOOP = POLICY.replace("warm_up: []", "warm_up: ['while True: pass']").replace(
    "cpu_seconds: 2", "cpu_seconds: 8"
)


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_a_lint_that_is_ended(tmp_path: Path, sign: int) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(LOOP)
    with subprocess.Popen(
        [TOOL, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as lint:
        while not (guests := [pid for pid in below(lint.pid) if is_busy(pid)]):
            assert lint.poll() is None
            time.sleep(0.05)
        lint.send_signal(sign)
        _, errors = lint.communicate()
        assert errors == b""
    deadline = time.monotonic() + 30
    while guests and time.monotonic() < deadline:
        guests = [pid for pid in guests if is_busy(pid)]
        time.sleep(0.02)
    assert guests == []


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
