"""The hostile corpus, each program as a user sends it and with the checker off, and variants."""

import ast
import contextlib
import dataclasses
import json
import textwrap
from pathlib import Path

import pytest

from sandbox.check.checker import check
from sandbox.sandbox import Sandbox
from tests.sandbox.guests import guests

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "attacks.jsonl"
PROGRAMS = [json.loads(line) for line in CORPUS.read_text().splitlines()]
ESCAPES = [p for p in PROGRAMS if p["kind"] in {"os-escape", "ast-bypass"}]
EATERS = [p for p in PROGRAMS if p["kind"] == "resource"]
REFUSED = [p for p in ESCAPES if p["expect"].get("checker") == "reject"]


def named(programs):
    return [pytest.param(program, id=program["id"]) for program in programs]


@contextlib.contextmanager
def limited(policy, wall_seconds):
    """A sandbox with a second of CPU for each program: many of them use all that they get."""
    rlimits = dataclasses.replace(policy.rlimits, cpu_seconds=1)
    limits = dataclasses.replace(policy.limits, wall_seconds=wall_seconds)
    sandbox = Sandbox(dataclasses.replace(policy, rlimits=rlimits, limits=limits))
    sandbox.start()
    yield sandbox
    sandbox.close()


@pytest.fixture(scope="module")
def hasty(policy):
    """A sandbox for programs that may wait for nothing."""
    with limited(policy, wall_seconds=2) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def patient(policy):
    """A sandbox whose clock ends nothing that another limit ends, on a busy machine either."""
    with limited(policy, wall_seconds=60) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def brief(policy):
    """Guests with less CPU than a whole second, for programs that may use all that they get."""
    limits = dataclasses.replace(policy.limits, wall_seconds=60)
    with guests(dataclasses.replace(policy, limits=limits), cpu_seconds=0.3) as zygote:
        yield zygote


@pytest.mark.parametrize("program", named(ESCAPES))
def test_no_escape_succeeds_with_the_checker_off(hasty, program):
    outcome = hasty.run(program["source"], unchecked=True)
    assert "PWNED" not in outcome.output + outcome.error
    assert outcome.kind not in {"busy", "unavailable"}


@pytest.mark.parametrize("program", named(ESCAPES))
def test_no_escape_succeeds_as_a_user_sends_it(hasty, program):
    outcome = hasty.run(program["source"])
    assert "PWNED" not in outcome.output + outcome.error
    if program in REFUSED and program["id"] != "AB-146":  # text that says `__x__`: no escape
        assert outcome.kind in {"rejected", "syntax_error", "error"}
        assert "REACHED" not in outcome.output


# What the corpus calls by one word.
KINDS = {"error": {"error", "syntax_error", "crashed"}}
# Programs that end in another way than the corpus foresees, for a reason.
ENDS_ELSE = {
    "RS-018": {"ok", "cpu_limit"},  # integers of any length are read
    "RS-020": {"output_limit", "cpu_limit"},  # and printed
    "RS-066": {"cpu_limit"},  # where the interpreter takes its time to find it too deep
    "RS-083": {"error"},  # there is no sys.stderr to flood
    "RS-119": {"ok"},  # a guest ends without atexit's callbacks
    "RS-122": {"error"},  # select(2) is refused
    "RS-123": {"error"},  # nothing is imported that was not before
    "RS-130": {"error"},  # timers are refused
}


@pytest.mark.parametrize("program", named(EATERS))
def test_no_program_takes_more_than_its_share(hasty, patient, brief, program):
    foreseen = set(program["expect"]["outcome"]) | ENDS_ELSE.get(program["id"], set())
    foreseen = foreseen.union(*(KINDS.get(kind, ()) for kind in foreseen))
    if "wall_limit" in foreseen:
        outcome = hasty.run(program["source"], unchecked=True)
    elif "cpu_limit" in foreseen:
        outcome = brief.run_source(program["source"])
    else:
        outcome = patient.run(program["source"], unchecked=True)
    assert outcome.kind in foreseen
    assert outcome.wall_seconds < 10
    assert outcome.cpu_seconds < 2.5
    assert outcome.max_rss_kib < 600 * 1024
    assert len(outcome.output) <= 65536


