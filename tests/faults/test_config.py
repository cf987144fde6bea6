"""A config that root may not read, for it has no right to others' files (capabilities(7))."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import serve

# What is left to root in a container that drops its capabilities.
WITHOUT_OVERRIDE = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, setpriv")
@pytest.mark.parametrize(
    ("command", "status"),
    [
        (serve.command("127.0.0.1:0"), 2),
        ([sys.executable, "-m", "tools.poll"], 2),
        ([sys.executable, "-m", "tools.webhook", "info"], 2),
    ],
    ids=["serve", "poll", "webhook"],
)
@pytest.mark.parametrize("closed", ["file", "folder"])
def test_a_config_of_another_user_is_refused_with_the_cure(
    tmp_path: Path, command: list[str], status: int, closed: str
) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    config = folder / "config.json"
    config.write_text('{"TOKEN": "7100000001:AAfixture-token_0123456789abcdefghi"}')
    theirs = config if closed == "file" else folder
    theirs.chmod(0o700 if closed == "folder" else 0o600)
    os.chown(theirs, 1234, 1234)
    ended = subprocess.run(
        [*WITHOUT_OVERRIDE, *command],
        cwd=serve.ROOT,
        env=os.environ | {"CONFIG_PATH": str(config)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == status
    [told] = [line for line in ended.stderr.splitlines() if str(config) in line]
    cure = "make it readable for uid 0 (chown), or set CONFIG_PATH"
    if closed == "folder":
        cure = f"uid 0 may not enter {folder}: mount a folder of its own there (chown)"
    assert told.endswith(f"{config} cannot be read (Permission denied): {cure}")
    assert "Traceback" not in ended.stderr
    assert "fixture-token" not in ended.stderr + ended.stdout
