"""Keeps guests from copying pages for reference counts alone, from Python 3.12 on.

An object holds its own count, so whoever calls a function writes to it, and a guest copies the page
that it is on. What there is before the fork is never freed, and PEP 683 has a count that says so,
which nobody changes: an integral by sympy faults in 340 pages instead of 890.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import types

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Iterator

_BATCH = 10_000  # objects


def make_immortal() -> None:
    """Make all objects that there are immortal; do nothing where this Python knows none."""
    memory = (ctypes.c_uint32 * 2**46).from_address(0)  # an object begins with its count
    new = object()
    if sys.version_info < (3, 12) or memory[id(new) // 4] != 1:  # without a GIL it begins otherwise
        return
    immortal = memory[id(None) // 4]  # 3.14 has another than 3.12, and takes no other
    todo = gc.get_objects()
    while todo:
        batch = [each for each in todo[-_BATCH:] if memory[id(each) // 4] != immortal]
        del todo[-_BATCH:]
        for each in batch:
            memory[id(each) // 4] = immortal
        todo += gc.get_referents(*batch)
        todo += (part for each in batch if type(each) is types.CodeType for part in _parts(each))


def _parts(code: types.CodeType) -> Iterator[object]:
    """Yield what a code object holds, which the collector does not see."""
    yield from (code.co_consts, code.co_names, code.co_varnames, code.co_name, code.co_qualname)
