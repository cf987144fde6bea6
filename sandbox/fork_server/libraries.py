"""What libraries need around a fork: loaded in a zygote that imports more than Python's own.

matplotlib keeps fonts open, and closes them by a hook on fork that libc's fork does not run. A
guest closes its descriptors, so a font that was open would fail every plot of every guest.
A fork copies an entry for each of 25,000 pages, and a guest's end drops them: 2.7 ms of the 14 that
an integral takes from fork to end. Of huge pages it copies 512 at a time.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys

from sandbox.kernel.libc import libc

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_HUGE, _MADV_COLLAPSE = 2 << 20, 25
_WIDE_FONTS = (
    "Noto Sans CJK JP",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
)
_MT19937_BYTES = 624 * 4  # and then its position


def keep_readable_fonts(readable_paths: Sequence[str]) -> None:
    """Let matplotlib know the fonts that guests can open; it searches anew for one that fails.

    Signs that DejaVu has not come from the first font for Chinese, Japanese and Korean there is.
    """
    if manager := sys.modules.get("matplotlib.font_manager"):
        folders = tuple(f"{os.path.realpath(path)}/" for path in readable_paths)
        known = manager.fontManager
        known.ttflist = [
            font for font in known.ttflist if os.path.realpath(font.fname).startswith(folders)
        ]
        names = {font.name for font in known.ttflist}
        if wide := [name for name in _WIDE_FONTS if name in names][:1]:
            # The last is for who sets `font.sans-serif` to what is not there.
            family = ["sans-serif", *wide, "DejaVu Sans"]
            sys.modules["matplotlib"].rcParams["font.family"] = family


def forget_drawing() -> None:
    """Close the figures and fonts that were opened until now."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
        sys.modules["matplotlib.font_manager"]._get_font.cache_clear()
        sys.modules["matplotlib.mathtext"].MathTextParser._parse_cached.cache_clear()
        gc.collect()  # what formulas were set with holds fonts, in cycles


def open_files(process: int, known: Collection[int]) -> list[str]:
    """Return what this process has open beyond the standard streams and the descriptors known.

    `process` is a descriptor of /proc/self. A shared library may keep its own file open, as libffi
    does for its trampolines; a guest closes that with all others.
    """
    names = []
    folder = os.open("fd", os.O_RDONLY, dir_fd=process)
    for descriptor in os.listdir(folder):
        if int(descriptor) > 2 and int(descriptor) not in {folder, process, *known}:
            with contextlib.suppress(FileNotFoundError):  # the listing's own
                names.append(os.readlink(descriptor, dir_fd=folder))
    os.close(folder)
    return sorted(name for name in names if ".so" not in os.path.basename(name))


def join_pages(process: int) -> None:
    """Move the heap to huge pages, where the kernel has MADV_COLLAPSE (Linux 6.1, madvise(2)).

    `process` as above. A page that is written to later is a small one again.
    """
    huge_bytes = ctypes.c_size_t(_HUGE)
    with open("maps", encoding="utf-8", opener=lambda *how: os.open(*how, dir_fd=process)) as maps:
        mappings = [line.split() for line in maps]
    for addresses, access, *_, inode in (fields[:5] for fields in mappings):
        if access == "rw-p" and inode == "0":
            first, end = (int(address, 16) for address in addresses.split("-"))
            for huge in range(-(-first // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE):
                libc.madvise(ctypes.c_size_t(huge), huge_bytes, _MADV_COLLAPSE)


def random_states() -> list[ctypes.Array[ctypes.c_char]]:
    """Return the memory of numpy's global generator, an MT19937: to seed it takes 0.3 ms."""
    if numpy := sys.modules.get("numpy"):
        address = numpy.random.get_bit_generator().ctypes.state_address
        return [(ctypes.c_char * _MT19937_BYTES).from_address(address)]
    return []
