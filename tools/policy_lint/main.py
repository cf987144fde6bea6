"""The command: reads its arguments, has the work done, prints findings, says how it went.

What is heavy is imported when it is needed: a list of rules takes a tenth of a second.
"""

import argparse
import fnmatch
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from function import __version__
from tools.policy_lint import Unusable
from tools.policy_lint.rules import Rule, every_rule, rules

if TYPE_CHECKING:
    from sandbox.policy.document import Finding
    from tools.policy_lint.subject import Subject

ROOT = Path(__file__).resolve().parent.parent.parent
CLEAN, FOUND, FAILED = 0, 1, 2
_STDIN = Path("<stdin>")
_MOST_PROGRAM_BYTES = 1 << 21

_EPILOG = """\
A finding is accepted in place by a comment on its line, or alone on the line above:
  - numpy  # accept import-impure: its file functions meet Landlock
  dangerous_names:  # accept name-missing quit: it ends no more than the program

exit status: 0 clean, 1 findings (warnings count with --strict), 2 could not run
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    options = _parser().parse_args(arguments)
    try:
        status = _run(options)
        print(end="", flush=True)
        return status
    except Unusable as error:
        return _fail(error)
    except OSError as error:
        with suppress(OSError):
            sys.stdout.close()  # else the interpreter tries to write the rest again at its end
        return _fail(f"cannot write: {error.strerror}")


def _run(options: argparse.Namespace) -> int:
    _check(options)
    wanted = _wanted(options.select, options.ignore)
    if options.list_rules:
        for rule in every_rule().values():
            print(f"{rule.id:24}{rule.severity:9}{rule.summary}")
        return CLEAN
    if options.explain:
        rule = _rule(options.explain)
        print(f"{rule.id} ({rule.severity}): {rule.summary}.\n\n{rule.why}\n")
        print(f"Example: {rule.example}\nCure:    {rule.cure}")
        return CLEAN
    files = options.files or [_default()]
    if options.program:
        return _program(options.program, files[0], options.format)
    return _lint(files, options, wanted)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="policy-lint",
        description="Finds mistakes and weaknesses in a policy file.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="default: policy.yaml; - for standard input")
    add("--format", choices=("github", "json", "sarif", "text"), default="text")
    add("--color", choices=("auto", "always", "never"), default="auto", help="of text")
    add("--quiet", action="store_true", help="print errors alone")
    add("--strict", action="store_true", help="let warnings fail")
    add("--select", action="append", metavar="RULES", help="only these, as in import-*,word-slow")
    add("--ignore", action="append", metavar="RULES", help="all but these", default=[])
    add("--list-rules", action="store_true", help="show every rule in one line")
    add("--explain", metavar="RULE", help="why a rule matters, an example, the cure")
    add("--diff", metavar="OLD", help="what the file changes against OLD, a file or git:REV")
    add("--allow-weaker", action="store_true", help="with --diff: let weakenings pass")
    add("--program", metavar="FILE", help="what the policy says of a program; - for standard input")
    add("--version", action="version", version=f"policy-lint {__version__}")
    return parser


def _check(options: argparse.Namespace) -> None:
    """Raise Unusable for options that do not go together."""
    if options.diff and (options.select or options.ignore):
        raise Unusable("--diff shows every change: it does not go with --select or --ignore")
    if options.allow_weaker and not options.diff:
        raise Unusable("--allow-weaker goes with --diff")
    if options.program and options.format not in {"text", "json"}:
        raise Unusable("--program prints text or json")
    if options.program and len(options.files) > 1:
        raise Unusable("--program takes one policy")
    if [*options.files, options.program].count("-") > 1:
        raise Unusable("standard input can be read once")


def _default() -> str:
    """The policy.yaml of the current folder, else the repository's."""
    return "policy.yaml" if os.path.exists("policy.yaml") else str(ROOT / "policy.yaml")


