"""Keeps one zygote there: another is started when it dies, and when it is old."""

import logging
import threading
import time
from typing import Any

from sandbox.fork_server.zygote_process import SandboxUnavailable, ZygoteProcess

log = logging.getLogger(__name__)


class Supervisor:
    """A zygote's place; `process` is the one that is there now, and `restarts` counts deaths."""

    def __init__(self, process: ZygoteProcess, restarts: int = 0) -> None:
        self.process = process
        self.restarts = restarts
        self._changing = threading.Lock()
        self._is_closed = False
        self._renewing = False

    def restart(self, dead: ZygoteProcess, reason: str) -> None:
        """Start another zygote for one that died, unless that was done already."""
        with self._changing:
            if self.process is not dead or self._is_closed:
                return
            log.warning("starting another zygote: %s", reason)
            dead.kill()
            try:
                self._replace(ZygoteProcess(dead.policy, slots=dead.slots))
                self.restarts += 1
            except SandboxUnavailable as error:
                log.error("%s", error)

    def renew_if_old(self, process: ZygoteProcess) -> None:
        """Start another zygote, meanwhile, for one that has served long enough."""
        limits = process.policy.limits
        age = time.monotonic() - process.started
        if process.served < limits.zygote_guests and age < limits.zygote_minutes * 60:
            return
        with self._changing:
            if self._renewing or self.process is not process or self._is_closed:
                return
            self._renewing = True
        threading.Thread(target=self._renew, args=[process], name="zygote-renewal").start()

    def _renew(self, old: ZygoteProcess) -> None:
        try:
            new = ZygoteProcess(old.policy, slots=old.slots)
        except SandboxUnavailable as error:
            log.error("the zygote stays, for its successor did not start: %s", error)
            return
        finally:
            self._renewing = False
        with self._changing:
            if self.process is old and not self._is_closed:
                self._replace(new)
            else:
                new.close()

    def _replace(self, new: ZygoteProcess) -> None:
        old, self.process = self.process, new
        old.close()

    def close(self) -> None:
        """End the zygote; programs that run may finish within their time."""
        with self._changing:
            self._is_closed = True
            self.process.close()

    def status(self) -> dict[str, Any]:
        """Return what health reports of this zygote."""
        process = self.process
        return {
            "layers": process.layers,
            "guests": {
                "prepared": process.prepared,
                "running": process.running,
                "served": process.served,
            },
            "zygote": {
                "restarts": self.restarts,
                "age_seconds": round(time.monotonic() - process.started),
            },
        }
