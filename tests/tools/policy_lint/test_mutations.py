"""Single edits of policy.yaml: mistakes are found where they are, harmless edits find nothing."""

import re
from typing import NamedTuple

import pytest

from tests.tools.policy_lint.edits import POLICY, QUICK, edited, follow, subject
from tools.policy_lint import lint
from tools.policy_lint.rules import rules


class Mistake(NamedTuple):
    """`new` replaces `old`; the finding is at the ⌖ in it, or at the line that begins with `at`."""

    rule: str
    old: str
    new: str
    at: str = ""


IMPURE = """
    os os.path pathlib io subprocess socket ctypes inspect gc threading pickle json.tool
    importlib.util _socket asyncio numpy sandbox.policy sympy urllib.request
"""
NAMES = """
    __import__ breakpoint compile eval exec open help license credits exit getattr setattr
    delattr vars dir globals locals builtins memoryview
"""
ATTRS = """
    ag_frame cr_frame cr_origin f_back f_builtins f_globals f_locals gi_code gi_frame gi_yieldfrom
    tb_frame tb_next co_code co_consts mro format_map _add_member_ __globals__
"""
DENIED = re.findall(r"  - '@\w[\w-]*'\n|  - \w+\(\w+\)\n", POLICY.split("denied_syscalls:")[1])

