"""policy.yaml with heavy.yaml on top, as a file that loads."""

from pathlib import Path

import yaml

from sandbox.policy import Policy, load_policy
from tests.conftest import ROOT


def heavy_policy(folder: Path) -> Policy:
    """Write the merged policy into a folder and load it."""
    merged = yaml.safe_load((ROOT / "policy.yaml").read_text("utf-8"))
    added = yaml.safe_load((Path(__file__).parent / "heavy.yaml").read_text("utf-8"))
    for field, value in added.items():
        merged[field] = merged[field] + value if isinstance(value, list) else merged[field] | value
    path = folder / "heavy.yaml"
    path.write_text(yaml.safe_dump(merged))
    return load_policy(path)
