import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tools.serve import ROOT


def copy(folder: Path) -> Path:
    """Return a clone whose lock names no package, so that its environment needs no network."""
    shutil.copytree(ROOT / "tools", folder / "clone/tools")
    (folder / "clone/function").mkdir()
    (folder / "clone/function/requirements.txt").write_text("# nothing\n")
    return folder / "clone"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return copy(tmp_path)


def start(command: list[str], cwd: Path, **environment: str) -> subprocess.Popen[str]:
    clean = {"PATH": os.environ["PATH"], "HOME": str(cwd), "PYTHON": sys.executable}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=cwd, env=clean | environment, stdout=pipe, stderr=pipe, text=True
    )


def run(command: list[str], cwd: Path, **environment: str) -> tuple[int, str, str]:
    process = start(command, cwd, **environment)
    out, error = process.communicate(timeout=100)
    return process.returncode, out, error


def test_first_uses_at_once_make_one_environment_which_later_ones_reuse(
    clone: Path, tmp_path: Path
) -> None:
    (tmp_path / "json.py").write_text("print('a module of the current folder')")
    script = "import json, sys; print(sys.prefix); print(sys.path[0])"
    command = [str(clone / "tools/python"), "-c", script]
    both = [start(command, tmp_path) for _ in range(2)]
    results = [process.communicate(timeout=100) for process in both]
    assert results[0][0] == results[1][0]
    assert sum("Preparing" in error for _, error in results) == 1
    prefix, path = results[0][0].splitlines()
    assert (Path(prefix).parent, path) == (clone / ".venv", str(clone))
    assert run(command, tmp_path) == (0, results[0][0], "")


def test_maths_brings_its_lock_and_its_policy(clone: Path) -> None:
    (clone / "function/maths.txt").write_text("# nothing else\n")
    script = "import os, sys; print(sys.prefix); print(os.environ.get('POLICY_PATH'))"
    command = [str(clone / "tools/python"), "-c", script]
    _, plain, _ = run(command, clone, MATHS="0")
    _, with_maths, _ = run(command, clone, MATHS="1")
    assert plain.splitlines()[1] == "None"
    assert with_maths.splitlines()[1] == str(clone / "sandbox/policies/maths.yaml")
    assert plain.splitlines()[0] != with_maths.splitlines()[0]
    _, own, _ = run(command, clone, MATHS="1", POLICY_PATH="own.yaml")
    assert own.splitlines()[1] == "own.yaml"


def test_what_has_no_hash_is_not_installed(clone: Path) -> None:
    (clone / "setup.py").write_text("import setuptools; setuptools.setup(name='unhashed')")
    (clone / "function/requirements.txt").write_text(f"unhashed @ file://{clone}\n")
    status, _, error = run([str(clone / "tools/python"), "-c", "pass"], clone)
    assert (status, "hash" in error, "Could not install" in error) == (2, True, True)
    assert not list((clone / ".venv").glob("*/complete"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_clone_of_another_owner_gets_its_environment_in_the_users_own_cache() -> None:
    python = "/usr/bin/python3"  # the tests' own may be where only root can go
    if not Path(python).exists() or run([python, "-c", "import ensurepip"], ROOT)[0] != 0:
        pytest.skip("the system's own Python is not there or has no venv")
    with tempfile.TemporaryDirectory() as name:
        clone, home = copy(Path(name)), Path(name, "home")
        home.mkdir()
        Path(name).chmod(0o755)
        os.chown(home, 65534, 65534)
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        command += [str(clone / "tools/python"), "-c", "import sys; print(sys.prefix)"]
        status, prefix, error = run(command, clone, HOME=str(home), PYTHON=python)
        assert status == 0, error
        assert Path(prefix.strip()).parent == home / ".cache/calcubot"


def test_no_python_at_all_says_what_to_install(clone: Path) -> None:
    status, _, error = run([str(clone / "tools/python")], clone, PYTHON="python-that-is-not")
    assert (status, "apt install python3-venv" in error) == (2, True)


@pytest.mark.parametrize(
    ("flaw", "cure"),
    [
        ("sys.version_info = (3, 9, 2)", "Python 3.11 or later is needed"),
        ("sys.modules['ensurepip'] = None", "apt install python3-venv"),
        ("sys.modules['os'].environ['XDG_CACHE_HOME'] = '/dev/null'", "Set XDG_CACHE_HOME"),
    ],
)
def test_what_is_missing_is_named_with_its_cure(clone: Path, flaw: str, cure: str) -> None:
    if "XDG" in flaw:
        (clone / ".venv").write_text("in the way")
    script = (
        f"import sys, os, runpy; {flaw}; runpy.run_path('tools/environment.py', {{}}, '__main__')"
    )
    status, _, error = run([sys.executable, "-c", script], clone)
    assert (status, cure in error, "Traceback" in error) == (2, True, False)


@pytest.mark.parametrize(
    ("tool", "module"),
    [
        ("serve", "tools.serve"),
        ("calc", "tools.calc"),
        ("bench", "tests.performance.bench"),
        ("soak", "tests.performance.soak"),
    ],
)
def test_each_tool_hands_its_arguments_to_its_module_from_any_folder(
    clone: Path, tmp_path: Path, tool: str, module: str
) -> None:
    (clone / "tools/python").write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    (tmp_path / "link").symlink_to(clone / "tools" / tool)
    result = run([str(tmp_path / "link"), "a b", "--c"], tmp_path)
    assert result == (0, f"-m|{module}|a b|--c|", "")
