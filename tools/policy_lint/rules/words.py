r"""Rules of blocked_words: what refuses that other fields allow, and what never refuses.

word-blocks (error): A blocked word that refuses what other fields allow
    It matches an allowed module, a preloaded name, a builtin, a keyword, or a benign program from a
    built-in list, so that innocent programs are refused.
    Example: - 'id'
    Cure: Give it boundaries (`\b`) and more of what makes it suspicious, or delete it.

word-never (warning): A blocked word that matches nothing that anybody would write
    An anchor stands where it cannot hold, or a backslash is doubled: in 'single quotes' YAML leaves
    backslashes alone, so that one is enough.
    Example: - '\\bos\\.system\\b'
    Cure: Write `\b` and `\.` with one backslash; put a backslash before `^` or `$` meant as itself.

word-doubtful (warning): A blocked word that Python warns of
    It means something today and may mean something else in another version of Python.
    Example: - '[[a]--b]'
    Cure: Put a backslash before a character that is meant as itself.

words-missing (warning): No word is blocked
    The words are the last tripwire before a program runs: they see what is spelt in text.
    Example: blocked_words: []
    Cure: Bring the words back.
"""

import builtins
import importlib
import keyword
import re
import warnings
from collections.abc import Iterator
from typing import Any

from sandbox.policy.document import Finding
from sandbox.policy.loader import Policy
from tools.policy_lint.benign import BENIGN
from tools.policy_lint.subject import Subject

# Private, but the only parser of regular expressions that agrees with the one that runs them.
_PARSER: Any = importlib.import_module("re._parser")


def check(subject: Subject) -> Iterator[Finding]:
    """Words that match innocent text, that match nothing, that are doubtful."""
    policy = subject.policy
    assert policy
    if not policy.blocked_words:
        cure = "bring back the words of the policy as it is shipped"
        yield subject.at_heading("words-missing", "blocked_words", "no word is blocked", cure)
    innocent = list(_innocent(policy))
    for word in policy.blocked_words:
        for what, text in innocent:
            if match := word.search(text):
                line = text.splitlines()[text[: match.start()].count("\n")] if text else ""
                message = f"{word.pattern} matches {what} {line}".rstrip()
                cure = r"add \b or more context to it, or delete it"
                yield subject.at_entry("word-blocks", "blocked_words", word.pattern, message, cure)
                break
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tree = _PARSER.parse(word.pattern)
        if caught:
            message = f"{word.pattern}: {caught[0].message}"
            cure = "put a backslash before a character that is meant as itself, or delete it"
            yield subject.at_entry("word-doubtful", "blocked_words", word.pattern, message, cure)
        for reason, cure in _futile(word, tree):
            message = f"{word.pattern} will never match what is meant: {reason}"
            yield subject.at_entry("word-never", "blocked_words", word.pattern, message, cure)


def _innocent(policy: Policy) -> Iterator[tuple[str, str]]:
    """What no word may match, each with what it is."""
    closed = policy.dangerous_names | policy.dangerous_attrs
    yield from (("the allowed module", name) for name in policy.allowed_imports)
    yield from (("the preloaded name", name) for name in policy.preloaded)
    yield from (("the keyword", name) for name in keyword.kwlist)
    names = (name for name in dir(builtins) if not name.startswith("_"))
    yield from (("the builtin", name) for name in names if name not in closed)
    yield from (("the benign program", program) for program in BENIGN)
    yield "the empty program", ""


def _futile(word: re.Pattern[str], tree: Any) -> Iterator[tuple[str, str]]:
    """Why a word matches nothing that anybody would write, and the cure."""
    if ("\\", "LITERAL") in ((chr(a) if isinstance(a, int) else "", str(n)) for n, a in tree):
        yield "it looks for a backslash", "in 'single quotes' write one backslash, or delete it"
        return
    samples = _samples(tree)
    if samples and not any(word.search(text) for text in samples):
        cure = "put a backslash before `^` or `$` that is meant as itself, or delete it"
        yield f"not {samples[0]!r}, nor anything else", cure


def _samples(tree: Any) -> list[str]:
    """A few texts of the parts of a pattern in a row; none where it looks ahead."""
    texts = [""]
    for name, argument in tree:
        kind = str(name)
        if kind == "LITERAL":
            options = [chr(argument)]
        elif kind in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            options = [text * max(argument[0], 1) for text in _samples(argument[2])]
        elif kind == "SUBPATTERN":
            options = _samples(argument[3])
        elif kind == "BRANCH":
            options = [text for branch in argument[1] for text in _samples(branch)]
        elif kind == "ASSERT" and argument[0] < 0:
            options = _samples(argument[1])
        elif kind == "AT" or (kind == "ASSERT_NOT" and (argument[0] < 0 or not argument[1])):
            options = [""]
        elif kind == "FAILURE":
            options = ["anything"]
        elif kind in {"IN", "ANY", "NOT_LITERAL", "CATEGORY"}:
            node = _PARSER.SubPattern(_PARSER.parse("").state, [(name, argument)])
            compiled: Any = importlib.import_module("re._compiler")
            pattern = compiled.compile(node, re.DOTALL)
            options = [c for c in map(chr, range(32, 0x250)) if pattern.fullmatch(c)][:2]
        else:
            return []
        texts = [text + option for text in texts for option in options[:4]][:16]
    return texts
