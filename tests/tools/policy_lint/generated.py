"""Edits that nobody has thought of, of each policy that is shipped.

They are drawn from the schema and from the files' own lines; `edits()` has one edit at a time. Of
the policy with libraries, whose start takes seconds, there are some where EXAMPLES asks for many.
"""

import importlib.util
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from sandbox.policy.mistakes import schema

ROOT = Path(__file__).resolve().parents[3]
POLICIES = [ROOT / name for name in ("policy.yaml", "sandbox/policies/strict.yaml")]
if os.environ.get("EXAMPLES") and importlib.util.find_spec("sympy"):
    POLICIES = [*POLICIES * 3, ROOT / "sandbox/policies/maths.yaml"]
FIELDS: dict[str, Any] = schema()["properties"]
GROUPS = ("rlimits", "limits", "identity")
NUMBERS = {name: about for group in GROUPS for name, about in FIELDS[group]["properties"].items()}
LISTS = [name for name, about in FIELDS.items() if "array" in about.get("type", ())]

# What people and mistakes put into a list, as YAML, parted by bars.
_ENTRIES = {
    "allowed_imports": """html|csv|os.path|nosuch|sqlite3|referencing|tkinter|math: json.tool|on
        |this|os|antigravity|_thread|collections.abc|math: [sin]|time: [sleep]|json: []|re._parser
        |colorsys|xml.dom|nosuch.child|math.child|sys|enum: [nosuch]|py_compile|graphlib|fib ber
        |concurrent.futures|string.templatelib|class|numpy|__main__|test|idlelib|sre_parse|..x""",
    "prelude": """x = 1|def double(x): return 2 * x|1/0|import os|from math import *|import html
        |while True: pass|print = 1|raise SystemExit|class A: pass|math = 1|y = [0]*10**10|(|''
        |"'os.system'"|x = ().__class__|import json.tool|assert 0|'1' * 70000|print('x' * 10**6)
        |input()|from json import *|dt.datetime.now()|import nosuch|[f() for f in 3]""",
    "dangerous_names": """str|evl|super|print|Decimal|math|x|int|object|class|None|repr|quit|len|A
        |__build_class__|Exception|BaseException|isinstance|SystemExit|type|ValueError|sorted""",
    "dangerous_attrs": """now|append|f_bakc|sqrt|string.digits|sys|join|__doc__|a.b.c|math.pi|x|keys
        |json.loads|__init__|upper|real|_x|args|write|__name__|format""",
    "allowed_dunders": "__del__|__inti__|__getattr__|__self__|__aiter__|init|__x|__class__|__new__",
    "blocked_words": r"""'\bx\b'|'(a+)+;'|'.*'|'\bsocket\.socket\b'|'['|'\\bos\\.'|'z{3}'|print|'1'
        |''|"\bos\b"|'(?i)OS\.'|'(?<=a+)b'|'\d+'|'^$'|'(?P<a>b)(?P<a>c)'|'x{,70000}'|'\p{L}'|'(?!)'
        |'(?x) a b'|'[a-'|'\1'|'((((((((((zq))))))))))'|'\N{BULLET}q'""",
    "required_layers": "uid|landlock|namespaces|cgroup|secomp|uid or landlock|landlock or uid|all",
    "readable_paths": """/etc|/usr/lib|/usr/share/nosuch|/opt|relative|'@python3'|/|''|/usr/lib/x*
        |/dev/null|~|/usr/share/zoneinfo/UTC|/proc/self|'@'|/usr/share/zoneinfo/|/usr/lib/../lib""",
    "denied_syscalls": """mmap|fcntl|openat|getpid|close|futex|brk|ptrce|read|'@nosuch'|exit|write
        |ioctl(unsafe)|sched_yield|exit_group|getrandom|madvise|clock_gettime|prlimit64|'@mount'
        |wait4|rt_sigreturn|munmap|mprotect|dup|pipe2|epoll_wait|gettid|set_robust_list|rseq
        |arch_prctl|time|sendto|recvmsg|poll|select|getuid|geteuid|nanosleep|mremap|newfstatat|lseek
        |sigaltstack|rt_sigaction|rt_sigprocmask|fstat|getdents64|uname|sysinfo|exit(unsafe)|'*'
        |mmap(shared)|futex(shared)|times|umask|getcwd|close_range|@spawn|pread64|tgkill|socket""",
    "warm_up": """2+2|1/0|y = [0]*10**10|open('x')|while True: pass|import html|print('x' * 10**6)
        |raise KeyboardInterrupt|exec('1')|math.nosuch(2)|'x'|()|import numbers.nosuch
        |import re; re.compile('(a+)+;').search('a' * 40)|(i for i in ())""",
}
# Values of another kind than a field takes, and what passes for a number elsewhere.
_ODD = """~|null|true|on|no|''|'2'|"2"|2.0|1e3|010|0x10|0b1|1_000|1:30|+2|-1|-0|0|00|.inf|[]|{}|[1]
    |{a: 1}|[a, b]|two|&a 2|*a|!!int 2|!x 2||| 2|> 2|2 # two|2#|"2|'|@|%|2 2|99999999999999999999
    |2026-12-01|- 1|? 1|9223372036854775808|4294967296|2147483648|65536|1000000|2,5|1 MiB"""
