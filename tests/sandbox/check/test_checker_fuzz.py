"""No text makes the checker raise, and nothing that it passes holds what it does not know."""

import ast
import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.check.checker import MOST_VIOLATIONS, check
from sandbox.check.node_kinds import KINDS
from sandbox.policy.loader import Policy

CORPUS = Path(__file__).parents[2] / "corpus"
SOURCES = [
    json.loads(line)["source"]
    for name in ("attacks.jsonl", "benign.jsonl")
    for line in (CORPUS / name).read_text("utf-8").splitlines()
]
PIECES = [
    *("eval", "__x", "x._y", ".gi_frame", "f'{", "{x!r:{", "'__'", "\\x5f\\137", "\\N{LOW LINE}"),
    *(
        "import",
        "from",
        "as",
        "*",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ":",
        ";",
        ",",
        ".",
        "=",
        "@",
        ":=",
    ),
    *(
        "lambda",
        "match",
        "case",
        "class",
        "def",
        "async",
        "await",
        "for",
        "in",
        "if",
        "else",
        "try",
    ),
    *("except*", "with", "->", "**", "del", "global", "nonlocal", "type", "T", '"""', "'''", "\\"),
    *("#", "\r", "\0", "\ufeff", "\u202e", "\ud800", "é", "ｅ", "٢", "😀", "1_0", "0x", "1e999"),
    *("t'", "b'", "\n", "\n    ", "\n  ", "\t", "\x0c", "\r\n", " "),
]
texts = st.one_of(
    st.text(max_size=200),
    st.text(alphabet=st.characters(exclude_categories=()), max_size=200),
    st.lists(st.sampled_from(PIECES), max_size=60).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=60).map(" ".join),
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A program of the corpora with a few pieces cut out, doubled, or put in from elsewhere."""
    source: str = draw(st.sampled_from(SOURCES))
    for _ in range(draw(st.integers(1, 4))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(source))] * 2)))
        piece = draw(st.sampled_from(PIECES) | st.just(source[start:end] * 2) | st.just(""))
        source = source[:start] + piece + source[end:]
    return source


def spliced(seed: int) -> str:
    """A program whose tree is one of the corpora with parts replaced by parts of others."""
    chance = random.Random(seed)
    trees = []
    for source in chance.sample(SOURCES, 5):
        try:
            trees.append(ast.parse(source, "<program>"))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    parts = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.expr)]
    for tree in trees:
        for node in ast.walk(tree):
            for name, value in ast.iter_fields(node):
                if isinstance(value, ast.expr) and parts and chance.random() < 0.1:
                    setattr(node, name, chance.choice(parts))
    try:
        return "\n".join(ast.unparse(ast.Module(tree.body, [])) for tree in trees)
    except Exception:  # a part within itself, or where the grammar has no place for it
        return ""


def judge(source: str, policy: Policy) -> None:
    found = check(source, policy)
    assert len(found) <= MOST_VIOLATIONS
    for one in found:
        assert 1 <= one.line <= source.count("\n") + source.count("\r") + 2, one
        assert one.column >= 1
        assert one.message
    if not found:
        for node in ast.walk(ast.parse(source, "<program>")):
            if not isinstance(node, ast.expr_context):
                assert not any(getattr(node, name) for name in KINDS[type(node)].unknown)


quick = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@quick
@given(source=texts)
def test_any_text_is_judged(source: str, policy: Policy) -> None:
    judge(source, policy)


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@quick
@given(source=mutated())
def test_any_mutated_program_is_judged(source: str, policy: Policy) -> None:
    judge(source, policy)


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@quick
@given(seed=st.integers(0, 2**32))
def test_any_spliced_tree_is_judged(seed: int, policy: Policy) -> None:
    judge(spliced(seed), policy)


@quick
@given(word=st.sampled_from(["__class__", "gi_frame", "tb_frame"]), data=st.data())
def test_a_hidden_word_is_found_however_it_is_spelled(
    word: str, data: st.DataObject, policy: Policy
) -> None:
    def spell(character: str) -> str:
        code = ord(character)
        fullwidth = chr(code + 0xFEE0)
        forms = [f"\\x{code:02x}", f"\\{code:03o}", f"\\u{code:04x}", f"\\U{code:08x}", fullwidth]
        return data.draw(st.sampled_from([character, *forms]))

    text = "".join(map(spell, word))
    prefix = data.draw(st.sampled_from(["", "f", "see ", "u"]))
    source = f"x = '{prefix}.{text}'" if prefix == "see " else f"x = {prefix}'{text}'"
    assert "dangerous-text" in {one.rule for one in check(source, policy)}
