"""Guests with layers switched off, which the product cannot make: only a test says what is left."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sandbox.fork_server.outcome import Outcome
from sandbox.fork_server.request import request
from sandbox.fork_server.zygote_process import Generation, configuration
from sandbox.policy.loader import Policy

# What to pass to `guests` to leave a layer out.
WITHOUT: dict[str, dict[str, Any]] = {
    "uid": {"uid": False},
    "rlimits": {"rlimits": []},
    "landlock": {"landlock": False},
    "seccomp": {"filter": ""},
    "namespaces": {"namespaces": False},
}


class Guests(Generation):
    """A zygote that serves with whatever layers it was told to have."""

    def _start(self, config: dict[str, Any]) -> dict[str, str]:
        report = self._launch(config)
        if report.get("failed") == "namespaces":  # this machine has none
            report = self._launch(config | {"namespaces": False})
        assert "failed" not in report, report
        layers: dict[str, str] = report["layers"]
        return layers

    def run_source(self, source: str, *, unchecked: bool = True) -> Outcome:
        return self.run(request(source, unchecked=unchecked), 10)


@contextmanager
def guests(policy: Policy, *without: str, **config: Any) -> Iterator[Guests]:
    """Give guests under `policy` that lack the layers named; `config` changes what else is told."""
    changes: Mapping[str, Any] = {k: v for name in without for k, v in WITHOUT[name].items()}
    started = Guests(policy, configuration(policy) | changes | config)
    try:
        yield started
    finally:
        started.close()


def given_rlimits(policy: Policy) -> list[tuple[int, int]]:
    return [(which, limit) for which, limit in configuration(policy)["rlimits"]]


def has_filter_of_an_engine() -> bool:
    """Whether a container's engine has put a filter of its own on this process (proc(5))."""
    return "\nSeccomp:\t2\n" in Path("/proc/self/status").read_text()
