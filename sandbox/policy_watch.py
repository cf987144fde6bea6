"""Puts an edited policy file in force while programs run, and never a bad one."""

import contextlib
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

from sandbox.fork_server.zygote_process import SandboxUnavailable
from sandbox.policy.document import Document
from sandbox.policy.extends import parse_document, read_document, read_file
from sandbox.policy.loader import PolicyError, parse_policy
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

    An edit is reloaded when two looks in a row find the same bytes, so that a half-written file
    is left alone. A bad, unreadable or missing file leaves the policy in force as it is.
    """

    def __init__(self, sandbox: Sandbox, path: Path, copy: str | None = None) -> None:
        """Watch `path` for a started sandbox; keep what is in force in the file `copy`, if any."""
        self._sandbox = sandbox
        self._path = path
        self._copy = copy
        self._refused: str | None = None
        self._reloads: dict[str, Any] = {"reloaded": 0, "refused": 0, "last": "none"}
        self._files = tuple(sandbox.policy.files)
        # What the last look found, as far as it could, and what became of which bytes.
        self._stats: tuple[tuple[int, ...], ...] | None = None
        self._seen: str | None = sandbox.policy.sha256
        self._judged: str | None = sandbox.policy.sha256
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

        `reloads` counts edits `reloaded` and `refused`; `last` is one of these, or none.
        """
        policy = self._sandbox.policy
        status: dict[str, Any] = {"sha256": policy.sha256, "reloads": {**self._reloads}}
        if len(policy.files) > 1:
            status["files"] = {str(path): digest for path, digest in policy.files.items()}
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
        """Look once, and put what stands in the file in force if it is new, whole and good.

        Of a policy that extends others, all files count.
        """
        try:
            files = [path for path in self._files if path == self._path or path.exists()]
            stats = tuple(map(_stat, files))
            if not all(links for links, *_ in stats):
                self._refuse(REPLACED.format(self._path))
                return
            if stats == self._stats and self._seen == self._judged:
                return
            document = parse_document(self._path, read_file(self._path))
        except (OSError, ValueError) as error:
            self._stats = self._seen = self._judged = None
            reason = getattr(error, "strerror", None) or error
            self._refuse(f"{self._path}: {reason}; the policy in force stays")
            return
        is_settled = (stats, document.sha256) == (self._stats, self._seen)
        self._files, self._stats, self._seen = tuple(document.files), stats, document.sha256
        if is_settled and self._seen != self._judged:
            self._judged = self._seen
            self._reload(document)

    def _reload(self, document: Document) -> None:
        if document.sha256 == self._sandbox.policy.sha256:
            self._refused = None
            return
        try:
            policy = parse_policy(document)
            self._sandbox.reload(policy)
        except (PolicyError, SandboxUnavailable) as error:
            self._refuse(str(error))
        else:
            self._refused = None
            self._count("reloaded")
            self._keep()
            log.info("policy %s is in force", policy.sha256[:12])

    def _keep(self) -> None:
        """Copy the policy if it is in force; without a copy, only a worker that dies has none.

        What extends another is kept as one file, in JSON, which is YAML too.
        """
        if self._copy is None:
            return
        document = read_document(self._path)
        if document.sha256 == self._sandbox.policy.sha256:
            flat = json.dumps(document.value).encode()
            with contextlib.suppress(OSError):
                new = Path(f"{self._copy}.new")
                new.write_bytes(document.raw if len(document.files) == 1 else flat)
                os.replace(new, self._copy)

    def _refuse(self, reason: str) -> None:
        if reason != self._refused:
            log.error("the edited policy is refused, the last good one goes on:\n%s", reason)
            self._count("refused")
        self._refused = reason

    def _count(self, result: str) -> None:
        self._reloads |= {result: self._reloads[result] + 1, "last": result}


def _stat(path: Path) -> tuple[int, ...]:
    """What changes when a file does; the number of its links first."""
    found = path.stat()
    times = found.st_mtime_ns, found.st_ctime_ns
    return found.st_nlink, found.st_dev, found.st_ino, found.st_size, *times