QUICK_MISTAKES = [
    # structure: the rest of it is in tests/sandbox/policy/test_loader.py
    Mistake("file", POLICY, "⌖# nothing"),
    Mistake("yaml-syntax", "'@network-io'", "⌖@network-io"),
    Mistake("yaml-syntax", "  - json\n", "   ⌖- json\n"),
    Mistake("yaml-syntax", "  - heapq\n", "   ⌖- heapq\n"),
    Mistake("yaml-syntax", "  - base64:\n", "", at="      [a85decode"),
    Mistake("yaml-syntax", "warm_up:", "⌖[arm_up:"),
    Mistake("yaml-syntax", "  cpu_seconds: 2\n", "  ⌖cpu_seconds:2\n"),
    Mistake("yaml-feature", "  - json\n", "  - ⌖&j json\n"),
    Mistake("yaml-feature", "  - json\n", "  - ⌖!!str json\n"),
    Mistake("wrong-type", "cpu_seconds: 2", "cpu_seconds: ⌖010"),
    Mistake("wrong-type", "cpu_seconds: 2", "cpu_seconds: ⌖1:30"),
    Mistake("wrong-type", "cpu_seconds: 2", "cpu_seconds:⌖"),
    Mistake("wrong-type", "warm_up: []", "warm_up:⌖"),
    Mistake("bad-edit", "warm_up: []", "⌖warm_up: {add: [2+2]}"),
    Mistake("wrong-type", "cpu_seconds: 2", "cpu_seconds: ⌖1e1"),
    Mistake("wrong-type", "cpu_seconds: 2", "cpu_seconds: ⌖2;"),
    Mistake("wrong-type", "output_bytes: 65536", "output_bytes: ⌖65_536"),
    Mistake("wrong-type", "- copy: [Error, copy, deepcopy]", "- copy: ⌖[]"),
    Mistake("wrong-type", "- copy: [Error, copy, deepcopy]", "- copy: ⌖(Error, copy)"),
    Mistake("yaml-syntax", "  cpu_seconds: 2\n", "⌖<<<<<<< HEAD\n  cpu_seconds: 2\n"),
    Mistake("yaml-syntax", "rlimits:\n", "⌖rlimits\n"),
    Mistake("yaml-syntax", "  cpu_seconds: 2\n", "  ⌖cpu_seconds = 2\n"),
    Mistake("yaml-syntax", "  - eval\n", "  - ev⌖\u200bal\n"),
    Mistake("bad-name", "  - eval\n", "  - ⌖ev\u0430l\n"),
    Mistake("bad-name", "  - eval\n", "  - ⌖eval,\n"),
    Mistake("bad-name", "  - copy: [Error", "  - copy: [⌖Error deepcopy"),
    Mistake("yaml-feature", "version: 1\n", "version: 1\n⌖---\n"),
    Mistake("file", "version: 1\n", "extends: ⌖nothing.yaml\nversion: 1\n"),
    Mistake("duplicate-key", "rlimits:\n", "rlimits:\n  cpu_seconds: 1\n", at="  cpu_seconds: 2"),
    Mistake("duplicate-entry", "  - json\n", "  - json\n  - ⌖json\n"),
    Mistake("duplicate-entry", "  - eval\n", "  - eval\n  - ⌖eval\n"),
    Mistake("unknown-key", "cpu_seconds: 2", "⌖cpu_second: 2"),
    Mistake("unknown-key", "rlimits:\n", "rlimits:\n  ⌖max_cpu: 4\n"),
    Mistake("missing-key", "  cpu_seconds: 2\n", "", at="rlimits"),
    Mistake("wrong-type", "cpu_seconds: 2", "cpu_seconds: ⌖'2'"),
    Mistake("unknown-version", "version: 1", "version: ⌖2"),
    Mistake("out-of-range", "cpu_seconds: 2", "cpu_seconds: ⌖0"),
    Mistake("out-of-range", "first_uid: 5000", "first_uid: ⌖0"),
    Mistake("out-of-range", "prepared_guests: 4", "prepared_guests: ⌖0"),
    Mistake("bad-name", "  - json\n", "  - ⌖json, math\n"),
    Mistake("unknown-layer", "  - seccomp\n", "  - ⌖secomp\n"),
    Mistake("essential-layer", "  - seccomp\n", "", at="required_layers"),
    Mistake("essential-layer", "  - no_new_privs\n", "", at="required_layers"),
    Mistake("unknown-syscall", "'@network-io'", "⌖'@network'"),
    Mistake("unknown-syscall", "- fcntl(unsafe)", "- ⌖fcntl(safe)"),
    Mistake("unknown-syscall", "- fcntl(unsafe)", "- fcntl(unsafe)\n  - ⌖ptrce"),
    Mistake("limits-contradict", "cpu_seconds: 2", "cpu_seconds: ⌖20"),
    Mistake("limits-contradict", "wall_seconds: 8", "wall_seconds: ⌖1"),
    Mistake("limits-contradict", "prepared_guests: 4", "prepared_guests: ⌖40"),
    Mistake("limits-contradict", "sender_concurrent: 2", "sender_concurrent: ⌖20"),
    Mistake("limits-contradict", "uid_count: 64", "uid_count: ⌖5"),
    Mistake("limits-contradict", "concurrent_guests: 4", "concurrent_guests: ⌖400"),
    Mistake("limits-contradict", "stack_mib: 8", "stack_mib: ⌖1000"),
    Mistake("preloaded-not-allowed", "dt: datetime", "dt: ⌖datetim"),
    Mistake("preloaded-not-allowed", "dt: datetime", "dt: datetime\n  ⌖os: os"),
    Mistake("preloaded-not-allowed", "  - math\n", "  - ⌖mth\n"),
    Mistake("regex-invalid", "blocked_words:\n", "blocked_words:\n  - ⌖'(passwd'\n"),
    Mistake("regex-backspace", "blocked_words:\n", 'blocked_words:\n  - ⌖"\\bos\\b"\n'),
    # modules
    Mistake("import-twice", "  - json\n", "  - json\n  - ⌖json: [dumps]\n"),
    Mistake("import-missing", "  - statistics\n", "  - ⌖statistic\n"),
    Mistake("import-missing", "  - math\n", "  - math\n  - ⌖nosuchmodule\n"),
    Mistake("import-missing", "  - cmath\n", "  - ⌖Cmath\n"),
    *(
        Mistake("import-impure", "  - math\n", f"  - math\n  - ⌖{name}\n")
        for name in IMPURE.split()
    ),
    Mistake("import-unreviewed", "  - math\n", "  - math\n  - ⌖referencing\n"),
    Mistake("preloaded-shadows", "dt: datetime", "dt: datetime\n  ⌖sum: math"),
    Mistake("preloaded-unusable", "dt: datetime", "dt: datetime\n  ⌖attrgetter: operator"),
    Mistake("preloaded-unusable", "dt: datetime", "dt: datetime\n  ⌖__builtins__: math"),
    # names, attributes, methods
    *(Mistake("name-missing", f"  - {name}\n", "", at="dangerous_names") for name in NAMES.split()),
    *(Mistake("attr-missing", f"  - {name}\n", "", at="dangerous_attrs") for name in ATTRS.split()),
    Mistake("honest-refused", "  - eval\n", "  - eval\n  - ⌖print\n"),
    Mistake("honest-refused", "  - eval\n", "  - eval\n  - ⌖len\n"),
    Mistake("honest-refused", "  - f_back\n", "  - f_back\n  - ⌖append\n"),
    Mistake("honest-refused", "  - f_back\n", "  - f_back\n  - ⌖sqrt\n"),
    Mistake("honest-refused", "  - f_back\n", "  - f_back\n  - ⌖splitlines\n"),
    Mistake("honest-refused", "  - eval\n", "  - eval\n  - ⌖enumerate\n"),
    Mistake("honest-refused", "  - eval\n", "  - eval\n  - ⌖random\n"),
    Mistake("honest-refused", "  - eval\n", "  - eval\n  - ⌖input\n"),
    Mistake("honest-refused", "  - f_back\n", "  - f_back\n  - ⌖statistics.mean\n"),
    Mistake("dunder-unsafe", "  - __init__\n", "  - __init__\n  - ⌖__class__\n"),
    Mistake("dunder-unsafe", "  - __init__\n", "  - __init__\n  - ⌖__subclasshook__\n"),
    Mistake("dunder-unknown", "  - __init__\n", "  - __init__\n  - ⌖__lenght__\n"),
    Mistake("dunder-unknown", "  - __init__\n", "  - __init__\n  - ⌖__weakref__\n"),
    Mistake("dunder-unknown", "  - __init__\n", "  - __init__\n  - ⌖__rper__\n"),
    Mistake("dunder-unknown", "  - __init__\n", "  - __init__\n  - ⌖__self__\n"),
    Mistake("dunder-unknown", "  - __init__\n", "  - __init__\n  - ⌖__nonzero__\n"),
    Mistake("dunder-unsafe", "  - __init__\n", "  - __init__\n  - ⌖__del__\n"),
    Mistake("dunder-unsafe", "  - __init__\n", "  - __init__\n  - ⌖__getattribute__\n"),
    # words
    Mistake("word-blocks", "blocked_words:\n", "blocked_words:\n  - ⌖'id'\n"),
    Mistake("word-blocks", "blocked_words:\n", "blocked_words:\n  - ⌖'\\bprint\\b'\n"),
    Mistake("word-blocks", "blocked_words:\n", "blocked_words:\n  - ⌖with\n"),
    Mistake("word-blocks", "blocked_words:\n", "blocked_words:\n  - ⌖'decimal'\n"),
    Mistake("word-blocks", "blocked_words:\n", "blocked_words:\n  - ⌖'object'\n"),
    Mistake("word-blocks", "blocked_words:\n", "blocked_words:\n  - ⌖'.'\n"),
    Mistake("word-slow", "blocked_words:\n", "blocked_words:\n  - ⌖'(z+)+;'\n"),
    Mistake("word-slow", "blocked_words:\n", "blocked_words:\n  - ⌖'os\\.(\\w+\\s?)*;'\n"),
    Mistake("word-slow", "blocked_words:\n", "blocked_words:\n  - ⌖'(qx|q?x)*;'\n"),
    Mistake("word-slow", "blocked_words:\n", "blocked_words:\n  - ⌖'zq(?=(\\w+)+;)'\n"),
    Mistake("word-slow", "blocked_words:\n", "blocked_words:\n  - ⌖'(zq)\\1x'\n"),
    Mistake("word-slow", "blocked_words:\n", "blocked_words:\n  - ⌖'.*zq'\n"),
    Mistake("regex-invalid", "blocked_words:\n", "blocked_words:\n  - ⌖'\\h+zq'\n"),
    Mistake("word-blocks", "blocked_words:\n", "blocked_words:\n  - ⌖'(zq)?'\n"),
    Mistake("word-blocks", "blocked_words:\n", "blocked_words:\n  - ⌖'\\bTrue\\b'\n"),
    Mistake("word-blocks", "blocked_words:\n", "blocked_words:\n  - ⌖'\\bi\\b'\n"),
    Mistake("word-never", "blocked_words:\n", "blocked_words:\n  - ⌖'\\\\bos\\\\.'\n"),
    Mistake("word-never", "blocked_words:\n", "blocked_words:\n  - ⌖'a^b'\n"),
    Mistake("word-never", "blocked_words:\n", "blocked_words:\n  - ⌖'$socket'\n"),
    Mistake("word-never", "blocked_words:\n", "blocked_words:\n  - ⌖'(?!)'\n"),
    Mistake("word-doubtful", "blocked_words:\n", "blocked_words:\n  - ⌖'[[q]zq]'\n"),
    # limits that the numbers alone tell of
    Mistake("limit-loose", "file_size_bytes: 0", "file_size_bytes: ⌖1048576"),
    Mistake("limit-loose", "core_bytes: 0", "core_bytes: ⌖1"),
    Mistake("limit-loose", "processes: 0", "processes: ⌖10"),
    Mistake("limit-loose", "open_files: 32", "open_files: ⌖4096"),
    Mistake("limit-loose", "source_bytes: 16384", "source_bytes: ⌖1000000"),
    Mistake("out-of-range", "output_bytes: 65536", "output_bytes: ⌖6553600"),
    Mistake("limit-loose", "sender_per_minute: 60", "sender_per_minute: ⌖60000"),
    Mistake("limit-loose", "zygote_minutes: 60", "zygote_minutes: ⌖60000"),
    Mistake("memory-overcommit", "address_space_mib: 512", "address_space_mib: ⌖1000000"),
    Mistake("wait-too-long", "wall_seconds: 8", "wall_seconds: ⌖80"),
    Mistake("wait-too-long", "queue_seconds: 4", "queue_seconds: ⌖60"),
    # system calls
    *(Mistake("syscall-missing", entry, "", at="denied_syscalls") for entry in DENIED),
    Mistake("syscall-missing", "  - '@aio'\n", "  - io_setup\n", at="denied_syscalls"),
    Mistake("syscall-missing", "  - '@mount'\n", "  - ⌖mount\n"),
    Mistake("unknown-syscall", "'@mount'", "⌖mounts"),
    Mistake("syscall-one-machine", "  - fcntl(unsafe)\n", "  - fcntl(unsafe)\n  - ⌖time\n"),
    # identity, layers, paths
    Mistake("uid-taken", "first_uid: 5000", "first_uid: ⌖1"),
    Mistake("uid-taken", "first_uid: 5000", "first_uid: ⌖65500"),
    Mistake("uid-taken", "uid_count: 64", "uid_count: ⌖100000"),
    Mistake("uid-reserved", "first_uid: 5000", "first_uid: ⌖61200"),
    Mistake("layers-insecure", "  - uid or landlock\n", "", at="required_layers"),
    Mistake("path-exposes", "/usr/share/zoneinfo", "⌖/etc"),
    Mistake("path-exposes", "/usr/share/zoneinfo", "⌖/proc/self"),
    Mistake("path-exposes", "/usr/share/zoneinfo", "⌖/secrets"),
    Mistake("path-exposes", "/usr/share/zoneinfo", "⌖/usr"),
    Mistake("path-exposes", "/usr/share/zoneinfo", "⌖/usr/../etc"),
    Mistake("path-exposes", "/usr/share/zoneinfo", "⌖/usr/share"),
    Mistake("path-exposes", "/usr/share/zoneinfo", "⌖/usr/local/etc"),
    Mistake("path-exposes", "/usr/share/zoneinfo", "⌖/usr/share/zoneinfo/../../../etc"),
    Mistake("path-exposes", "/usr/share/zoneinfo", "⌖/var/lib"),
    Mistake("path-missing", "/usr/share/zoneinfo", "⌖/usr/share/zonefino"),
    # acceptances
    Mistake(
        "acceptance-unused",
        "  - math\n",
        "  - math\n  - os.path  # accept import-impure: a ⌖# accept import-unreviewed: b\n",
    ),
    Mistake("acceptance-unused", "  - json\n", "  - json  ⌖# accept import-impure: checked\n"),
    Mistake("acceptance-unreasoned", "  - json\n", "  - json  ⌖# accept import-impure\n"),
    Mistake("acceptance-unreasoned", "  - json\n", "  - json  ⌖# accept import-impur: checked\n"),
    Mistake(
        "acceptance-unreasoned",
        "dangerous_names:\n",
        "dangerous_names:  ⌖# accept name-missing: no harm\n",
    ),
]  # fmt: skip

