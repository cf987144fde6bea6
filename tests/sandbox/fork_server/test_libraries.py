"""What a zygote with libraries does before it forks: finds files left open, moves to huge pages."""

import ctypes
import mmap
import os
from pathlib import Path

import pytest

from sandbox.fork_server.libraries import join_pages, open_files

HUGE = 2 << 20


def test_a_librarys_own_file_is_not_left_open(tmp_path: Path) -> None:
    process = os.open("/proc/self", os.O_RDONLY)
    before = open_files(process, ())
    with (tmp_path / "libffi.so.8").open("w"), (tmp_path / "left").open("w"):
        found = open_files(process, ())
    os.close(process)
    assert {*found} - {*before} == {str(tmp_path / "left")}


def test_memory_moves_to_huge_pages_and_holds_what_it_held() -> None:
    memory = mmap.mmap(-1, 4 * HUGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:] = bytes(range(256)) * (4 * HUGE // 256)
    before = huge_kib()
    process = os.open("/proc/self", os.O_RDONLY)
    join_pages(process)
    os.close(process)
    assert memory[:] == bytes(range(256)) * (4 * HUGE // 256)
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory)) // HUGE * HUGE + HUGE
    if ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(HUGE), 25):
        pytest.skip("this kernel has no MADV_COLLAPSE")
    assert huge_kib() >= before + 2 * HUGE // 1024


def huge_kib() -> int:
    rollup = Path("/proc/self/smaps_rollup").read_text("ascii")
    return int(rollup.partition("AnonHugePages:")[2].split()[0])
