"""load_policy: what a good file gives, and where and how it tells of each mistake."""

import dataclasses
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.kernel import layers, seccomp, syscalls
from sandbox.policy.extends import parse_document
from sandbox.policy.loader import (
    Identity,
    Limits,
    Policy,
    PolicyError,
    Rlimits,
    load_policy,
    parse_policy,
)
from sandbox.policy.mistakes import SCHEMA_FILE, schema

ROOT = Path(__file__).resolve().parent.parent.parent.parent

GOOD = r"""# a small policy
version: 1
allowed_imports:
  - json
  - math
  - re
preloaded:
  js: json
  m: math
dangerous_names:
  - eval
  - open
dangerous_attrs: [sys, gi_frame]
allowed_dunders: []
blocked_words:
  - '\bpasswd\b'
  - '/proc/\d+'
rlimits:
  cpu_seconds: 2
  address_space_mib: 512
  stack_mib: 8
  file_size_bytes: 0
  core_bytes: 0
  open_files: 32
  processes: 0
limits:
  wall_seconds: 8
  source_bytes: 16384
  output_bytes: 65536
  concurrent_guests: 8
  prepared_guests: 4
  queue_seconds: 4
  sender_concurrent: 2
  sender_per_minute: 60
  zygote_guests: 10000
  zygote_minutes: 60
identity:
  first_uid: 5000
  uid_count: 64
required_layers:
  - no_new_privs
  - rlimits
  - seccomp
readable_paths:
  - '@python'
  - /usr/share/zoneinfo
denied_syscalls:
  - '@keyring'
  - prlimit64(set)
  - ptrace
"""


def load(folder: Path, text: str | bytes) -> Policy:
    file = folder / "policy.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_policy(file)


def problems(folder: Path, text: str | bytes) -> list[tuple[int, int, str, str]]:
    with pytest.raises(PolicyError) as caught:
        load(folder, text)
    return [(p.line, p.column, p.rule, p.cure) for p in caught.value.findings]


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def test_a_good_file_gives_every_field(tmp_path: Path) -> None:
    policy = load(tmp_path, GOOD)
    assert policy.path == tmp_path / "policy.yaml"
    assert policy.sha256 == hashlib.sha256(GOOD.encode()).hexdigest()
    assert policy.version == 1
    assert policy.allowed_imports == {"json": None, "math": None, "re": None}
    assert dict(policy.preloaded) == {"js": "json", "m": "math"}
    assert policy.warm_up == ()
    assert policy.dangerous_names == {"eval", "open", "input"}
    assert policy.dangerous_attrs == {"sys", "gi_frame"}
    assert policy.allowed_dunders == frozenset()
    assert policy.blocked_words == (re.compile(r"\bpasswd\b"), re.compile(r"/proc/\d+"))
    assert policy.rlimits == Rlimits(2, 512, 8, 0, 0, 32, 0)
    assert policy.limits == Limits(8, 16384, 65536, 8, 4, 4, 2, 60, 10000, 60)
    assert policy.identity == Identity(5000, 64)
    assert policy.required_layers == {"no_new_privs", "rlimits", "seccomp"}
    assert policy.readable_paths == ("@python", "/usr/share/zoneinfo")
    assert policy.denied_syscalls == {
        "add_key",
        "keyctl",
        "request_key",
        "prlimit64(set)",
        "ptrace",
    }


def test_warm_up_programs_may_have_several_lines(tmp_path: Path) -> None:
    programs = "version: 1\nwarm_up:\n  - 2+2\n  - |\n    x = 1\n    x + 1\n"
    assert load(tmp_path, changed("version: 1\n", programs)).warm_up == ("2+2", "x = 1\nx + 1\n")


def test_a_module_may_be_given_in_part(tmp_path: Path) -> None:
    text = changed("  - math\n", "  - math: [sin, cos]\n")
    policy = load(tmp_path, text.replace("  - re\n", "  - re:\n      - findall\n"))
    assert policy.allowed_imports == {"json": None, "math": ("sin", "cos"), "re": ("findall",)}
    assert list(policy.allowed_imports) == ["json", "math", "re"]


