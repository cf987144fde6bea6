"""A file that a warm-up program leaves open is told; a shared library's own is not."""

import os
from pathlib import Path

from sandbox.fork_server.libraries import open_files


def test_a_librarys_own_file_is_not_left_open(tmp_path: Path) -> None:
    process = os.open("/proc/self", os.O_RDONLY)
    before = open_files(process, ())
    with (tmp_path / "libffi.so.8").open("w"), (tmp_path / "left").open("w"):
        found = open_files(process, ())
    os.close(process)
    assert {*found} - {*before} == {str(tmp_path / "left")}
