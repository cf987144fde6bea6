"""policy.yaml with heavy.yaml on top, as a file that loads.

These libraries import parts of themselves when they are first needed, so that files stay open.
"""

from pathlib import Path

import yaml

from sandbox.policy.loader import Policy, load_policy

FOLDER = Path(__file__).resolve().parent


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as a literal block, the one form that a policy may have."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)


def heavy_policy(folder: Path) -> Policy:
    """Write the merged policy into a folder and load it."""
    merged = yaml.safe_load((FOLDER.parent.parent / "policy.yaml").read_text("utf-8"))
    added = yaml.safe_load((FOLDER / "heavy.yaml").read_text("utf-8"))
    for field, value in added.items():
        merged[field] = merged[field] + value if isinstance(value, list) else merged[field] | value
    for entry in ("@file-read", "mmap(address)"):
        merged["denied_syscalls"].remove(entry)
    path = folder / "heavy.yaml"
    path.write_text(yaml.dump(merged, Dumper=_Dumper))
    return load_policy(path)