@pytest.mark.parametrize("entries", ["- math\n  - math: [sin]", "- math: [sin]\n  - math"])
def test_an_entry_for_a_whole_module_holds_its_parts(tmp_path: Path, entries: str) -> None:
    policy = load(tmp_path, changed("- math", entries))
    assert policy.allowed_imports["math"] is None


def test_a_policy_cannot_be_changed(tmp_path: Path) -> None:
    policy: Any = load(tmp_path, GOOD)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.version = 2
    with pytest.raises(TypeError):
        policy.preloaded["os"] = "os"
    with pytest.raises(TypeError):
        policy.allowed_imports["os"] = None


HARMLESS = {
    "comment": ("version: 1", "version: 1  # the only one"),
    "blank lines": ("preloaded:\n", "\n\npreloaded:\n\n"),
    "quotes": ("  - math", "  - 'math'"),
    "double quotes": ("  - math", '  - "math"'),
    "order of a list": ("  - json\n  - math", "  - math\n  - json"),
    "order of fields": ("  js: json\n  m: math", "  m: math\n  js: json"),
    "flow list": ("  - eval\n  - open", "  [eval, open]"),
    "flow list on several lines": ("[sys, gi_frame]", "[\n  sys,\n  gi_frame,\n]"),
    "list at the left margin": ("  - eval\n  - open", "- eval\n- open"),
    "deeper indent": ("  js: json\n  m: math", "     js: json\n     m: math"),
    "document start": ("# a small policy\n", "---\n"),
    "quoted on": ("dangerous_attrs: [sys, gi_frame]", "dangerous_attrs: ['on', gi_frame]"),
    "a name that YAML could take for a boolean": ("  js: json", "  on: json"),
    "wall equal to cpu": ("wall_seconds: 8", "wall_seconds: 2"),
    "as many uids as guests": ("uid_count: 64", "uid_count: 12"),
}  # fmt: skip


@pytest.mark.parametrize("edit", HARMLESS.values(), ids=HARMLESS)
def test_a_harmless_edit_is_no_mistake(tmp_path: Path, edit: tuple[str, str]) -> None:
    load(tmp_path, changed(*edit))


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_ends_of_other_systems_are_no_mistake(tmp_path: Path, ending: str) -> None:
    load(tmp_path, GOOD.replace("\n", ending))


