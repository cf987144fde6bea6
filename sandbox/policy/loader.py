"""Loads policy.yaml into a frozen Policy, or tells every mistake with its place and its cure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from sandbox.kernel import syscalls
from sandbox.policy.document import Document, Finding
from sandbox.policy.extends import read_document
from sandbox.policy.mistakes import add_mistakes


@dataclass(frozen=True)
class Rlimits:
    """What the kernel bounds for each guest (man 2 setrlimit)."""

    cpu_seconds: int
    address_space_mib: int
    stack_mib: int
    file_size_bytes: int
    core_bytes: int
    open_files: int
    processes: int


@dataclass(frozen=True)
class Limits:
    """What the sandbox and the bot bound."""

    wall_seconds: int
    source_bytes: int
    output_bytes: int
    concurrent_guests: int
    prepared_guests: int
    queue_seconds: int
    sender_concurrent: int
    sender_per_minute: int
    zygote_guests: int
    zygote_minutes: int
    input_bytes: int = 0
    picture_bytes: int = 0


@dataclass(frozen=True)
class Identity:
    """The user ids that guests run as; a guest's group id is its user id."""

    first_uid: int
    uid_count: int


@dataclass(frozen=True, eq=False)  # each is its own: what is made of one is kept beside it
class Policy:
    """One checked policy file.

    `files` has the file and those that it extends, with the SHA-256 of each; `sha256` is the file's
    own, or if there are several, that of all these hashes in a row. `allowed_imports` has for each
    module the names that it gives, None for its public ones. `denied_syscalls` holds no groups.
    """

    path: Path
    files: Mapping[Path, str]
    sha256: str
    version: int
    allowed_imports: Mapping[str, tuple[str, ...] | None]
    preloaded: Mapping[str, str]
    prelude: tuple[str, ...]
    warm_up: tuple[str, ...]
    dangerous_names: frozenset[str]
    dangerous_attrs: frozenset[str]
    allowed_dunders: frozenset[str]
    blocked_words: tuple[re.Pattern[str], ...]
    rlimits: Rlimits
    limits: Limits
    identity: Identity
    required_layers: frozenset[str]
    readable_paths: tuple[str, ...]
    denied_syscalls: frozenset[str]


class PolicyError(Exception):
    """The file is no policy; `findings` holds every mistake, in the order of the file."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(map(str, self.findings)))


def load_policy(path: str | Path) -> Policy:
    """Read and check a policy file. Raises PolicyError and nothing else, whatever is wrong."""
    return parse_policy(read_document(Path(path)))


def parse_policy(document: Document) -> Policy:
    """The Policy that a document holds. Raises PolicyError."""
    add_mistakes(document)
    if document.findings:
        raise PolicyError(document.findings)
    value = document.value
    return Policy(
        path=document.path,
        files=MappingProxyType(document.hashes),
        sha256=document.sha256,
        version=value["version"],
        allowed_imports=MappingProxyType(_imports(value["allowed_imports"])),
        preloaded=MappingProxyType(value["preloaded"]),
        prelude=tuple(value.get("prelude", ())),
        warm_up=tuple(value.get("warm_up", ())),
        dangerous_names=frozenset(value["dangerous_names"])
        | ({"input"} if not value["limits"].get("input_bytes") else set()),
        dangerous_attrs=frozenset(value["dangerous_attrs"]),
        allowed_dunders=frozenset(value["allowed_dunders"]),
        blocked_words=tuple(map(re.compile, value["blocked_words"])),
        rlimits=Rlimits(**value["rlimits"]),
        limits=Limits(**value["limits"]),
        identity=Identity(**value["identity"]),
        required_layers=frozenset(value["required_layers"]),
        readable_paths=tuple(value["readable_paths"]),
        denied_syscalls=syscalls.expand(value["denied_syscalls"]),
    )


def _imports(entries: list[str | dict[str, list[str]]]) -> dict[str, tuple[str, ...] | None]:
    """Each module with the names that it gives; None for its public names.

    An entry for a whole module holds whatever another gives of it.
    """
    result: dict[str, tuple[str, ...] | None] = {}
    for entry in entries:
        given = {entry: None} if isinstance(entry, str) else entry
        for module, names in given.items():
            if module not in result or result[module] is not None:
                result[module] = None if names is None else tuple(names)
    return result