SLOW_MISTAKES = [
    Mistake(
        "import-exposes",
        "  - _get_mixins_\n  - attrgetter\n",
        "  - _get_mixins_\n",
        "  - operator\n",
    ),
    Mistake("import-exposes", "  - UserDict\n", "", at="  - collections\n"),
    Mistake("import-lacks", "       ItemsView, Iterable,", "       ⌖ItemsVew, Iterable,"),
    Mistake("name-unknown", "  - eval\n", "  - eval\n  - ⌖evl\n"),
    Mistake("attr-unknown", "  - f_back\n", "  - f_back\n  - ⌖f_bakc\n"),
    Mistake("attr-unknown", "- statistics.itemgetter", "- ⌖statistic.itemgetter"),
    Mistake("limit-too-small", "address_space_mib: 512", "address_space_mib: ⌖32"),
    Mistake("limit-too-small", "output_bytes: 65536", "output_bytes: ⌖100"),
    Mistake("limit-too-small", "source_bytes: 16384", "source_bytes: ⌖100"),
    Mistake("attr-refuses", "  - f_back\n", "  - f_back\n  - ⌖now\n"),
    Mistake("attr-refuses", "  - f_back\n", "  - f_back\n  - ⌖loads\n"),
    Mistake("attr-refuses", "  - f_back\n", "  - f_back\n  - ⌖heappush\n"),
    Mistake("attr-refuses", "  - f_back\n", "  - f_back\n  - ⌖b64encode\n"),
    Mistake("warm-up-refused", "warm_up: []", "warm_up: [⌖import os]"),
    Mistake("warm-up-refused", "warm_up: []", "warm_up:\n  - 2+2\n  - ⌖import os"),
    Mistake("syscall-needed", "  - fcntl(unsafe)\n", "  - fcntl(unsafe)\n  - ⌖exit_group\n"),
    Mistake("warm-up-fails", "warm_up: []", "warm_up:\n  - 2+2\n  - ⌖1/0"),
    Mistake("syscall-needed", "  - fcntl(unsafe)\n", "  - fcntl(unsafe)\n  - ⌖mmap\n"),
    Mistake("syscall-needed", "  - fcntl(unsafe)\n", "  - fcntl(unsafe)\n  - ⌖read\n"),
]

