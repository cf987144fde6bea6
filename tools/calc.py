"""Runs one program as the bot would, without HTTP, and prints the answer.

Exits with 0 if the program ended well, 1 if it did not, 2 if it could not be tried.
"""

import argparse
import ast
import base64
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from function import __version__, natural
from function.answers.inline import articles
from function.answers.replies import render
from function.calculator import calculate, read_program
from function.parts import text_of
from function.settings import Settings
from sandbox.check.source import Unparsed
from sandbox.fork_server.png import Picture
from sandbox.policy.loader import PolicyError, load_policy
from sandbox.sandbox import Outcome, Sandbox, SandboxUnavailable
from sandbox.self_test import ProbeResult
from tools.serve import ROOT


class Unchecked(Sandbox):
    """A sandbox that leaves everything to the operating system's layers."""

    def run(
        self,
        source: str,
        tree: ast.Module | Unparsed | None = None,
        *,
        helpers: bool = False,
        unchecked: bool = True,
        echo_lines: bool = False,
        stdin: str = "",
    ) -> Outcome:
        """Run a program without checker, import guard and reduced builtins."""
        options = {"helpers": helpers, "unchecked": unchecked, "echo_lines": echo_lines}
        return super().run(source, tree, stdin=stdin, **options)


def main(arguments: list[str] | None = None) -> int:
    """Run the program that the command line names and return the exit status."""
    parser = argparse.ArgumentParser(prog="calc", description=__doc__)
    parser.add_argument(
        "program",
        nargs="?",
        metavar="PROGRAM",
        help="its text, or - for standard input; after -- if it begins with a minus sign",
    )
    parser.add_argument("--json", action="store_true", help="print the whole outcome as JSON")
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="FILE",
        help="write what the program draws to FILE, a further picture to FILE-2 and so on, as PNG",
    )
    parser.add_argument("--inline", action="store_true", help="answer as to an inline query")
    parser.add_argument(
        "--policy",
        type=Path,
        default=os.environ.get("POLICY_PATH") or ROOT / "policy.yaml",
        metavar="FILE",
        help="instead of policy.yaml",
    )
    parser.add_argument(
        "--unchecked",
        action="store_true",
        help="skip the checker, the import guard and the "
        "reduced builtins: try the operating system's layers alone",
    )
    parser.add_argument(
        "--probe",
        action="store_true",
        help="instead of a program: try everything that must be refused, and show what refuses it",
    )
    parser.add_argument("--version", action="version", version=__version__)
    options = parser.parse_args(arguments)
    source = options.program
    if (source is None) != options.probe:
        parser.error("a PROGRAM or --probe is needed, and not both")
    if source == "-":
        source = sys.stdin.buffer.read().decode("utf-8", "replace")
    if options.unchecked:
        print("UNCHECKED: only the operating system's layers are in force.", file=sys.stderr)
    try:
        policy = load_policy(options.policy)
        secret = os.environ.get("CONFIG_PATH") or str(Settings.config_path)
        sandbox = (Unchecked if options.unchecked else Sandbox)(policy, [secret])
        sandbox.start()
    except (OSError, PolicyError, SandboxUnavailable) as error:
        print(error, file=sys.stderr)
        return 2
    try:
        if options.probe:
            return show_probes(sandbox.probe(), options.json)
        program = read_program(source, natural, policy.limits.source_bytes)
        answer = calculate(program, sandbox, natural, inline=options.inline)
    finally:
        sandbox.close()
    pictures = answer.outcome.pictures
    try:
        write_pictures(options.picture, pictures)
    except OSError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        outcome = dataclasses.asdict(answer.outcome)
        outcome["pictures"] = [base64.b64encode(picture.png).decode() for picture in pictures]
        print(json.dumps(outcome, indent=2))
    elif options.inline:
        for article in articles(answer, policy):
            print(text_of(article.message))
    else:
        text = text_of(render(answer, policy, with_pictures=bool(pictures)))
        print(text, end="\n" if text else "")
    return 0 if answer.outcome.kind == "ok" else 1


def write_pictures(path: Path | None, pictures: Sequence[Picture]) -> None:
    """Write each picture to a file of its own, the first to `path`."""
    if path is None:
        if pictures:
            print("A picture was drawn: --picture FILE writes it.", file=sys.stderr)
        return
    for number, picture in enumerate(pictures, 1):
        file = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        file.write_bytes(picture.png)
        print(f"{file}: {picture.width} x {picture.height}", file=sys.stderr)


def show_probes(results: Sequence[ProbeResult], as_json: bool) -> int:
    """Print what each probe showed and return 1 if a required one failed."""
    if as_json:
        print(json.dumps([dataclasses.asdict(result) for result in results], indent=2))
    else:
        for result in results:
            verdict = "PASS" if result.passed else "FAIL" if result.required else "open"
            print(f"{verdict}  {result.name:24} {result.shows}: {result.detail}")
    return 1 if any(result.required and not result.passed for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
