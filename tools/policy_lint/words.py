"""Rules of blocked_words: what is slow, and what refuses that other fields allow."""

import builtins
import importlib
import json
import keyword
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sandbox.policy.loader import Policy
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
DOUBTFUL = Rule(
    "word-doubtful",
    "warning",
    "A blocked word that Python warns of",
    "It means something today and may mean something else in another version of Python.",
    "- '[[a]--b]'",
    "Put a backslash before a character that is meant as itself.",
)
RULES = {rule.id: rule for rule in (SLOW, BLOCKS, DOUBTFUL)}

Hits = dict[str, list[tuple[int, int]]]

_SECONDS = 1.0  # of processor time that a search may take
_PUMPS = "a0 _x.-'\"(/\n"

# Searches for each word in its texts, and is killed by the timer's signal, whose default is the
# end, when one search takes too long: nothing else stops a search. Tells of each text before it is
# searched, and of each hit.
_SEARCHER = """
import json, re, signal, sys
for word, texts in json.load(sys.stdin):
    pattern = re.compile(word)
    for index, text in enumerate(texts):
        print(json.dumps([word, index, None]), flush=True)
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        match = pattern.search(text)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if match:
            print(json.dumps([word, index, match.start()]), flush=True)
"""


def find(subject: Subject, policy: Policy) -> Iterator[Finding]:
    """Words that match innocent text, words that can take very long, words that are doubtful."""
    innocent = _innocent(policy)
    plain = [text for _, text in innocent]
    tried = {
        word: [*plain, *_witnesses(word, policy.limits.source_bytes)]
        for word, _ in subject.entries("blocked_words")
    }
    for word in tried:
        if doubt := _doubt(word):
            cure = "put a backslash before a character that is meant as itself"
            yield subject.at_entry(DOUBTFUL, "blocked_words", word, f"{word}: {doubt}", cure)
    hits, slow = search(tried)
    for word, index in slow.items():
        text = tried[word][index]
        message = f"{word} takes over {_SECONDS:.0f} s to search {len(text)} characters: "
        message += repr(text[:40]) + " ..." * (len(text) > 40)
        cure = "delete it, or let no part be repeated that can match one text in two ways"
        yield subject.at_entry(SLOW, "blocked_words", word, message, cure)
    for word, places in hits.items():
        shown = [_shown(*innocent[index], start) for index, start in places if index < len(plain)]
        if shown:
            message = f"{word} matches {shown[0]}"
            cure = r"add \b or more context to it, or delete it"
            yield subject.at_entry(BLOCKS, "blocked_words", word, message, cure)


def search(tried: Mapping[str, Sequence[str]]) -> tuple[Hits, dict[str, int]]:
    """Search each word in its texts, in a process that can be stopped.

    Returns for each word where it hit, as pairs of the text's index and the place in it; and for
    each word that took too long, which ends its search, the index of that text.
    """
    hits: Hits = {}
    slow: dict[str, int] = {}
    left = list(tried.items())
    while left:
        done = subprocess.run(  # nosec B603: our own interpreter and our own program
            [sys.executable, "-I", "-S", "-c", _SEARCHER.replace("SECONDS", str(_SECONDS))],
            input=json.dumps(left),
            capture_output=True,
            text=True,
            check=False,
        )
        reports = [json.loads(line) for line in done.stdout.splitlines()]
        for word, index, start in reports:
            if start is not None:
                hits.setdefault(word, []).append((index, start))
        if not done.returncode:
            break
        last, index, _ = reports[-1]
        slow[last] = index
        left = left[[word for word, _ in left].index(last) + 1 :]
    return hits, slow


def _doubt(word: str) -> str:
    """What Python warns of in a regular expression."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _PARSER.parse(word)
    return str(caught[0].message) if caught else ""


def _shown(what: str, text: str, start: int) -> str:
    """An innocent text with what it is; of a program the line that is matched."""
    line = text[:start].count("\n")
    return f"{what} {text.splitlines()[line]}" if text else what


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

    Every repetition without a bound is pumped: what leads to it, its body many times (and what
    leads to it many times), and an end that matches nothing, so that the search tries every way to
    divide the text.
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
                yield "", [before] if before else []
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