_CHARACTERS = " \t'\"#:-,[]{}&*!|>%@`\\\u00a0é\0\x1b\u200b?=~"

Lines = list[str]
Change = Callable[[Lines], st.SearchStrategy[Lines]]


class Edit(NamedTuple):
    """The edited text of a file, which stays where it was, and the lines that are not as before.

    Where lines are gone, `lines` has the one that is there now; `changed` is what there was and is.
    """

    path: Path
    text: str
    lines: range
    changed: str


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    """One edit of one of the policies."""
    path = draw(st.sampled_from(POLICIES))
    before = path.read_text().splitlines(keepends=True)
    edited = "".join(draw(draw(st.sampled_from(_RARE + 3 * _USUAL))(before)))
    after = edited.splitlines(keepends=True)
    most = min(len(before), len(after))
    start = next((n for n in range(most) if before[n] != after[n]), most)
    same = next((n for n in range(most - start) if before[-1 - n] != after[-1 - n]), most - start)
    changed = [*before[start : len(before) - same], *after[start : len(after) - same]]
    lines = range(start + 1, max(len(after) - same, start + 1) + 1)
    return Edit(path, edited, lines, "".join(changed))


def _parted(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from([one.strip() for one in text.split("|") if one.strip()])


_odd = _parted(_ODD)


def _entries(field: str) -> st.SearchStrategy[str]:
    return _parted(_ENTRIES[field]) if field in _ENTRIES else _odd


def _numbers(name: str) -> st.SearchStrategy[str]:
    """Values of a number: near the usual one, at its bounds and beyond, and of other kinds."""
    about = NUMBERS[name]
    least, most, usual = about["minimum"], about["maximum"], about["default"]
    near = st.integers(usual // 4, usual * 4 + 4)
    ends = st.sampled_from([least - 1, least, least + 1, most - 1, most, most + 1])
    values = near, near, near, ends, st.integers(least, most)
    return st.one_of(*(value.map(str) for value in values), _odd)


def _at_a_line(change: Callable[[str], st.SearchStrategy[str]]) -> Change:
    """The change of a line that is no comment; it may become none, or several."""

    def changed(lines: Lines) -> st.SearchStrategy[Lines]:
        said = [n for n, line in enumerate(lines) if line.strip() and line.lstrip()[0] != "#"]
        return st.sampled_from(said).flatmap(
            lambda n: change(lines[n]).map(lambda new: [*lines[:n], new, *lines[n + 1 :]])
        )

    return changed


def _value(line: str) -> st.SearchStrategy[str]:
    """Another value: of a number by its name, of an entry whatever any list might hold."""
    name, colon, _ = line.partition(":")
    if name.strip() in NUMBERS:
        return _numbers(name.strip()).map(lambda new: f"{name}: {new}\n")
    if colon and not line.lstrip().startswith("-"):
        return _odd.map(lambda new: f"{name}: {new}\n")
    indent = line[: len(line) - len(line.lstrip())]
    every = st.sampled_from(LISTS).flatmap(_entries)
    return (every | _odd).map(lambda new: f"{indent}- {new}\n")


def _key(line: str) -> st.SearchStrategy[str]:
    found = re.match(r"(\s*)(\w+):(.*)", line, re.DOTALL)
    if not found:
        return st.just(line.replace("- ", "-", 1))
    indent, name, rest = found.groups()
    misspelt = [name[:-1], name + "s", name.upper(), name.replace("_", "-")]
    keys = st.sampled_from([*FIELDS, *NUMBERS, "add", "remove", *misspelt])
    return keys.map(lambda new: f"{indent}{new}:{rest}")


def _character(line: str) -> st.SearchStrategy[str]:
    """One character gone, twice, in the other case, or another beside or in place of it."""

    def changed(at: int) -> st.SearchStrategy[str]:
        head, this, tail = line[:at], line[at], line[at + 1 :]
        instead = ["", this * 2, this.swapcase(), *_CHARACTERS]
        return st.sampled_from([*instead, *(this + one for one in _CHARACTERS)]).map(
            lambda new: head + new + tail
        )

    return st.integers(0, len(line) - 1).flatmap(changed)


def _field(lines: Lines) -> st.SearchStrategy[Lines]:
    """A field gone, or with another value in place of all of it."""
    heads = [n for n, line in enumerate(lines) if re.match(r"\w", line)]

    def changed(n: int) -> st.SearchStrategy[Lines]:
        stop = next((m for m in heads if m > n), len(lines))
        name = lines[n].partition(":")[0]
        some = st.lists(_entries(name), min_size=1, max_size=3).map(
            lambda new: "".join([f"{name}:\n", *(f"  - {one}\n" for one in new)])
        )
        new = st.just("") | _odd.map(lambda one: f"{name}: {one}\n") | some
        return new.map(lambda one: [*lines[:n], one, *lines[stop:]])

    return st.sampled_from(heads).flatmap(changed)


def _put(lines: Lines, verb: str, field: str, entry: str) -> Lines:
    """An entry more in a list, or in what a file adds to, or removes from, the one it extends."""
    heads = [n for n, line in enumerate(lines) if line.startswith(f"{field}:")]
    extends = any(line.startswith("extends:") for line in lines)
    if not heads:
        edit = f"{field}:\n  {verb}:\n    - {entry}\n"
        return [*lines, edit if extends else f"{field}: [{entry}]\n"]
    head = lines[heads[0]].replace(" []", "")
    return [*lines[: heads[0]], head, f"  - {entry}\n", *lines[heads[0] + 1 :]]


def _added(lines: Lines) -> st.SearchStrategy[Lines]:
    return st.sampled_from(LISTS).flatmap(
        lambda field: _entries(field).map(lambda entry: _put(lines, "add", field, entry))
    )


def _removed(lines: Lines) -> st.SearchStrategy[Lines]:
    if not any(line.startswith("extends:") for line in lines):
        return _at_a_line(lambda _: st.just(""))(lines)
    lists = [
        (match[1], entry)
        for match in re.finditer(r"(?m)^(\w+):\n((?:  .*\n)+)", (ROOT / "policy.yaml").read_text())
        for entry in re.findall(r"(?m)^  - (\S+)$", match[2])
    ]
    return st.sampled_from(lists).map(lambda both: _put(lines, "remove", *both))


def _overridden(lines: Lines) -> st.SearchStrategy[Lines]:
    """Another number, also of a group that the file does not have yet."""
    names = [(group, name) for group in GROUPS for name in FIELDS[group]["properties"]]

    def put(group: str, name: str, value: str) -> Lines:
        line = f"  {name}: {value}\n"
        if there := [n for n, one in enumerate(lines) if one.startswith(f"  {name}:")]:
            return [*lines[: there[0]], line, *lines[there[0] + 1 :]]
        if heads := [n for n, one in enumerate(lines) if one.startswith(f"{group}:")]:
            return [*lines[: heads[0] + 1], line, *lines[heads[0] + 1 :]]
        return [*lines, f"{group}:\n", line]

    return st.sampled_from(names).flatmap(
        lambda both: _numbers(both[1]).map(lambda value: put(*both, value))
    )


_INDENTS = ["", " ", "  ", "   ", "    ", "\t", "- "]
_RARE: list[Change] = [  # most of these the loader refuses
    _at_a_line(lambda line: st.just(line * 2)),
    _at_a_line(lambda line: st.sampled_from(_INDENTS).map(lambda one: one + line.lstrip())),
    _at_a_line(_key),
    _at_a_line(_character),
    _field,
]
_USUAL: list[Change] = [
    _at_a_line(lambda _: st.just("")),
    _at_a_line(_value),
    _added,
    _removed,
    _overridden,
]
