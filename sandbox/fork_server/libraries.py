"""What libraries need around a fork: loaded in a zygote that imports more than Python's own.

matplotlib keeps fonts open, and closes them by a hook on fork that libc's fork does not run. A
guest closes its descriptors, so a font that was open would fail every plot of every guest.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any


def keep_readable_fonts(readable_paths: Sequence[str]) -> None:
    """Let matplotlib know the fonts that guests can open; it searches anew for one that fails."""
    if manager := _module("matplotlib.font_manager"):
        folders = tuple(f"{os.path.realpath(path)}/" for path in readable_paths)
        fonts = manager.fontManager
        for kind in ("ttflist", "afmlist"):
            kept = [
                f for f in getattr(fonts, kind) if os.path.realpath(f.fname).startswith(folders)
            ]
            setattr(fonts, kind, kept)


def forget_drawing() -> None:
    """Close the figures and fonts that were opened until now."""
    if pyplot := _module("matplotlib.pyplot"):
        pyplot.close("all")
        _module("matplotlib.font_manager")._get_font.cache_clear()
        _module("matplotlib.mathtext").MathTextParser._parse_cached.cache_clear()
        gc.collect()  # what formulas were set with holds fonts, in cycles


def open_files(folder: int, known: Collection[int]) -> list[str]:
    """Return what this process has open beyond the standard streams and the descriptors known.

    `folder` is a descriptor of /proc/self/fd. A shared library may keep its own file open, as
    libffi does for its trampolines; a guest closes that with all others.
    """
    names = []
    for descriptor in os.listdir(folder):
        if int(descriptor) > 2 and int(descriptor) not in {folder, *known}:
            with contextlib.suppress(FileNotFoundError):  # the listing's own
                names.append(os.readlink(descriptor, dir_fd=folder))
    return sorted(name for name in names if ".so" not in os.path.basename(name))


def _module(name: str) -> Any:
    return sys.modules.get(name)
