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
import keyword
import re
import warnings
from collections.abc import Iterator
from typing import Any

from sandbox.policy.words import ONE_CHARACTER, PARSER
from tools.policy_lint.known import BENIGN
from tools.policy_lint.subject import Findings, Policy, Subject


def check(subject: Subject, policy: Policy) -> Findings:
    """Words that match innocent text, that match nothing, that are doubtful."""
    if not policy.blocked_words:
        cure = "bring back the words of the policy as it is shipped"
        yield subject.finding("words-missing", ("blocked_words",), "no word is blocked", cure)
    innocent = list(_innocent(policy))
    for word in policy.blocked_words:
        for rule, message, cure in _faults(word, innocent):
            at = ("blocked_words", word.pattern)
            yield subject.finding(rule, at, f"{word.pattern}{message}", f"{cure}, or delete it")


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


def _faults(
    word: re.Pattern[str], innocent: list[tuple[str, str]]
) -> Iterator[tuple[str, str, str]]:
    """Rule, message and cure of what is wrong with a word."""
    for what, text in innocent:
        if match := word.search(text):
            line = text.splitlines()[text[: match.start()].count("\n")] if text else ""
            message = f" matches {what} {line}".rstrip()
            yield "word-blocks", message, r"add \b or more context to it"
            break
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tree = PARSER.parse(word.pattern)
    if caught:
        cure = "put a backslash before a character that is meant as itself"
        yield "word-doubtful", f": {caught[0].message}", cure
    never = " will never match what is meant:"
    if any(str(kind) == "LITERAL" and chr(argument) == "\\" for kind, argument in tree):
        cure = "in 'single quotes' write one backslash"
        yield "word-never", f"{never} it looks for a backslash", cure
    elif not word.flags & re.MULTILINE and _is_out_of_place(tree):
        cure = "put a backslash before `^` or `$` that is meant as itself"
        yield "word-never", f"{never} it cannot begin or end there", cure


def _is_out_of_place(tree: Any) -> bool:
    """Whether an anchor stands behind or before a character, or there is a `(?!)`."""
    kinds = [str(kind) for kind, _ in tree]
    for index, (kind, argument) in enumerate(tree):
        other_side = {"AT_BEGINNING": kinds[:index], "AT_END": kinds[index + 1 :]}
        if not ONE_CHARACTER.isdisjoint(other_side.get(str(argument), ())):
            return True
        if str(kind) == "FAILURE" or (str(kind) == "ASSERT_NOT" and not argument[1]):
            return True
    return False