HARMLESS = {
    "nothing": ("version: 1", "version: 1"),
    "a comment": ("  - json\n", "  - json  # for people who paste data\n"),
    "a comment on its own line": ("  - json\n", "  # for people who paste data\n  - json\n"),
    "blank lines": ("preloaded:\n", "\n\npreloaded:\n"),
    "quotes": ("  - json\n", "  - 'json'\n"),
    "order of entries": ("  - fractions\n  - functools\n", "  - functools\n  - fractions\n"),
    "one module less": ("  - cmath\n", ""),
    "one pure module more": ("  - math\n", "  - math\n  - html\n"),
    "a module in part": ("  - math\n", "  - math: [sin, cos, sqrt]\n"),
    "a pure submodule": ("  - math\n", "  - math\n  - html.entities\n"),
    "a warm-up program": ("warm_up: []", "warm_up:\n  - |\n    x = 1\n    x + 1"),
    "a preloaded name more": ("dt: datetime", "dt: datetime\n  st: statistics"),
    "fewer methods that classes define": ("  - __init__\n", ""),
    "one dangerous name more": ("  - eval\n", "  - eval\n  - __build_class__\n"),
    "one dangerous attribute more": ("  - f_back\n", "  - f_back\n  - with_traceback\n"),
    "a word with boundaries": ("blocked_words:\n", "blocked_words:\n  - '\\bsocket\\.socket\\b'\n"),
    "a word of several": (
        "blocked_words:\n",
        "blocked_words:\n  - '(?x) \\b (ptrace|strace) \\d{1,3}'\n",
    ),
    "the start of a document": ("version: 1\n", "---\nversion: 1\n"),
    "a comma at the end": ("[Error, copy, deepcopy]", "[Error, copy, deepcopy,]"),
    "what each class defines": ("  - __init__\n", "  - __init__\n  - __fspath__\n  - __get__\n"),
    "lower limits": ("cpu_seconds: 2", "cpu_seconds: 1"),
    "higher limits": ("wall_seconds: 8", "wall_seconds: 10"),
    "more memory": ("address_space_mib: 512", "address_space_mib: 560"),
    "another uid range": ("first_uid: 5000", "first_uid: 70000"),
    "more uids": ("uid_count: 64", "uid_count: 128"),
    "another layer": ("  - seccomp\n", "  - seccomp\n  - landlock\n"),
    "another library": ("/usr/share/zoneinfo", "/usr/lib"),
    "one call more": ("  - fcntl(unsafe)\n", "  - fcntl(unsafe)\n  - uname\n"),
    "a call wholly": ("  - ioctl(unsafe)\n", "  - ioctl(unsafe)\n  - ioctl\n"),
    "a group by its members": ("  - '@keyring'\n", "  - add_key\n  - keyctl\n  - request_key\n"),
    "an accepted module": (
        "  - math\n",
        "  - math\n  - os.path  # accept import-impure: names alone, and Landlock holds\n",
    ),
}  # fmt: skip