def test_after_all_of_them_the_answer_is_right(hasty, patient, brief):
    assert brief.run_source("2+2").output == "4\n"
    for sandbox in (hasty, patient):
        assert sandbox.run("2+2").output == "4\n"
        assert sandbox.status()["zygote"]["restarts"] == 0


# The same trick written another way. Each takes and gives source.


def in_a_function(source):
    return f"def f():\n{textwrap.indent(source, '    ')}\nf()"


def in_a_class(source):
    return f"class C:\n{textwrap.indent(source, '    ')}"


def in_a_branch(source):
    return f"for _ in [0]:\n  try:\n{textwrap.indent(source, '    ')}\n  finally: pass"


def rewritten(source):
    """Another layout: no comments, other quotes, brackets as the unparser likes them."""
    return ast.unparse(ast.parse(source))


class _ThroughSubscript(ast.NodeTransformer):
    """`a.b` as `[a][0].b`: the object has no name."""

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            inner = ast.List([node.value], ast.Load())
            node.value = ast.Subscript(inner, ast.Constant(0), ast.Load())
        return node


def through_a_list(source):
    return ast.unparse(ast.fix_missing_locations(_ThroughSubscript().visit(ast.parse(source))))


class _ThroughMatch(ast.NodeTransformer):
    """A statement `x = a.b` as a class pattern that captures the attribute."""

    def visit_Assign(self, node):
        target, value = node.targets[0], node.value
        if isinstance(value, ast.Attribute) and isinstance(target, ast.Name):
            pattern = ast.MatchClass(
                ast.Name("object", ast.Load()), [], [value.attr], [ast.MatchAs(name=target.id)]
            )
            return ast.Match(value.value, [ast.match_case(pattern, None, [ast.Pass()])])
        return node


def through_a_pattern(source):
    return ast.unparse(ast.fix_missing_locations(_ThroughMatch().visit(ast.parse(source))))


def in_wide_letters(source):
    """Identifiers in letters that NFKC makes plain (PEP 3131)."""
    wide = {ord(letter): ord(letter) - 97 + 0x1D41A for letter in "abcdefghijklmnopqrstuvwxyz"}
    tree = ast.parse(source)
    lines = source.splitlines()
    spots = [
        (node.end_lineno, node.end_col_offset, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
    ]
    for line, end, name in sorted(spots, reverse=True):
        text = lines[line - 1].encode()
        start = end - len(name.encode())
        if text[start:end] == name.encode():
            # The first letter stays, so that what begins with underscores still does.
            odd = (name[:2] + name[2:].translate(wide)).encode()
            lines[line - 1] = (text[:start] + odd + text[end:]).decode()
    return "\n".join(lines)


# What a type or its parameter stands for is not evaluated; text that says `__x__` is no way to an
# attribute; statistics.itemgetter is operator.itemgetter.
HARMLESS = {"AB-086", "AB-087", "AB-097", "AB-146"}
VARIANTS = [
    in_a_function,
    in_a_class,
    in_a_branch,
    rewritten,
    through_a_list,
    through_a_pattern,
    in_wide_letters,
]


def parses(source):
    try:
        return bool(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_refused_or_fails_does_so_in_other_words(policy, hasty, variant):
    reached, tried = [], 0
    for program in REFUSED:
        source = program["source"]
        if program["id"] in HARMLESS or not parses(source):
            continue
        try:
            other = variant(source)
        except (RecursionError, ValueError):
            continue  # too deep for the unparser
        if not parses(other):
            continue  # such as a star import or a nonlocal moved to another place
        tried += 1
        if not check(other, policy) and "REACHED" in hasty.run(other).output:
            reached.append(program["id"])
    assert tried > 50
    assert reached == []
