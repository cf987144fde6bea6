"""Guests with layers switched off, which the product cannot make: only a test says what is left."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sandbox.fork_server.outcome import Outcome
from sandbox.fork_server.program import encode
from sandbox.fork_server.zygote_process import ZygoteProcess, configuration
from sandbox.policy.loader import Policy

if TYPE_CHECKING:
    from sandbox.fork_server.protocol import Configuration

# What to pass to `guests` to leave a layer out.
WITHOUT: dict[str, dict[str, Any]] = {
    "uid": {"uid": False},
    "rlimits": {"rlimits": []},
    "landlock": {"landlock": False},
    "seccomp": {"filter": ""},
    "namespaces": {"namespaces": False},
}


class Guests(ZygoteProcess):
    """A zygote that serves with whatever layers it was told to have."""

    def _start(self, config: "Configuration") -> dict[str, str]:
        answer = self._launch(config)
        if answer.get("failed") == "namespaces":  # this machine has none
            answer = self._launch({**config, "namespaces": False})
        assert "failed" not in answer, answer
        layers: dict[str, str] = answer["layers"]
        return layers

    def run_source(self, source: str, *, unchecked: bool = True) -> Outcome:
        return self.run(encode(source, unchecked=unchecked), 10)


@contextmanager
def guests(policy: Policy, *without: str, **config: Any) -> Iterator[Guests]:
    """Give guests under `policy` that lack the layers named; `config` changes what else is told."""
    changes: Mapping[str, Any] = {k: v for name in without for k, v in WITHOUT[name].items()}
    told = cast("Configuration", {**configuration(policy), **changes, **config})
    started = Guests(policy, told)
    try:
        yield started
    finally:
        started.close()


def has_filter_of_an_engine() -> bool:
    """Whether a container's engine has put a filter of its own on this process (proc(5))."""
    return "\nSeccomp:\t2\n" in Path("/proc/self/status").read_text()