def _wanted(select: list[str] | None, ignore: list[str]) -> set[str]:
    wanted = set(rules()) if select is None else _matching(select)
    wanted -= _matching(ignore)
    if not wanted:
        raise Unusable("--select and --ignore leave no rule to look for; see --list-rules")
    return wanted


def _matching(lists: Iterable[str]) -> set[str]:
    found = set()
    for pattern in filter(None, ",".join(lists).split(",")):
        found |= {*fnmatch.filter(rules(), pattern)} or {_rule(pattern).id}
    return found


def _rule(name: str) -> Rule:
    known = every_rule()
    if name not in known:
        from sandbox.policy.mistakes import did_you_mean

        raise Unusable(f"no rule {name}; {did_you_mean(name, known, 'see --list-rules')}")
    return known[name]


def _fail(reason: object) -> int:
    print(f"policy-lint: {reason}", file=sys.stderr)
    return FAILED


def _lint(files: list[str], options: argparse.Namespace, wanted: set[str]) -> int:
    """Lint or compare each file; one that cannot be read does not hide the others."""
    from tools.policy_lint import diff, formats
    from tools.policy_lint.lint import in_order, lint

    findings: list[Finding] = []
    sources: dict[Path, bytes] = {}
    status = CLEAN
    for name in files:
        try:
            subject = _read(name)
            if options.diff:
                findings += diff.compare(
                    diff.read_old(options.diff, subject.document.path), subject
                )
            else:
                findings += lint(subject, wanted)
            sources |= subject.document.files
        except Unusable as error:
            status = _fail(error)
    findings = in_order(findings)
    if options.quiet:
        findings = [one for one in findings if one.severity == "error" and not one.accepted]
    if options.format != "text":
        print(formats.FORMATS[options.format](findings), end="")
    elif findings or not (options.quiet or status):
        is_diff, colour = bool(options.diff), _has_colour(options.color)
        shown = formats.text(findings, sources, is_diff=is_diff, colour=colour)
        print(shown, end="")
    failing = {"error", "warning"} if options.strict else {"error"}
    for found in findings:
        is_allowed = found.accepted or (options.allow_weaker and found.rule == "weaker")
        if found.severity in failing and not is_allowed:
            return status or FOUND
    return status


def _has_colour(choice: str) -> bool:
    """Whether text is coloured: by option, https://no-color.org, https://force-color.org."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("FORCE_COLOR"):
        return not os.environ.get("NO_COLOR")
    return bool(sys.stdout) and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _read(name: str) -> "Subject":
    """A policy file that is there; what is wrong in it is for the rules."""
    from sandbox.policy.document import MAX_FILE_BYTES
    from sandbox.policy.extends import parse_document, read_file
    from tools.policy_lint.subject import subject_of

    if name == "-":
        return subject_of(parse_document(_STDIN, _stdin().read(MAX_FILE_BYTES + 1)))
    try:
        raw = read_file(Path(name))
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error)
        raise Unusable(f"{name}: {reason[0].lower()}{reason[1:]}") from error
    return subject_of(parse_document(Path(name), raw))


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise Unusable("standard input is closed")
    return sys.stdin.buffer


def _program(name: str, policy: str, form: str) -> int:
    from tools.policy_lint import program

    subject = _read(policy)
    if subject.policy is None:
        raise Unusable("\n".join(map(str, subject.document.findings)))
    shown = str(_STDIN) if name == "-" else name
    try:
        with _stdin() if name == "-" else open(name, "rb") as file:
            source = file.read(_MOST_PROGRAM_BYTES).decode("utf-8")
    except OSError as error:
        raise Unusable(f"{shown}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Unusable(f"{shown}: not UTF-8 from byte {error.start} on") from error
    records = program.judge(source, subject, subject.policy)
    write = program.as_json if form == "json" else program.as_text
    print(write(records, shown, source), end="")
    return FOUND if records else CLEAN
