"""Puts an edited policy file in force while programs run, and never a bad one."""

import contextlib
import hashlib
import logging
import os
import threading
from pathlib import Path
from typing import Any

from sandbox.fork_server.zygote_process import SandboxUnavailable
from sandbox.policy.loader import PolicyError, load_policy
from sandbox.sandbox import Sandbox

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.4

# What is mounted into a container is a file, not a name: it has no name any more.
REPLACED = (
    "{} is mounted, and outside the mount another file has replaced it, which is not in force;"
    " cure: restart the container, or mount the folder instead of the file"
)


class PolicyWatch:
    """Looks at one path again and again, by name, so that a file replaced by rename is seen too.

    A change is taken up when two looks in a row find the same bytes, so that a half-written file
    is left alone. A bad, unreadable or missing file leaves the policy in force as it is.
    """

    def __init__(self, sandbox: Sandbox, path: Path, copy: str | None = None) -> None:
        """Watch `path` for a started sandbox; keep what is in force in the file `copy`, if any."""
        self._sandbox = sandbox
        self._path = path
        self._copy = copy
        self._refused: str | None = None
        self._reloads = {"taken_up": 0, "refused": 0}
        self._last_reload = "none"
        self._seen: str | None = sandbox.policy.sha256
        self._judged: str | None = sandbox.policy.sha256
        self._last_stat: tuple[int, ...] | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="policy-watch", daemon=True)
        self._keep()

    def start(self) -> None:
        """Begin to look, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; returns when a change under way is done."""
        self._stopped.set()
        self._thread.join()

    def status(self) -> dict[str, Any]:
        """Return the hash of the policy in force, what became of edits, and why the last is not it.

        `reloads` counts edits `taken_up` and `refused`; `last` is one of these, or none.
        """
        reloads = self._reloads | {"last": self._last_reload}
        status: dict[str, Any] = {"sha256": self._sandbox.policy.sha256, "reloads": reloads}
        if self._refused is not None:
            status["refused"] = self._refused
        return status

    def _run(self) -> None:
        while not self._stopped.wait(_LOOK_SECONDS):
            try:
                self.look()
            except Exception:
                log.exception("the policy file could not be looked at; the policy in force stays")

    def look(self) -> None:
        """Look once, and put what stands in the file in force if it is new, whole and good."""
        try:
            found = os.stat(self._path)
            if not found.st_nlink:
                self._refuse(REPLACED.format(self._path))
                return
            stat = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
            if stat == self._last_stat and self._seen == self._judged:
                return
            content = hashlib.sha256(self._path.read_bytes()).hexdigest()
        except OSError as error:
            self._last_stat, self._seen, self._judged = None, None, None
            self._refuse(f"{self._path}: {error.strerror}; the policy in force stays")
            return
        settled = content == self._seen and stat == self._last_stat
        self._last_stat, self._seen = stat, content
        if settled and content != self._judged:
            self._judged = content
            self._take_up(content)

    def _take_up(self, content: str) -> None:
        if content == self._sandbox.policy.sha256:
            self._refused = None
            return
        try:
            policy = load_policy(self._path)
            if policy.sha256 != content:
                self._judged = None  # it changed again in this moment; the next look sees it
                return
            self._sandbox.reload(policy)
        except (PolicyError, SandboxUnavailable) as error:
            self._refuse(str(error))
        else:
            self._refused = None
            self._count("taken_up")
            self._keep()
            log.info("policy %s is in force", policy.sha256[:12])

    def _keep(self) -> None:
        """Copy the file if it is in force; without a copy, only a worker that dies has none."""
        if self._copy is None:
            return
        with contextlib.suppress(OSError):
            content = self._path.read_bytes()
            if hashlib.sha256(content).hexdigest() == self._sandbox.policy.sha256:
                Path(f"{self._copy}.new").write_bytes(content)
                os.replace(f"{self._copy}.new", self._copy)

    def _refuse(self, reason: str) -> None:
        if reason != self._refused:
            log.error("the edited policy is refused, the last good one goes on:\n%s", reason)
            self._count("refused")
        self._refused = reason

    def _count(self, result: str) -> None:
        self._reloads[result] += 1
        self._last_reload = result