# (what stands in GOOD, what replaces it with ^ before the place of the mistake, rule, cure)
MISTAKES = [
    # what is no number, though YAML has other ways to write one
    ("cpu_seconds: 2", "cpu_seconds: ^010", "wrong-type", "write a whole number in decimal"),
    ("cpu_seconds: 2", "cpu_seconds: ^0x2", "wrong-type", "write a whole number in decimal"),
    ("cpu_seconds: 2", "cpu_seconds: ^1:30", "wrong-type", "write a whole number in decimal"),
    ("cpu_seconds: 2", "cpu_seconds: ^3.10", "wrong-type", "write a whole number in decimal"),
    ("cpu_seconds: 2", "cpu_seconds: ^yes", "wrong-type", "write a whole number in decimal"),
    ("cpu_seconds: 2", "cpu_seconds: ^1_000", "wrong-type", "write a whole number in decimal"),
    ("cpu_seconds: 2", "cpu_seconds:^", "wrong-type", "write a whole number in decimal"),
    ("allowed_dunders: []", "allowed_dunders:^", "wrong-type", "or [] for an empty one"),
    ("version: 1", "version: ^1.0", "unknown-version", "write 1"),
    ("  - json", "  -^", "bad-name", "full dotted name of one module"),
    ("  - json", "  - ^010", "bad-name", "full dotted name of one module"),
    ("  - json", "  - ^~", "bad-name", "full dotted name of one module"),
    ("  js: json", "  ^1: json", "bad-name", "one Python name"),
    ("  js: json", "  js: ^5", "wrong-type", "in 'single quotes' if it looks like a number"),
    # what the plain form leaves out
    ("  - json", "  - ^&a json", "yaml-feature", "delete it"),
    ("  - json", "  - ^*a", "yaml-feature", "write the value itself"),
    ("  - json", "  - ^!!str json", "yaml-feature", "delete it"),
    ("  js: json", "  ^<<: math", "bad-name", "one Python name"),
    ("identity:", "^---\nidentity:", "yaml-feature", "delete the `---`"),
    # what is no YAML
    ("  - json", "  - ^@json", "yaml-syntax", "'single quotes'"),
    ("  - json", "^\t- json", "yaml-syntax", "indent with spaces"),
    ("  - json", "  - ^'json", "yaml-syntax", "close the quote"),
    ("  - json", '  - ^"json', "yaml-syntax", "close the quote"),
    ("  - json", '  - ^"json\n  math"', "yaml-syntax", "close the quote"),
    ("  - json", "  - ^|\n    json", "yaml-syntax", "on one line"),
    ("  js: json", "  js: ^|\n    json", "yaml-syntax", "write it on one line"),
    ("version: 1", "version: 1\nwarm_up: ^2+2", "wrong-type", ""),
    ("version: 1", "version: 1\n^warm_up: {add: [2+2]}", "bad-edit", "write a list"),
    ("version: 1", "version: 1\nextends: ^none.yaml", "file", "name a policy"),
    ("version: 1", "version: 1\nextends: ^policy.yaml", "file", "name a policy"),
    ("  - math", "   ^- math", "yaml-syntax", "align this line"),
    ("  - math", " ^- math", "yaml-syntax", "align this line"),
    ("  - math", "  ^math", "yaml-syntax", "begin an entry of a list with `- `"),
    ("  - math", "  ^-math", "yaml-syntax", "begin an entry of a list with `- `"),
    ("  cpu_seconds: 2", "  ^cpu_seconds:2", "yaml-syntax", "`name: value`"),
    ("  cpu_seconds: 2", "  ^cpu_seconds 2", "yaml-syntax", "`name: value`"),
    ("  cpu_seconds: 2", " ^cpu_seconds: 2", "yaml-syntax", "align this line"),
    ("  cpu_seconds: 2", "   ^cpu_seconds: 2", "yaml-syntax", "align this line"),
    ("  cpu_seconds: 2", "^cpu_seconds: 2", "yaml-syntax", "align this line"),
    ("  stack_mib: 8", " ^stack_mib: 8", "yaml-syntax", "align this line"),
    ("  stack_mib: 8", "   stack_mib^: 8", "yaml-syntax", "align this line"),
    ("dangerous_names:", "^dangerous_names", "yaml-syntax", "`name: value`"),
    ("dangerous_names:\n  - eval", "# :\n  ^- eval", "yaml-syntax", "begins with `- `"),
    ("version: 1", "^version:1", "yaml-syntax", "`name: value`"),
    ("version: 1", " ^version: 1", "yaml-syntax", "at the left margin"),
    ("  - json", "  ^json", "yaml-syntax", "align this line"),
    ("  - json", "  ^-json", "yaml-syntax", "align this line"),
    ("  - json", " ^- json", "yaml-syntax", "align this line"),
    ("  - json\n  - math", "  ^json\n  # a comment\n  - math", "yaml-syntax", "align this line"),
    ("  first_uid: 5000", "   ^first_uid: 5000", "yaml-syntax", "align this line"),
    ("allowed_dunders: []", "allowed_dunders: ^]", "yaml-syntax", "the bracket"),
    ("dangerous_names:", "^dangerous_names: []", "yaml-syntax", "align this line"),
    ("allowed_dunders: []", "allowed_dunders: ^[", "yaml-syntax", "close the quote or the bracket"),
    ("[sys, gi_frame]", "^[sys, gi_frame", "yaml-syntax", "close"),
    (r"'\bpasswd\b'", r'"\^dpasswd"', "yaml-syntax", "'single quotes'"),
    ("a small policy", "a ^\u202esmall policy", "yaml-syntax", "delete the character"),
    ("a small policy", "a ^\u200bsmall policy", "yaml-syntax", "delete the character"),
    ("  - json", "  -^\u00a0json", "yaml-syntax", "delete the character"),
    ("a small policy", "a ^\x07small policy", "yaml-syntax", "delete the character"),
    # the schema
    ("cpu_seconds", "^cpu_second", "unknown-key", "did you mean cpu_seconds?"),
    ("dangerous_attrs:", "^dangerous_attributes:", "unknown-key", "did you mean dangerous_attrs?"),
    ("  open_files", "  ^wall_seconds: 9\n  open_files", "unknown-key", "under limits"),
    ("  uid_count: 64", "  uid_count: 64\n  ^version: 1", "unknown-key", "to the left margin"),
    ("version: 1", "version: 1\n^qqqq: 1", "unknown-key", "delete it"),
    ("rlimits:\n  cpu_seconds: 2\n", "^rlimits:\n", "missing-key", "add `cpu_seconds:` (Seconds"),
    ("cpu_seconds: 2", "cpu_seconds: ^'2'", "wrong-type", "without quotes"),
    ("cpu_seconds: 2", "cpu_seconds: ^2s", "wrong-type", "write a whole number"),
    ("cpu_seconds: 2", "cpu_seconds: ^[2]", "wrong-type", "write a whole number"),
    ("allowed_dunders: []", "allowed_dunders: ^none", "wrong-type", "write a list"),
    ("  - json", "  - ^7", "bad-name", "full dotted name of one module"),
    ("  - json", "  - json: ^dumps", "wrong-type", "write a list"),
    ("  - json", "  - json: ^[]", "wrong-type", "at least one name"),
    ("  - json", "  - ^{}", "wrong-type", "at least one name"),
    ("  - json", "  - ^{json: [dumps], array: [array]}", "wrong-type", "one module an entry"),
    ("  - json", "  - json: [dumps, ^5]", "bad-name", "one Python name"),
    ("  - json", "  - json: [dumps, ^a.b]", "bad-name", "one Python name"),
    ("  - json", "  - json: [dumps, ^import]", "bad-name", "delete it"),
    ("  - json", "  - json: [dumps, ^dumps]", "duplicate-entry", "delete one of the two"),
    ("  - json", "  - json: [loads]\n  - ^json: [dumps]", "duplicate-entry", "delete one"),
    ("  - json", "  - ^js-on: [dumps]", "bad-name", "full dotted name of one module"),
    ("  - json", "  - ^[json]", "wrong-type", "write text"),
    ("version: 1", "version: ^2", "unknown-version", "write 1"),
    ("version: 1", "version: ^'1'", "unknown-version", "without quotes"),
    ("cpu_seconds: 2", "cpu_seconds: ^0", "out-of-range", "write at least 1"),
    ("cpu_seconds: 2", "cpu_seconds: ^-2", "out-of-range", "write at least 1"),
    ("open_files: 32", "open_files: ^100000", "out-of-range", "write at most 4096"),
    ("first_uid: 5000", "first_uid: ^0", "out-of-range", "write at least 1"),
    ("  - json", "  - ^json, math", "bad-name", "full dotted name of one module"),
    ("  - json", "  - ^jsоn", "bad-name", "full dotted name of one module"),
    ("  - json", "  - ^json.", "bad-name", "full dotted name of one module"),
    ("  - eval", "  - ^eval()", "bad-name", "one Python name"),
    ("  js: json", "  ^j-s: json", "bad-name", "one Python name"),
    ("[sys, gi_frame]", "[sys, ^gi-frame]", "bad-name", "one attribute's name"),
    ("allowed_dunders: []", "allowed_dunders: [^init]", "bad-name", "one method name"),
    ("  - '@python'", "  - ^python", "bad-name", "one absolute path"),
    ("  - '@python'", "  - ^'/'", "bad-name", "one absolute path"),
    (r"'\bpasswd\b'", "^''", "bad-name", "one regular expression"),
    ("- ptrace", "- ^p trace", "unknown-syscall", "did you mean ptrace?"),
    ("'@keyring'", "^keyring-", "unknown-syscall", "did you mean @keyring?"),
    # what the schema cannot say
    ("version: 1", "version: 1\n^version: 1", "duplicate-key", "delete one of the two"),
    ("  stack_mib: 8", "  stack_mib: 8\n  ^stack_mib: 9", "duplicate-key", "delete one of the two"),
    ("  - open", "  - open\n  - ^eval", "duplicate-entry", "delete one of the two"),
    ("  - ptrace", "  - ptrace\n  - ^ptrace", "duplicate-entry", "delete one of the two"),
    ("  - math\n", "  - math\n  - ^import\n", "bad-name", "delete it"),
    ("  js: json", "  ^lambda: json", "bad-name", "choose another"),
    ("  - json", "  - ^Json", "preloaded-not-allowed", "did you mean json?"),
    ("  js: json", "  js: ^jsn", "preloaded-not-allowed", "did you mean json?"),
    ("  js: json", "  js: ^decimal", "preloaded-not-allowed", "add decimal to allowed_imports"),
    (r"'\bpasswd\b'", r'^"\bpasswd\b"', "regex-backspace", "'single quotes'"),
    (r"'\bpasswd\b'", "^'(passwd'", "regex-invalid", "mend it"),
    (r"'\bpasswd\b'", "^'*passwd'", "regex-invalid", "mend it"),
    (r"'\bpasswd\b'", "^'a{99999999999}'", "regex-invalid", "mend it"),
    ("  - seccomp", "  - ^secomp", "unknown-layer", "did you mean seccomp?"),
    (
        "  - seccomp",
        "  - seccomp\n  - ^landlock or uid",
        "unknown-layer",
        "did you mean uid or landlock?",
    ),
    ("  - seccomp", "  - ^seccomp: 1", "wrong-type", "write text"),
    ("required_layers:\n  - no_new_privs", "^required_layers:", "essential-layer", "no_new_privs"),
    ("- ptrace", "- ^ptrce", "unknown-syscall", "did you mean ptrace?"),
    ("'@keyring'", "^'@keyrings'", "unknown-syscall", "did you mean @keyring?"),
    ("prlimit64(set)", "^prlimit64(write)", "unknown-syscall", "did you mean prlimit64(set)?"),
    ("- ptrace", "- ^zzzzzz", "unknown-syscall", "sandbox/kernel/syscalls.ini"),
    ("first_uid: 5000", "first_uid: ^4294967293", "limits-contradict", "lower first_uid"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "rule", "cure"), MISTAKES, ids=ascii)