def place(mistake: Mistake) -> tuple[str, int]:
    """The edited text, and the line where the finding must be."""
    before, mark, after = edited(mistake.old, mistake.new).partition("⌖")
    text = before + after
    if not mark:
        key = mistake.at if mistake.at.startswith(" ") else f"\n{mistake.at}:"
        before = text[: text.index(key) + 1]
    return text, before.count("\n") + 1


def check(mistake: Mistake, rules: frozenset[str]) -> None:
    """The mistake is found at its place, and what the cures say makes the policy clean."""
    text, line = place(mistake)
    found = lint.lint(subject(text), rules)
    assert (mistake.rule, line) in [(one.rule, one.line) for one in found], found
    assert all(one.message and one.cure for one in found)
    if subject(text).policy is None:
        return  # what to write instead is in words; tests/sandbox/policy/test_loader.py has them
    for _ in range(9):
        if not found:
            return
        text = follow(text, found[0])
        left = lint.lint(subject(text), rules)
        found = [one for one in left if not one.accepted]
    raise AssertionError(found)


def test_the_policy_as_it_is_has_no_finding() -> None:
    assert lint.lint(subject(POLICY), rules()) == []


@pytest.mark.parametrize("mistake", QUICK_MISTAKES, ids=lambda one: ascii(one.rule + one.new[-30:]))
def test_a_mistake_is_found_and_its_cure_cures(mistake: Mistake) -> None:
    check(mistake, QUICK)


