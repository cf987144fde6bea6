"""The command: reads its arguments, has the work done, prints findings, says how it went."""

import argparse
import fnmatch
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from sandbox.policy.loader import did_you_mean
from tools.policy_lint import diff, formats, lint, probe
from tools.policy_lint import program as programs
from tools.policy_lint.finding import Finding, Rule, in_order
from tools.policy_lint.subject import Subject, read

ROOT = Path(__file__).resolve().parent.parent.parent
RULES: dict[str, Rule] = lint.RULES | diff.RULES | probe.RULES
CLEAN, FOUND, FAILED = 0, 1, 2

_EPILOG = """\
A finding is accepted in place by a comment on its line, or alone on the line above:
  - numpy  # accept import-impure: its file functions meet Landlock

exit status: 0 clean, 1 findings (warnings count with --strict), 2 could not run
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        wanted = _wanted(options.select, options.ignore)
        if options.list_rules:
            for rule in RULES.values():
                print(f"{rule.id:24}{rule.severity:9}{rule.summary}")
            return CLEAN
        if options.explain:
            print(_explanation(_rule(options.explain)))
            return CLEAN
        files = options.files or [_default()]
        if options.program:
            return _program(options.program, files, options.format)
        findings = [found for path in files for found in _findings(path, options, wanted)]
    except (_Unusable, diff.NotComparable) as error:
        print(f"policy-lint: {error}", file=sys.stderr)
        return FAILED
    findings = in_order(one for one in findings if one.rule.id in wanted)
    print(_shown(findings, options), end="")
    return _status(findings, options.strict, options.allow_weaker)


class _Unusable(Exception):
    """The command cannot do what it is told; the text says why."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="policy-lint",
        description="Finds mistakes and weaknesses in a policy file.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="FILE", help="default: policy.yaml")
    add("--format", choices=sorted(formats.FORMATS), default="text")
    add("--strict", action="store_true", help="let warnings fail")
    add("--select", action="append", metavar="RULES", help="only these, as in import-*,word-slow")
    add("--ignore", action="append", metavar="RULES", help="all but these")
    add("--list-rules", action="store_true", help="show every rule in one line")
    add("--explain", metavar="RULE", help="why a rule matters, an example, the cure")
    add("--diff", metavar="OLD", help="what the file changes against OLD, a file or git:REV")
    add("--allow-weaker", action="store_true", help="with --diff: let weakenings pass")
    add(
        "--program", metavar="FILE", help="what the policy says of a program; - reads it from stdin"
    )
    add("--probe", action="store_true", help="run the boundary's self-test under the policy")
    return parser


def _default() -> Path:
    """The policy.yaml of the current folder, else the repository's."""
    here = Path("policy.yaml")
    return here if here.exists() else ROOT / "policy.yaml"


def _wanted(select: list[str] | None, ignore: list[str] | None) -> set[str]:
    wanted = _matching(select) if select else set(RULES)
    return wanted - _matching(ignore or [])


def _matching(lists: Iterable[str]) -> set[str]:
    patterns = [pattern for names in lists for pattern in names.split(",") if pattern]
    found = set()
    for pattern in patterns:
        matching = set(fnmatch.filter(RULES, pattern))
        if not matching:
            _rule(pattern)
        found |= matching
    return found


def _rule(name: str) -> Rule:
    if name not in RULES:
        raise _Unusable(f"no rule {name}; {did_you_mean(name, RULES, 'see --list-rules')}")
    return RULES[name]


def _explanation(rule: Rule) -> str:
    return (
        f"{rule.id} ({rule.severity}): {rule.summary}.\n\n{rule.why}\n\n"
        f"Example: {rule.example}\nCure:    {rule.cure}"
    )


def _shown(findings: list[Finding], options: argparse.Namespace) -> str:
    if options.format == "text" and options.diff:
        return formats.one_line_each(findings)
    if options.format == "text":
        return formats.text(findings, colour=sys.stdout.isatty())
    return formats.FORMATS[options.format](findings)


def _findings(path: Path, options: argparse.Namespace, wanted: set[str]) -> list[Finding]:
    subject = _read(path)
    if options.diff:
        return list(diff.compare(diff.read_old(options.diff, path), subject))
    found = lint.lint(subject, wanted)
    if options.probe and subject.policy:
        found += probe.find(subject, subject.policy)
    return found


def _read(path: Path) -> Subject:
    """A policy file that is there; what is wrong in it is for the rules."""
    if not path.is_file() or not os.access(path, os.R_OK):
        raise _Unusable(f"{path}: no such file, or it cannot be read")
    return read(path)


def _program(name: str, files: list[Path], form: str) -> int:
    if form not in {"text", "json"}:
        raise _Unusable("--program prints text or json")
    if len(files) != 1:
        raise _Unusable("--program takes one policy")
    subject = _read(files[0])
    if subject.policy is None:
        raise _Unusable("\n".join(map(str, subject.document.problems)))
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise _Unusable(f"{name}: {error.strerror}") from error
    source = raw.decode("utf-8", "surrogateescape")
    shown = "<stdin>" if name == "-" else name
    text, allowed = programs.judge(source, shown, subject, subject.policy, form == "json")
    print(text, end="")
    return CLEAN if allowed else FOUND


def _status(findings: Iterable[Finding], strict: bool, allow_weaker: bool) -> int:
    failing = {"error", "warning"} if strict else {"error"}
    for found in findings:
        weaker_allowed = allow_weaker and found.rule is diff.WEAKER
        if found.rule.severity in failing and not found.accepted and not weaker_allowed:
            return FOUND
    return CLEAN
