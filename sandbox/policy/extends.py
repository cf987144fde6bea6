"""Reads a policy file, upon the one that it extends.

`extends: ../policy.yaml` names another by its path from the file's own folder. The keys of the file
replace the other's, one by one within mappings too; a list may be `{add: [...], remove: [...]}`, as
may a mapping of names. Trees are merged, so that each part keeps the place where it was written.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from sandbox.policy.document import MAX_FILE_BYTES, NULL, Document, compose, mapping, place_of

_MOST_FILES = 8  # that extend one another

_Read = Callable[[Path], bytes]


def read_document(path: Path) -> Document:
    """Read a file. Whatever is wrong with it becomes a finding; nothing is raised."""
    try:
        return parse_document(path, read_file(path))
    except (OSError, ValueError) as error:
        document = Document(path, b"")
        cure = "give the name of a readable policy file"
        document.report((), "file", f"cannot be read: {_reason(error)}", cure)
        return document


def read_file(path: Path) -> bytes:
    """The bytes of a regular file, or a few too many. Raises OSError, ValueError."""
    if path.exists() and not path.is_file():  # a pipe would block, a device might never end
        raise ValueError(f"it is a {'folder' if path.is_dir() else 'device or a pipe'}")
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def parse_document(path: Path, raw: bytes, read: _Read = read_file) -> Document:
    """Parse a file's bytes; `path` is for messages, and for what it extends, which `read` reads."""
    document = Document(path, raw)
    node = _tree(document, read, (path,))
    if node is not None:
        document.value.update(mapping(document, node, ()))
    return document


def _tree(document: Document, read: _Read, chain: tuple[Path, ...]) -> yaml.MappingNode | None:
    """The tree of a file upon that of what it extends; None where a finding says why not."""
    document.files[document.path] = document.raw
    node = compose(document)
    if not isinstance(node, yaml.MappingNode) or not node.value:
        if not document.findings:
            cure = "begin with `version: 1` and the other fields"
            document.report((), "file", "holds no fields", cure)
        return None
    extends = [value for key, value in node.value if key.value == "extends"]
    if not extends:
        return node
    node.value = [pair for pair in node.value if pair[1] is not extends[0]]
    base = _base(document, extends[0], read, chain)
    return base and _merged(document, base, node)


def _base(
    document: Document, extends: Any, read: _Read, chain: tuple[Path, ...]
) -> yaml.MappingNode | None:
    """The tree of the policy that a file extends.

    Nothing of a file that is no policy is shown: its name may be anything, and lines are printed.
    """
    name = extends.value if isinstance(extends, yaml.ScalarNode) else ""
    path = Path(os.path.normpath(document.path.parent / name))
    base, node, reason = Document(path, b""), None, ""
    if path in chain or len(chain) == _MOST_FILES:
        reason = "extends this one, in a circle or too deep"
    else:
        try:
            base = Document(path, read(path))
            node = _tree(base, read, (*chain, path))
        except (OSError, ValueError) as error:
            reason = f"cannot be read: {_reason(error)}"
    if node is None or not any(key.value == "version" for key, _ in node.value):
        node, at = None, base.findings[0].line if base.findings else 1
        message = f"{name or 'what this extends'} {reason or f'is no policy (line {at})'}"
        cure = "name a policy by its path from this file's folder, and lint that one first"
        document.report_at(place_of(extends.start_mark), "file", message, cure, value=name)
    document.findings.extend(base.findings if node else ())
    document.files.update(base.files)
    return node


def _merged(document: Document, base: Any, own: Any) -> yaml.MappingNode:
    """The keys of both, the own ones first in effect; `base` and `own` are mappings."""
    pairs: dict[Any, tuple[Any, Any]] = {_name(key): (key, value) for key, value in base.value}
    mine: set[str] = set()
    for key, value in own.value:
        name = _name(key)
        _, below = pairs.get(name, (None, None))
        if name in mine:  # twice in this file: kept, to be reported
            pairs[key] = key, value
            continue
        mine.add(name)
        if isinstance(value, yaml.MappingNode) and below is not None:
            is_edit = value.value and all(
                _name(step) in ("add", "remove") and not isinstance(part, yaml.ScalarNode)
                for step, part in value.value
            )
            if isinstance(below, yaml.SequenceNode) or is_edit:
                value = _edited(document, below, value)  # noqa: PLW2901
            elif isinstance(below, yaml.MappingNode):
                value = _merged(document, below, value)  # noqa: PLW2901
        pairs[name] = key, value
    return yaml.MappingNode(base.tag, [*pairs.values()], own.start_mark, own.end_mark)


def _edited(document: Document, below: Any, edit: yaml.MappingNode) -> yaml.CollectionNode:
    """A list, or a mapping of names, with the entries that an edit adds and removes."""
    parts: dict[str, list[Any]] = {"add": [], "remove": []}
    for key, part in edit.value:
        if _name(key) in parts and isinstance(part, yaml.CollectionNode):
            parts[_name(key)] = part.value
        else:
            cure = "write `add: [...]` or `remove: [...]`, or a list that replaces the other"
            document.report_at(place_of(key.start_mark), "bad-edit", "this is no edit", cure)
    entries: list[Any] = [*below.value]
    for item in parts["remove"]:
        gone = [entry for entry in entries if _name(entry) == _name(item)]
        if not gone:
            message = f"{_name(item)} is not in what this file extends"
            document.report_at(place_of(item.start_mark), "bad-edit", message, "delete it")
        entries = [entry for entry in entries if entry not in gone]
    entries += parts["add"]
    edited: yaml.CollectionNode = type(below)(below.tag, entries, edit.start_mark, edit.end_mark)
    return edited


def _name(entry: Any) -> str:
    """The name of an entry of a list or a mapping: `json`, of `json: [dumps]` as well."""
    while not isinstance(entry, yaml.ScalarNode):
        entry = entry[0] if isinstance(entry, tuple) else next(iter(entry.value), _NAMELESS)
    return str(entry.value)


_NAMELESS = yaml.ScalarNode(NULL, "")
