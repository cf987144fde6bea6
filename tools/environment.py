"""The environment that the tools run in: made at first use, one per interpreter and lock file.

Run by tools/python with whatever `python3` is; standard library only, and readable by any Python 3
as far as the version check. `--lock FILE`, first, names a lock other than the service's own.
MATHS=1 brings the libraries of algebra and plots, and the policy that allows them.
Exits with 2 and what to install or to set where there can be no environment.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  an older interpreter is what this line is for
    sys.stderr.write(
        "Python 3.11 or later is needed, and {} is {}.{}. Install one, or set PYTHON to its path, "
        "as in PYTHON=python3.12 tools/serve\n".format(sys.executable, *sys.version_info[:2])
    )
    sys.exit(2)

import fcntl
import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
SERVICE_LOCK = ROOT / "function/requirements.txt"
MATHS_LOCK = ROOT / "function/maths.txt"
MATHS_POLICY = ROOT / "sandbox/policies/maths.yaml"


def fail(message: str) -> NoReturn:
    """End with status 2 and a message for people."""
    print(message, file=sys.stderr)
    sys.exit(2)


def name(lock: Path) -> str:
    """Return the environment's folder name; it changes with the interpreter and with the lock."""
    identity = f"{sys.version}{sys.base_prefix}".encode() + lock.read_bytes()
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"{lock.parent.name}-{minor}-{hashlib.sha256(identity).hexdigest()[:12]}"


def homes() -> list[Path]:
    """Return where environments are kept: the repository, else the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [ROOT / ".venv", Path(cache) / "calcubot"]


def is_ready(folder: Path) -> bool:
    """Tell whether an environment was installed to the end and its interpreter is still there."""
    return (folder / "complete").exists() and (folder / "bin/python").exists()


def find(lock: Path) -> Path:
    """Return the folder of the environment for a lock file, making it where there is none."""
    for home in homes():
        if is_ready(home / name(lock)):
            return home / name(lock)
    for home in homes():
        try:
            home.mkdir(parents=True, exist_ok=True)
            guard = open(home / f"{name(lock)}.lock", "w")  # noqa: SIM115
        except OSError:
            continue
        with guard:
            fcntl.flock(guard, fcntl.LOCK_EX)  # a second start waits for the first
            if not is_ready(home / name(lock)):
                make(home / name(lock), lock)
        return home / name(lock)
    fail(
        f"No folder for the environment: cannot write to {' or '.join(map(str, homes()))}. "
        "Set XDG_CACHE_HOME to a folder that you can write to."
    )


def make(folder: Path, lock: Path) -> None:
    """Create an environment and install every package of a lock file, checking each hash."""
    if find_spec("ensurepip") is None:
        fail(
            f"{sys.executable} cannot create environments. Install its venv package "
            "(Debian, Ubuntu: apt install python3-venv) and try again."
        )
    import shutil
    import subprocess  # nosec B404
    import venv  # only here: with it every start of every tool would take a tenth of a second more

    print(f"Preparing {folder} (once, about a minute) ...", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True, symlinks=True)
    pip = [str(folder / "bin/python"), "-I", "-m", "pip", "install", "--no-input"]
    pip += ["--disable-pip-version-check", "--require-hashes", "--requirement", str(lock)]
    packages = lock.read_text("utf-8").count("==")
    with subprocess.Popen(pip, stdout=subprocess.PIPE, text=True) as installing:  # nosec B603
        started = 0
        for line in installing.stdout or ():
            started += line.startswith(("Collecting ", "Processing "))
            if sys.stderr.isatty():  # on its last line, which is then left empty
                sys.stderr.write(f"\r\x1b[K{started} of {packages}: {line.strip()[:70]}")
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if installing.returncode != 0:
        fail(f"Could not install {lock}: see pip's message above.")
    (folder / "complete").touch()


def main(arguments: list[str]) -> None:
    """Replace this process with the environment's Python, the repository first on its path."""
    has_maths = os.environ.get("MATHS", "0") not in ("", "0")
    lock = MATHS_LOCK if has_maths else SERVICE_LOCK
    if arguments[:1] == ["--lock"]:
        lock, arguments = ROOT / arguments[1], arguments[2:]
    python = str(find(lock) / "bin/python")
    # Safe path: neither the current folder nor the script's own is searched for modules.
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    if has_maths:
        environment.setdefault("POLICY_PATH", str(MATHS_POLICY))
    os.execve(python, [python, *arguments], environment)  # nosec B606


if __name__ == "__main__":
    main(sys.argv[1:])
