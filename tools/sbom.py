"""Prints what the environment it runs in holds, as CycloneDX (https://cyclonedx.org/docs/1.6)."""

import json
import sys
from importlib.metadata import distributions

from function import __version__

held = {each.name.lower(): each.version for each in distributions()}
components = [
    {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
    for name, version in sorted(held.items())
]
product = {"type": "application", "name": "calcubot", "version": __version__}
bom = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
json.dump(bom | {"metadata": {"component": product}, "components": components}, sys.stdout)