def test_a_mistake_is_told_once_at_its_place_with_its_cure(
    tmp_path: Path, old: str, new: str, rule: str, cure: str
) -> None:
    marked = changed(old, new)
    before, after = marked.split("^")
    place = (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
    [(line, column, found, told)] = problems(tmp_path, before + after)
    assert (line, column, found) == (*place, rule)
    assert cure in told


@pytest.mark.parametrize(
    ("value", "elsewhere"),
    [("1:30", "90"), ("yes", "true or false"), ("~", "null"), ("3.10", "a fraction")],
)
def test_what_other_readers_of_yaml_would_see_is_told(
    tmp_path: Path, value: str, elsewhere: str
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(changed("cpu_seconds: 2", f"cpu_seconds: {value}"))
    with pytest.raises(PolicyError, match=f"some readers of YAML take it for {elsewhere}"):
        load_policy(path)


def test_what_an_edit_of_the_schema_refuses_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(schema()["properties"]["dangerous_names"], "maxItems", 1)
    assert [found[:3] for found in problems(tmp_path, GOOD)] == [(11, 3, "wrong-type")]


def test_a_contradiction_is_told_at_both_places_each_with_its_own_cure(tmp_path: Path) -> None:
    assert problems(tmp_path, changed("cpu_seconds: 2", "cpu_seconds: 20")) == [
        (19, 16, "limits-contradict", "write at most 8"),
        (27, 17, "limits-contradict", "write at least 20"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "cures"),
    [
        ("wall_seconds: 8", "wall_seconds: 1", ["at most 1", "at least 2"]),
        ("stack_mib: 8", "stack_mib: 600", ["at least 600", "at most 512"]),
        ("prepared_guests: 4", "prepared_guests: 9", ["at least 9", "at most 8"]),
        ("sender_concurrent: 2", "sender_concurrent: 9", ["at least 9", "at most 8"]),
        ("uid_count: 64", "uid_count: 11", ["at most 7", "at most 3", "at least 12"]),
        ("uid_count: 64", "uid_count: 3", ["at least 12"]),
    ],
)
def test_limits_that_contradict_each_other_are_refused(
    tmp_path: Path, old: str, new: str, cures: list[str]
) -> None:
    found = problems(tmp_path, changed(old, new))
    assert [(rule, cure.removeprefix("write ")) for _, _, rule, cure in found] == [
        ("limits-contradict", cure) for cure in cures
    ]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = GOOD
    for old, new in [
        ("  m: math", "  m: mat"),
        ("- ptrace", "- trace"),
        ("version: 1", "version: 3"),
    ]:
        text = text.replace(old, new)
    assert [(line, rule) for line, _, rule, _ in problems(tmp_path, text)] == [
        (2, "unknown-version"),
        (9, "preloaded-not-allowed"),
        (50, "unknown-syscall"),
    ]


@pytest.mark.parametrize("field", json.loads(SCHEMA_FILE.read_text())["else"]["required"])
def test_a_missing_field_is_told_by_name(tmp_path: Path, field: str) -> None:
    text = re.sub(rf"(?m)^{field}:.*\n( .*\n)*", "", GOOD)
    [(line, column, rule, cure)] = problems(tmp_path, text)
    assert (line, column, rule) == (1, 1, "missing-key")
    assert cure.startswith(f"add `{field}:`")


def test_an_error_prints_one_line_a_problem(tmp_path: Path) -> None:
    text = changed("  - json", "  - j-s").replace("version: 1", "version: 2")
    with pytest.raises(PolicyError) as caught:
        load(tmp_path, text)
    file = tmp_path / "policy.yaml"
    assert str(caught.value) == (
        f"{file}:2:10: version 2 is unknown; write 1 without quotes\n"
        f"{file}:4:5: 'j-s' cannot stand in allowed_imports; "
        "write the full dotted name of one module, such as json or collections.abc"
    )
    second = caught.value.findings[1]
    assert (second.field, second.value) == ("allowed_imports[0]", "j-s")


def extended(folder: Path, text: str) -> Policy:
    """A policy in a folder of its own that extends GOOD."""
    (folder / "policy.yaml").write_text(GOOD)
    (folder / "own").mkdir(exist_ok=True)
    (folder / "own/policy.yaml").write_text(f"extends: ../policy.yaml\n{text}")
    return load_policy(folder / "own/policy.yaml")


def test_a_policy_that_extends_another_says_what_is_different(tmp_path: Path) -> None:
    text = """
limits: {wall_seconds: 5}
preloaded: {r: re}
dangerous_attrs: [gi_frame]
allowed_imports:
  add: [cmath, statistics: [mean]]
  remove: [json]
preloaded:
  add: {r: re}
  remove: [js]
"""
    policy = extended(tmp_path, text.replace("preloaded: {r: re}\n", "", 1))
    base = load_policy(tmp_path / "policy.yaml")
    assert dataclasses.asdict(policy.limits) == dataclasses.asdict(base.limits) | {
        "wall_seconds": 5
    }
    assert policy.allowed_imports == {
        "math": None,
        "re": None,
        "cmath": None,
        "statistics": ("mean",),
    }
    assert policy.preloaded == {"m": "math", "r": "re"}
    assert policy.dangerous_attrs == {"gi_frame"}
    assert policy.dangerous_names == base.dangerous_names
    assert list(policy.files) == [tmp_path / "own/policy.yaml", tmp_path / "policy.yaml"]
    assert policy.files[tmp_path / "policy.yaml"] == base.sha256
    assert policy.sha256 not in policy.files.values()


def test_keys_of_a_mapping_replace_one_by_one(tmp_path: Path) -> None:
    policy = extended(tmp_path, "preloaded: {r: re, m: json}\n")
    assert policy.preloaded == {"js": "json", "m": "json", "r": "re"}


def test_extending_goes_on_from_file_to_file(tmp_path: Path) -> None:
    extended(tmp_path, "allowed_dunders: [__init__]\n")
    third = tmp_path / "third.yaml"
    third.write_text("extends: own/policy.yaml\nallowed_dunders: {add: [__eq__]}\n")
    assert load_policy(third).allowed_dunders == {"__init__", "__eq__"}


EXTENDED_MISTAKES = {
    "unknown removal": ("dangerous_names: {remove: [^evl]}", "bad-edit", "delete it"),
    "no edit": ("dangerous_names: {^plus: [evl]}", "bad-edit", "add: [...]"),
    "edit with a scalar": ("dangerous_names: {^add: evl}", "bad-edit", "add: [...]"),
    "added twice": ("dangerous_names: {add: [^eval]}", "duplicate-entry", "delete one"),
    "bad entry": ("dangerous_names: {add: [^e-val]}", "bad-name", "one Python name"),
    "key twice": ("allowed_dunders: []\n^allowed_dunders: []", "duplicate-key", "delete one"),
    "unknown key": ("^dangerous: []", "unknown-key", "did you mean"),
    "bad number": ("limits: {output_bytes: ^0}", "out-of-range", "at least 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", EXTENDED_MISTAKES.values(), ids=EXTENDED_MISTAKES)
def test_a_mistake_is_told_in_the_file_that_makes_it(
    tmp_path: Path, case: tuple[str, str, str]
) -> None:
    text, rule, cure = case
    with pytest.raises(PolicyError) as caught:
        extended(tmp_path, text.replace("^", ""))
    [found] = caught.value.findings
    line = text[: text.index("^")].count("\n") + 2
    column = len(text[: text.index("^")].rpartition("\n")[2]) + 1
    assert (found.path, found.line, found.column) == (
        tmp_path / "own/policy.yaml",
        line,
        column,
    )
    assert found.rule == rule
    assert cure in found.cure


def test_a_contradiction_between_files_is_told_in_both(tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        extended(tmp_path, "limits: {wall_seconds: 1}\n")
    assert [(one.path.parent.name, one.cure) for one in caught.value.findings] == [
        ("own", "write at least 2"),
        (tmp_path.name, "write at most 1"),
    ]


@pytest.mark.parametrize("name", ["none.yaml", "policy.yaml", "/dev/zero", "..", "", "secret.yml"])
def test_what_is_no_policy_cannot_be_extended_and_nothing_of_it_is_shown(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "secret.yml").write_text("token: 'hidden\n")
    own = tmp_path / "policy.yaml"
    own.write_text(f"extends: '{name}'\n")
    with pytest.raises(PolicyError) as caught:
        load_policy(own)
    [found] = caught.value.findings
    assert (found.path, found.line, found.column, found.rule) == (own, 1, 10, "file")
    assert "hidden" not in str(found)


NO_POLICY = {
    "empty": b"",
    "comment alone": b"# nothing\n",
    "no mapping": b"- version",
    "one word": b"version",
    "empty mapping": b"{}",
    "not UTF-8": b"version: 1\nallowed_imports: [\xff]",
    "UTF-16": GOOD.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + GOOD.encode(),
    "NUL": b"version: 1\0",
    "more than a page can show": b"#" * 300_000,
    "deep brackets": b"a: " + b"[" * 50_000,
    "deep lists": b"- " * 50_000,
    "deep mappings": b"".join(b" " * depth + b"a:\n" for depth in range(500)),
    "endless alias": b"a: &a [*a]",
    "list as key": b"? [a]\n: b",
    "mapping as key": b"? {a: b}\n: c",
    "Python object": b"a: !!python/object/apply:os.system [id]",
    "huge number": b"version: " + b"9" * 10_000,
    "huge base 60 number": b"version: " + b"9" + b":59" * 5_000,
    "unknown directive": b"%YAML 9.9\n---\nversion: 1",
}


@pytest.mark.parametrize("raw", NO_POLICY.values(), ids=NO_POLICY)
def test_what_is_no_policy_at_all_is_refused_with_a_place(tmp_path: Path, raw: bytes) -> None:
    for line, column, _, cure in problems(tmp_path, raw):
        assert line >= 1
        assert column >= 1
        assert cure


def test_the_place_of_a_wrong_byte_is_told(tmp_path: Path) -> None:
    raw = "version: 1\nallowed_imports: [é, \udcff]".encode("utf-8", "surrogateescape")
    [(line, column, rule, _)] = problems(tmp_path, raw)
    assert (line, column, rule) == (2, 22, "file")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path / "none", tmp_path, tmp_path / "no\0name", pipe, Path("/dev/zero")):
        with pytest.raises(PolicyError, match="cannot be read: "):
            load_policy(path)


def test_the_repositorys_policy_is_good_and_its_schema_agrees() -> None:
    policy = load_policy(ROOT / "policy.yaml")
    document = parse_document(ROOT / "policy.yaml", (ROOT / "policy.yaml").read_bytes())
    schema = json.loads(SCHEMA_FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document.value, schema)
    first = document.text.splitlines()[0]
    assert first == f"# yaml-language-server: $schema={SCHEMA_FILE.relative_to(ROOT)}"
    assert policy.path == ROOT / "policy.yaml"


def test_every_part_of_the_schema_is_described_and_closed() -> None:
    schema = json.loads(SCHEMA_FILE.read_text())
    parts = [schema]
    while parts:
        part = parts.pop()
        parts += part.get("properties", {}).values()
        parts += [part[key] for key in ("items", "propertyNames") if key in part]
        assert part.get("$ref") or part["description"]
        if "properties" in part:
            assert part["additionalProperties"] is False


def test_every_field_is_required_but_for_what_allows_and_forbids_nothing() -> None:
    schema = json.loads(SCHEMA_FILE.read_text())
    whole = schema["else"]  # of a policy that extends no other
    assert set(whole["required"]) == set(schema["properties"]) - {"prelude", "warm_up", "extends"}
    for name, part in whole["properties"].items():
        fields = set(schema["properties"][name]["properties"])
        assert set(part["required"]) == fields - {"input_bytes", "picture_bytes"}


def test_an_editor_is_offered_what_the_project_has() -> None:
    fields = json.loads(SCHEMA_FILE.read_text())["properties"]
    policy = load_policy(ROOT / "policy.yaml")
    for group in ("rlimits", "limits", "identity"):
        values = dataclasses.asdict(getattr(policy, group))
        for name, about in fields[group]["properties"].items():
            assert about.get("default", values[name]) == values[name], name
    calls = {name for table in syscalls.TABLES.values() for name in table}
    offered = fields["denied_syscalls"]["items"]["enum"]
    assert set(offered) == calls | syscalls.GROUPS.keys() | seccomp.CONDITIONS.keys()
    assert set(fields["required_layers"]["items"]["enum"]) == {*layers.CURES, *layers.ESSENTIAL}
    for about in fields.values():
        assert about["markdownDescription"].startswith(about["description"])


def test_the_schema_and_the_dataclasses_name_the_same_fields() -> None:
    schema = json.loads(SCHEMA_FILE.read_text())["properties"]
    fields = {field.name for field in dataclasses.fields(Policy)} - {"path", "files", "sha256"}
    assert set(schema) - {"extends"} == fields
    for name, group in (("rlimits", Rlimits), ("limits", Limits), ("identity", Identity)):
        assert set(schema[name]["properties"]) == {f.name for f in dataclasses.fields(group)}


LINES = GOOD.splitlines(keepends=True)
SCRAPS = st.sampled_from(
    [
        *"-:'\"[]{}#|>%@`\\~? \t\n\0\u2028é",
        "&a",
        "*a",
        "!!int",
        "<<:",
        "on",
        "010",
        "1:30",
        "---",
        "...",
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = "".join(draw(st.permutations(LINES)) if draw(st.booleans()) else LINES)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 6)))
        text = text[:start] + draw(SCRAPS | st.text(max_size=3)) + text[end:]
    return text


@settings(max_examples=100, deadline=None)
@given(mutated() | st.text(max_size=80))
def test_whatever_the_text_only_a_policy_error_escapes(text: str) -> None:
    document = parse_document(Path("policy.yaml"), text.encode("utf-8", "surrogatepass"))
    try:
        policy = parse_policy(document)
    except PolicyError as refused:
        found = refused.findings
    else:
        assert policy.version == 1
        jsonschema.validate(document.value, schema())
        return
    lines = text.count("\n") + text.count("\r") + 1
    assert found
    for problem in found:
        assert 1 <= problem.line <= lines
        assert problem.column >= 1
        assert problem.cure
        assert "\n" not in str(problem)


@settings(max_examples=100, deadline=None)
@given(mutated())
def test_a_parser_in_c_saves_time_and_changes_nothing(text: str) -> None:
    def read() -> tuple[object, ...]:
        document = parse_document(Path("policy.yaml"), text.encode("utf-8", "surrogatepass"))
        places = {at: document.place(at) for at in document.values}
        return document.value, places, document.findings

    with_libyaml = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "__with_libyaml__", False)
        assert read() == with_libyaml
