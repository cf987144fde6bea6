import platform
import re
from pathlib import Path

import pytest

from sandbox.kernel.syscalls import GROUPS, TABLES, expand
from tests.sandbox.kernel import libseccomp

TOKENS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
INCLUDE = Path("/usr/include")
GENERIC = INCLUDE / "asm-generic/unistd.h"  # what aarch64 has, and all that Debian 12 has of it


def header_numbers(arch: str) -> dict[str, int]:
    """Read the numbers from the kernel's headers (linux-libc-dev)."""
    folders = [INCLUDE / f"{arch}-linux-gnu/asm"]  # since Debian 13 for every architecture
    if platform.machine() == arch:
        folders.append(INCLUDE / "asm")
    for path in (folder / "unistd_64.h" for folder in folders):
        if path.exists():
            defines = re.findall(r"#define __NR_(\w+) (\d+)", path.read_text())
            return {name: int(number) for name, number in defines}
    if arch != "aarch64":
        pytest.skip(f"no kernel headers for {arch} (apt-get install linux-libc-dev)")
    if not GENERIC.exists():
        pytest.skip("no kernel headers (apt-get install linux-libc-dev)")
    # Some calls have two names for one number there: that of 64-bit machines comes first.
    text = re.sub(r"#if .*BITS_PER_LONG == 32\n(?s:.*?)#endif\n", "", GENERIC.read_text())
    shared = dict(re.findall(r"#define __NR3264_(\w+) (\d+)", text))
    numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", text))
    for name, alias in re.findall(r"#define __NR_(\w+) __NR3264_(\w+)", text):
        if alias in shared:
            numbers[name] = shared.pop(alias)
    names = numbers.keys() - {"syscalls", "arch_specific_syscall", "sync_file_range2"}
    return {name: int(numbers[name]) for name in names}


@pytest.mark.parametrize("arch", TABLES)
def test_the_table_agrees_with_the_kernel_headers(arch):
    table = TABLES[arch]
    header = header_numbers(arch)
    newest = max(table.values())
    assert len(header) > 250
    assert {n: k for n, k in header.items() if k <= newest and table.get(n) != k} == {}


@pytest.mark.parametrize("arch", TABLES)
def test_the_table_agrees_with_libseccomp(arch):
    table, token = TABLES[arch], TOKENS[arch]
    by_number = {number: name for name, number in table.items()}
    known = {number: libseccomp.name_of(number, token) for number in range(max(by_number) + 1)}
    assert sum(name is not None for name in known.values()) > 250
    assert {k: n for k, n in known.items() if n is not None and by_number.get(k) != n} == {}
    foreign = {name: libseccomp.number_of(name, token) for name in table}
    assert {n: k for n, k in foreign.items() if k != table[n] and k != libseccomp.UNKNOWN} == {}


@pytest.mark.parametrize("arch", TABLES)
def test_every_number_has_one_name(arch):
    assert len(set(TABLES[arch].values())) == len(TABLES[arch])


def test_a_new_call_has_one_number_everywhere():
    new = [{n: k for n, k in table.items() if k >= 424} for table in TABLES.values()]
    assert new[0] == new[1]
    assert new[0]["pidfd_send_signal"] == 424
    assert new[0]["rseq_slice_yield"] == max(new[0].values())


def test_groups_are_sorted_and_hold_known_names():
    assert list(GROUPS) == sorted(GROUPS)
    for group, members in GROUPS.items():
        assert group.startswith("@")
        assert list(members) == sorted(members)
        assert expand(members)


def test_expand_resolves_groups_within_groups():
    names = expand(["@limits", "bpf"])
    assert {"setpriority", "prlimit64(set)", "bpf"} <= names
    assert not any(name.startswith("@") for name in names)


@pytest.mark.parametrize("entry", ["@nosuch", "nosuch", "nosuch(write)", "", "(write)"])
def test_expand_refuses_an_unknown_entry(entry):
    with pytest.raises(ValueError, match="unknown"):
        expand([entry])
