"""The messages between function, zygote and guests, and their packing: what goes where.

    function -> zygote   configuration (JSON), once
    zygote -> function   the layers in force and the prelude's names, or the layer that failed
                         (JSON), once
    zygote -> function   GUEST: the number of a guest that is prepared, with four descriptors:
                         where to write its program, where to read its output, its report, its end
    function -> zygote   GUEST: the number of a guest whose program was sent: its time runs from now
    function -> guest    PROGRAM, then end of file        a pipe, the guest's descriptor 0
    guest -> function    what the program prints, then its pictures    a pipe, descriptor 1
    guest -> function    REPORT: the guest's own word     a pipe, descriptor 3
    zygote -> function   ENDING: the kernel's word        a pipe that the guest does not have

The first four travel on a SOCK_SEQPACKET socket; its end of file means that no more guests are
wanted. A program may write what it likes to descriptors 1 and 3: what comes from there is shown to
its own user and decides nothing else. Descriptor 2 leads nowhere.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False  # as in typing, which would bring 440 KiB
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypedDict

    class Configuration(TypedDict):
        """The policy's values for a zygote, and which layers it is to install.

        `prelude` and `warm_up` hold programs as `program.split` returns them, `rlimits` pairs of
        resource and limit, `filter` a packed seccomp program in hexadecimal, "" for none;
        `warm_up_filter` is for the guests that try these programs. `has_libraries`: whether modules
        beyond the standard library are imported. `cgroup_mib`, 0 for none, is the function's to
        apply.
        """

        allowed_imports: dict[str, tuple[str, ...] | None]
        preloaded: dict[str, str]
        prelude: list[tuple[str, str]]
        warm_up: list[tuple[str, str]]
        has_libraries: bool
        dangerous_names: list[str]
        dangerous_attrs: list[str]
        readable_paths: list[str]
        output_bytes: int
        picture_bytes: int
        wall_seconds: float
        cpu_seconds: float
        prepared: int
        first_uid: int
        uid_count: int
        rlimits: list[tuple[int, int]]
        filter: str
        warm_up_filter: str
        uid: bool
        landlock: bool
        namespaces: bool
        cgroup_mib: int


GUEST = struct.Struct("=I")

# Flags, and how many bytes are statements and lines for `input`; then these, and the last
# expression, in UTF-8; with EVERY_LINE several, with \0 between.
_PROGRAM = struct.Struct("=BII")
HELPERS, UNCHECKED, SEVERAL_LINES, EVERY_LINE = 1, 2, 4, 8

# Verdict, CPU microseconds, peak KiB, how many bytes at the output's end are pictures; then the
# error's text, or where all went well a sentence on pictures that are left out.
_REPORT = struct.Struct("=BqqI")
OK, ERROR, SYNTAX_ERROR, MEMORY_LIMIT, OUTPUT_LIMIT = range(5)
NO_MEMORY_TO_REPORT = 112  # the exit code of a guest that has not even that much
REPORT_BYTES = 16384  # more of it is not read

# The size of a picture, before it.
_PICTURE = struct.Struct("=I")
MOST_PICTURES = 4

# Wait status, why the zygote ended it, CPU seconds, peak KiB.
ENDING = struct.Struct("=iBdq")
NOT_BY_ZYGOTE, WALL_TIME_OVER, CPU_TIME_OVER = range(3)


def pack_program(flags: int, statements: str, expression: str, stdin: str) -> bytes:
    """Return a program for a guest. Statements that do not parse may hold lone surrogates."""
    first, lines = (text.encode("utf-8", "surrogatepass") for text in (statements, stdin))
    head = _PROGRAM.pack(flags, len(first), len(lines))
    return head + first + lines + expression.encode()


def unpack_program(data: bytes) -> tuple[int, str, str, str]:
    """Return flags, statements, expression, and the lines that `input` reads."""
    flags, first, lines = _PROGRAM.unpack_from(data)
    rest = data[_PROGRAM.size :]
    return (
        flags,
        rest[:first].decode("utf-8", "surrogatepass"),
        rest[first + lines :].decode(),
        rest[first : first + lines].decode("utf-8", "surrogatepass"),
    )


def pack_report(
    verdict: int, cpu_microseconds: int, max_rss_kib: int, error: str, picture_bytes: int = 0
) -> bytes:
    """Return a guest's report."""
    head = _REPORT.pack(verdict, cpu_microseconds, max_rss_kib, picture_bytes)
    return head + error.encode("utf-8", "backslashreplace")


def unpack_report(data: bytes) -> tuple[int, int, int, str, int]:
    """Return verdict, CPU microseconds, peak KiB, error and bytes of pictures.

    Any bytes may come, and be forged; the verdict is -1 where they are too short.
    """
    if len(data) < _REPORT.size:
        return -1, 0, 0, "", 0
    *numbers, picture_bytes = _REPORT.unpack_from(data)
    return *numbers, data[_REPORT.size :].decode("utf-8", "replace"), picture_bytes


def pack_pictures(pictures: Iterable[bytes]) -> bytes:
    """Return what follows the output: each picture behind its size."""
    return b"".join(_PICTURE.pack(len(each)) + each for each in pictures)


def unpack_pictures(data: bytes) -> list[bytes]:
    """Return what any bytes hold for pictures: at most MOST_PICTURES, the last perhaps cut off."""
    pictures: list[bytes] = []
    while len(data) >= _PICTURE.size and len(pictures) < MOST_PICTURES:
        [size] = _PICTURE.unpack_from(data)
        pictures.append(data[_PICTURE.size :][:size])
        data = data[_PICTURE.size + size :]
    return pictures
