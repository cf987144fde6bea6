"""The environment that the tools run in: made at first use, one per interpreter and lock file.

Run by tools/python with whatever `python3` is; standard library only, and readable by any Python 3
as far as the version check. `--lock FILE`, first, names a lock other than the service's own.
MATHS=1 brings the libraries of algebra and plots, and the policy that allows them.
Exits with 2 and what to install or to set where there can be no environment.

Each start of each tool waits for this, so what is heavy is imported where it is needed: 13 ms of
processor time, of which 8 are the interpreter's own.
"""

import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036  an older interpreter is what this line is for
    sys.stderr.write(
        "Python 3.11 or later is needed, and {} is {}.{}. Install one, or set PYTHON to its path, "
        "as in PYTHON=python3.12 tools/serve\n".format(sys.executable, *sys.version_info[:2])
    )
    sys.exit(2)

import hashlib

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def failure(message: str) -> SystemExit:
    """The end with status 2, after a message for people."""
    print(message, file=sys.stderr)
    return SystemExit(2)


def find(lock: str) -> str:
    """Return the folder of the environment for a lock file, making it where there is none.

    It is kept in the repository, else in the user's cache; its name changes with the interpreter
    and with the lock.
    """
    with open(lock, "rb") as file:
        identity = f"{sys.version}{sys.base_prefix}".encode() + file.read()
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    kind = os.path.basename(os.path.dirname(lock))
    name = f"{kind}-{minor}-{hashlib.sha256(identity).hexdigest()[:12]}"
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folders = [f"{ROOT}/.venv/{name}", f"{cache}/calcubot/{name}"]
    return next(filter(is_ready, folders), "") or made(folders, lock)


def is_ready(folder: str) -> bool:
    """Tell whether an environment was installed to the end and its interpreter is still there."""
    return os.path.exists(f"{folder}/complete") and os.path.exists(f"{folder}/bin/python")


def made(folders: list[str], lock: str) -> str:
    """Make the environment in the first folder that can be written, and return that."""
    import fcntl

    for folder in folders:
        try:
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            guard = open(f"{folder}.lock", "w")  # noqa: SIM115
        except OSError:
            continue
        with guard:
            fcntl.flock(guard, fcntl.LOCK_EX)  # a second start waits for the first
            if not is_ready(folder):
                make(folder, lock)
        return folder
    homes = " or ".join(map(os.path.dirname, folders))
    raise failure(
        f"No folder for the environment: cannot write to {homes}. "
        "Set XDG_CACHE_HOME to a folder that you can write to."
    )


def make(folder: str, lock: str) -> None:
    """Create an environment and install every package of a lock file, checking each hash."""
    from importlib.util import find_spec

    if find_spec("ensurepip") is None:
        raise failure(
            f"{sys.executable} cannot create environments. Install its venv package "
            "(Debian, Ubuntu: apt install python3-venv) and try again."
        )
    import subprocess  # nosec B404
    import venv

    print(f"Preparing {folder} (once, about a minute) ...", file=sys.stderr)
    venv.create(folder, clear=True, with_pip=True, symlinks=True)
    pip = [f"{folder}/bin/python", "-I", "-m", "pip", "install", "--no-input"]
    pip += ["--disable-pip-version-check", "--require-hashes", "--requirement", lock]
    with open(lock, encoding="utf-8") as file:
        packages = file.read().count("==")
    with subprocess.Popen(pip, stdout=subprocess.PIPE, text=True) as installing:  # nosec B603
        started = 0
        for line in installing.stdout or ():
            started += line.startswith(("Collecting ", "Processing "))
            if sys.stderr.isatty():  # on its last line, which is then left empty
                sys.stderr.write(f"\r\x1b[K{started} of {packages}: {line.strip()[:70]}")
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if installing.returncode != 0:
        raise failure(f"Could not install {lock}: see pip's message above.")
    with open(f"{folder}/complete", "w"):
        pass


def main(arguments: list[str]) -> None:
    """Replace this process with the environment's Python, the repository first on its path."""
    has_maths = os.environ.get("MATHS", "0") not in ("", "0")
    lock = "function/maths.txt" if has_maths else "function/requirements.txt"
    if arguments[:1] == ["--lock"]:
        lock, arguments = arguments[1], arguments[2:]
    python = find(f"{ROOT}/{lock}") + "/bin/python"
    # Safe path: neither the current folder nor the script's own is searched for modules.
    environment = os.environ | {"PYTHONPATH": ROOT, "PYTHONSAFEPATH": "1"}
    if has_maths:
        environment.setdefault("POLICY_PATH", f"{ROOT}/sandbox/policies/maths.yaml")
    os.execve(python, [python, *arguments], environment)  # nosec B606


if __name__ == "__main__":
    main(sys.argv[1:])
