"""PolicyWatch: a good edit is in force soon, a bad one never, however the file is written."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.policy.loader import load_policy
from sandbox.policy_watch import PolicyWatch
from sandbox.sandbox import Sandbox, SandboxUnavailable

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "policy.yaml", tmp_path / "policy.yaml"))


@pytest.fixture
def watched(file: Path) -> Iterator[tuple[Sandbox, PolicyWatch]]:
    sandbox = Sandbox(load_policy(file))
    sandbox.start()
    yield sandbox, PolicyWatch(sandbox, file)
    sandbox.close()


def widen(file: Path) -> str:
    """Return the policy's text with one more module allowed."""
    return file.read_text().replace("  - string\n", "  - string\n  - colorsys\n", 1)


def allows_colorsys(sandbox: Sandbox) -> bool:
    return sandbox.run("import colorsys").kind == "ok"


@pytest.mark.parametrize("how", ["in place", "by rename", "after deletion"])
def test_a_good_edit_is_in_force_at_the_second_look(
    watched: tuple[Sandbox, PolicyWatch], file: Path, how: str
) -> None:
    sandbox, watch = watched
    text = widen(file)
    watch.look()
    if how == "in place":
        file.write_text(text)
    elif how == "by rename":
        new = file.with_name("new.yaml")
        new.write_text(text)
        os.replace(new, file)
    else:
        file.unlink()
        watch.look()
        assert "No such file" in watch.status()["refused"]
        file.write_text(text)
    watch.look()
    assert not allows_colorsys(sandbox)
    watch.look()
    assert allows_colorsys(sandbox)
    assert watch.status()["sha256"] == load_policy(file).sha256
    assert "refused" not in watch.status()


def test_a_file_that_is_still_being_written_is_left_alone(
    watched: tuple[Sandbox, PolicyWatch], file: Path
) -> None:
    sandbox, watch = watched
    before = sandbox.policy
    text = widen(file)
    for end in range(100, len(text), 1500):
        file.write_text(text[:end])
        watch.look()
        assert sandbox.policy is before
        assert "refused" not in watch.status()


def test_a_bad_edit_is_refused_with_its_place_and_the_old_policy_goes_on(
    watched: tuple[Sandbox, PolicyWatch], file: Path
) -> None:
    sandbox, watch = watched
    good = file.read_text()
    file.write_text(good.replace("version: 1", "version: two"))
    for _ in range(3):
        watch.look()
    line = good.splitlines().index("version: 1") + 1
    assert f"{file}:{line}:" in watch.status()["refused"]
    assert sandbox.run("2+2").output == "4\n"
    file.write_text(good)
    for _ in range(2):
        watch.look()
    assert "refused" not in watch.status()


def test_a_policy_whose_sandbox_does_not_start_is_refused(
    watched: tuple[Sandbox, PolicyWatch], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox, watch = watched

    def refuse(_: object) -> None:
        raise SandboxUnavailable("layer landlock is not in force")

    monkeypatch.setattr(sandbox, "reload", refuse)
    file.write_text(widen(file))
    for _ in range(2):
        watch.look()
    assert watch.status()["refused"] == "layer landlock is not in force"


def test_edits_are_counted_by_what_became_of_them(
    watched: tuple[Sandbox, PolicyWatch], file: Path
) -> None:
    _, watch = watched
    assert watch.status()["reloads"] == {"reloaded": 0, "refused": 0, "last": "none"}
    good = widen(file)
    for text in (good.replace("version: 1", "version: two"), good):
        file.write_text(text)
        for _ in range(4):
            watch.look()
    assert watch.status()["reloads"] == {"reloaded": 1, "refused": 1, "last": "reloaded"}


def test_the_thread_takes_an_edit_up_by_itself(
    watched: tuple[Sandbox, PolicyWatch], file: Path
) -> None:
    sandbox, watch = watched
    watch.start()
    old = sandbox.policy
    file.write_text(widen(file))
    while sandbox.policy is old:
        pass
    watch.stop()
    assert allows_colorsys(sandbox)


def test_a_mounted_file_that_is_replaced_outside_is_told(sandbox: Sandbox, tmp_path: Path) -> None:
    """As in a container: what is mounted stays the old file, which has no name any more."""
    outside, mounted = tmp_path / "outside.yaml", tmp_path / "policy.yaml"
    shutil.copy(ROOT / "policy.yaml", outside)
    mounted.touch()
    command = ["mount", "--bind", str(outside), str(mounted)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting needs CAP_SYS_ADMIN")
    try:
        watch = PolicyWatch(sandbox, mounted)
        watch.look()
        assert "refused" not in watch.status()
        shutil.copy(outside, tmp_path / "new.yaml")
        (tmp_path / "new.yaml").replace(outside)
        watch.look()
        assert "another file has replaced it" in watch.status()["refused"]
    finally:
        subprocess.run(["umount", "--lazy", str(mounted)], check=True)


@pytest.fixture
def extending(tmp_path: Path, file: Path) -> Iterator[tuple[Sandbox, PolicyWatch, Path]]:
    """A sandbox under a policy that extends another, its watch, and a copy of what is in force."""
    own = tmp_path / "own.yaml"
    own.write_text("extends: policy.yaml\nlimits: {wall_seconds: 9}\n")
    sandbox = Sandbox(load_policy(own))
    sandbox.start()
    yield sandbox, PolicyWatch(sandbox, own, str(tmp_path / "kept.yaml")), own
    sandbox.close()


def test_an_edit_of_either_file_is_reloaded(
    extending: tuple[Sandbox, PolicyWatch, Path], file: Path
) -> None:
    sandbox, watch, own = extending
    watch.look()
    file.write_text(widen(file))
    for _ in range(3):
        watch.look()
    assert allows_colorsys(sandbox)
    assert sandbox.policy.limits.wall_seconds == 9
    own.write_text("extends: policy.yaml\nlimits: {wall_seconds: 7}\n")
    for _ in range(3):
        watch.look()
    assert sandbox.policy.limits.wall_seconds == 7
    status = watch.status()
    assert list(status["files"]) == [str(own), str(file)]
    assert status["reloads"]["reloaded"] == 2
    kept = load_policy(own.with_name("kept.yaml"))
    assert kept.limits == sandbox.policy.limits
    assert kept.allowed_imports == sandbox.policy.allowed_imports
    assert kept.blocked_words == sandbox.policy.blocked_words


def test_a_mistake_in_the_extended_file_is_refused_with_its_place(
    extending: tuple[Sandbox, PolicyWatch, Path], file: Path
) -> None:
    _, watch, own = extending
    file.write_text(file.read_text().replace("open_files: 32", "open_files: 0"))
    for _ in range(3):
        watch.look()
    assert f"{file}:" in watch.status()["refused"]
    file.unlink()
    for _ in range(3):
        watch.look()
    assert f"{own}:1:10: policy.yaml cannot be read" in watch.status()["refused"]