@pytest.mark.parametrize("mistake", SLOW_MISTAKES, ids=lambda one: ascii(one.rule + one.new[-30:]))
def test_a_mistake_is_found_by_trying_and_its_cure_cures(mistake: Mistake) -> None:
    check(mistake, QUICK | {mistake.rule})


@pytest.mark.parametrize("edit", HARMLESS.values(), ids=HARMLESS)
def test_a_harmless_edit_finds_nothing(edit: tuple[str, str]) -> None:
    found = lint.lint(subject(edited(*edit)), QUICK)
    assert [one for one in found if not one.accepted] == []


def test_all_harmless_edits_at_once_find_nothing() -> None:
    text = POLICY
    for old, new in HARMLESS.values():
        text = text.replace(old, new, 1)
    found = lint.lint(subject(text), rules())
    assert [one for one in found if not one.accepted] == []


def test_every_rule_has_a_mistake_that_it_finds() -> None:
    tried = {mistake.rule for mistake in QUICK_MISTAKES + SLOW_MISTAKES}
    elsewhere = {"import-fails", "not-tried", "layer-absent", "probe-failed"}  # test_rules.py
    elsewhere |= {"import-exposes", "words-missing"}  # there too
    elsewhere |= {"container-too-small"}  # test_container.py
    assert tried | elsewhere == rules().keys()
