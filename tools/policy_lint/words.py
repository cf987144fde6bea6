"""Rules of blocked_words: what is slow, and what refuses that other fields allow."""

import builtins
import importlib
import json
import keyword
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from sandbox.policy import Policy
from tools.policy_lint.finding import Finding, Rule
from tools.policy_lint.honest import HONEST
from tools.policy_lint.subject import Subject

# Private, but the only parser of regular expressions that agrees with the one that runs them.
_PARSER: Any = importlib.import_module("re._parser")
_COMPILER: Any = importlib.import_module("re._compiler")

SLOW = Rule(
    "word-slow",
    "error",
    "A blocked word that takes very long on some program",
    "It is searched for in every program, inside the bot itself, where no limit of processor time "
    "holds. Shown by a witness: a program within source_bytes on which it takes too long.",
    r"- '(\w+\s?)+;'",
    "Let no part be repeated that can match the same text in two ways; bound repetitions.",
)
BLOCKS = Rule(
    "word-blocks",
    "error",
    "A blocked word that refuses what other fields allow",
    "It matches an allowed module, a preloaded name, a builtin, a keyword, or an honest program "
    "from a built-in list, so that innocent programs are refused.",
    "- 'id'",
    r"Give it boundaries (`\b`) and more of what makes it suspicious, or delete it.",
)
RULES = {rule.id: rule for rule in (SLOW, BLOCKS)}

_SECONDS = 1.0  # of processor time that a search may take
_PUMPS = "a0 _x.-'\"(/\n"

# Searches for each word in one text after the other, and is killed by the timer's signal, whose
# default is the end, when one takes too long: nothing else stops a search.
_SEARCHER = """
import json, re, signal, sys
innocent, words = json.load(sys.stdin)
for word, witnesses in words:
    pattern = re.compile(word)
    hits = []
    for index, text in enumerate([*innocent, *witnesses]):
        print(json.dumps([word, text[:40], len(text)]), flush=True)
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        if pattern.search(text) and index < len(innocent) and not hits:
            hits = [index]
            print(json.dumps([word, index, "hit"]), flush=True)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
"""


def find(subject: Subject, policy: Policy) -> Iterator[Finding]:
    """Words that match innocent text, and words that can take very long."""
    innocent = _innocent(policy)
    texts = [text for _, text in innocent]
    left = [word for word, _ in subject.entries("blocked_words")]
    while left:
        hits, slow = _search(texts, left, policy.limits.source_bytes)
        for word, index in hits:
            message = f"{word} matches {_shown(word, *innocent[index])}"
            cure = r"add \b or more context to it, or delete it"
            yield subject.at_entry(BLOCKS, "blocked_words", word, message, cure)
        if slow is None:
            return
        word, text, count = slow
        message = f"{word} takes over {_SECONDS} s to search {count} characters such as {text!r}"
        cure = "delete it, or let no part be repeated that can match one text in two ways"
        yield subject.at_entry(SLOW, "blocked_words", word, message, cure)
        left = left[left.index(word) + 1 :]


def _search(
    innocent: list[str], words: list[str], most: int
) -> tuple[list[tuple[str, int]], tuple[str, str, int] | None]:
    """Which words hit which innocent text, by its index, up to the first word that is slow.

    Of that one, the word, the text's beginning and its length.
    """
    question = innocent, [(word, _witnesses(word, most)) for word in words]
    done = subprocess.run(  # nosec B603: our own interpreter and our own program
        [sys.executable, "-I", "-S", "-c", _SEARCHER.replace("SECONDS", str(_SECONDS))],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=False,
    )
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    hits = [(word, index) for word, index, kind in reports if kind == "hit"]
    return hits, tuple(reports[-1]) if done.returncode else None


def _shown(word: str, what: str, text: str) -> str:
    """An innocent text with what it is; of a program the line that is matched."""
    if "program" not in what or not text:
        return f"{what} {text}".rstrip()
    line = next((line for line in text.split("\n") if re.search(word, line)), text)
    return f"{what} {line}"


def _innocent(policy: Policy) -> list[tuple[str, str]]:
    """What no word may match, each with what it is."""
    closed = policy.dangerous_names | policy.dangerous_attrs
    texts = [("the allowed module", name) for name in policy.allowed_imports]
    texts += [("the preloaded name", name) for name in policy.preloaded]
    texts += [("the keyword", name) for name in keyword.kwlist]
    texts += [
        ("the builtin", name)
        for name in dir(builtins)
        if name not in closed and not name.startswith("_")
    ]
    texts += [("the honest program", program) for program in HONEST]
    return [*texts, ("the empty program", "")]


def _witnesses(word: str, most: int) -> list[str]:
    """Texts on which a word may take long, the shortest first.

    Every repetition without a bound is pumped: what leads to it, its body many times, and an end
    that matches nothing, so that the search tries every way to divide the text.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = _PARSER.parse(word)
    pumps = [(before, body) for before, bodies in _repetitions(tree, "") for body in bodies]
    found = {
        (before + body * (size // len(body)))[: most - 1] + "\0"
        for before, body in pumps
        for size in (28, 40, 2000, most)
    }
    return sorted(found, key=len)


def _repetitions(tree: Any, before: str) -> Iterator[tuple[str, list[str]]]:
    """Each repetition that can be long, as what leads to it and samples of what it repeats."""
    for name, argument in tree:
        kind = str(name)
        if kind in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            least, most, body = argument
            if most > 8:
                yield before, _samples(body)
            yield from _repetitions(body, before)
            before += (_samples(body) or [""])[0] * min(least, 8)
            continue
        for part in _parts(kind, argument):
            yield from _repetitions(part, before)
        before += (_samples([(name, argument)]) or [""])[0]


def _parts(kind: str, argument: Any) -> list[Any]:
    """The patterns inside a node."""
    if kind == "SUBPATTERN":
        return [argument[3]]
    if kind == "BRANCH":
        return list(argument[1])
    if kind in {"ASSERT", "ASSERT_NOT"}:
        return [argument[1]]
    if kind == "ATOMIC_GROUP":
        return [argument]
    return []


def _samples(tree: Any) -> list[str]:
    """A few short texts that a pattern matches, as far as its parts tell; never an empty one."""
    texts = [""]
    for name, argument in tree:
        kind = str(name)
        if kind == "LITERAL":
            options = [chr(argument)]
        elif kind in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            options = [text * max(argument[0], 1) for text in _samples(argument[2])]
        elif kind in {"IN", "ANY", "NOT_LITERAL", "CATEGORY"}:
            options = _characters(name, argument)
        elif kind in {"SUBPATTERN", "ATOMIC_GROUP", "BRANCH"}:
            options = [text for part in _parts(kind, argument) for text in _samples(part)]
        else:
            options = [""]
        texts = [text + option for text in texts for option in (options or [""])[:4]][:8]
    return [text for text in texts if text][:8]


def _characters(name: Any, argument: Any) -> list[str]:
    """Some characters that a node of one character matches."""
    if str(name) == "IN":
        listed = [chr(value) for kind, value in argument if str(kind) == "LITERAL"]
        listed += [chr(value[0]) for kind, value in argument if str(kind) == "RANGE"]
    else:
        listed = []
    node = _PARSER.SubPattern(_PARSER.parse("").state, [(name, argument)])
    pattern = _COMPILER.compile(node, re.DOTALL)
    return [c for c in dict.fromkeys([*_PUMPS, *listed]) if pattern.fullmatch(c)]
