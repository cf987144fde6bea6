"""Runs one program as the bot would, without HTTP, and prints the answer.

Exits with 0 if the program ended well, 1 if it did not, 2 if it could not be tried.
"""

import argparse
import base64
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from functools import partialmethod
from pathlib import Path

from function import __version__, natural
from function.answers.inline import articles
from function.answers.replies import render
from function.calculator import Answer, calculate, read_program
from function.parts import text_of
from function.settings import Settings
from sandbox import Picture, Policy, PolicyError, Sandbox, SandboxUnavailable, load_policy
from sandbox.self_test import ProbeResult


class Unchecked(Sandbox):
    """A sandbox without checker, import guard and reduced builtins: with the system's layers."""

    run = partialmethod(Sandbox.run, unchecked=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the program that the command line names and return the exit status."""
    options = read_arguments(arguments)
    if options.unchecked:
        print("UNCHECKED: only the operating system's layers are in force.", file=sys.stderr)
    try:
        policy = load_policy(options.policy)
        secret = os.environ.get("CONFIG_PATH") or str(Settings.config_path)
        with closing((Unchecked if options.unchecked else Sandbox)(policy, [secret])) as sandbox:
            sandbox.start()
            if options.probe:
                return show_probes(sandbox.probe(), options.json)
            program = read_program(options.program, natural, policy)
            answer = calculate(program, sandbox, natural, inline=options.inline)
        write_pictures(options.picture, answer.outcome.pictures)
    except (OSError, PolicyError, SandboxUnavailable) as error:
        print(error, file=sys.stderr)
        return 2
    show(answer, policy, options)
    return 0 if answer.outcome.kind == "ok" else 1


def read_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line; `program` is then the program's text."""
    parser = argparse.ArgumentParser(prog="calc", description=__doc__)
    add = parser.add_argument
    its_text = "its text, or - for standard input; after -- if it begins with a minus sign"
    add("program", nargs="?", metavar="PROGRAM", help=its_text)
    add("--json", action="store_true", help="print the whole outcome as JSON")
    drawn = "write what the program draws to FILE, a further picture to FILE-2 and so on, as PNG"
    add("--picture", type=Path, metavar="FILE", help=drawn)
    add("--inline", action="store_true", help="answer as to an inline query")
    usual = os.environ.get("POLICY_PATH") or Settings.policy_path
    add("--policy", type=Path, default=usual, metavar="FILE", help="instead of policy.yaml")
    skipped = "the checker, the import guard and the reduced builtins"
    alone = f"skip {skipped}: try the operating system's layers alone"
    add("--unchecked", action="store_true", help=alone)
    probed = "instead of a program: try everything that must be refused, and show what refuses it"
    add("--probe", action="store_true", help=probed)
    add("--version", action="version", version=__version__)
    options = parser.parse_args(arguments)
    if (options.program is None) != options.probe:
        parser.error("a PROGRAM or --probe is needed, and not both")
    if options.program == "-":
        options.program = sys.stdin.buffer.read().decode("utf-8", "replace")
    return options


def show(answer: Answer, policy: Policy, options: argparse.Namespace) -> None:
    """Print an answer as a chat or an inline query has it, or all that is known as JSON."""
    outcome = answer.outcome
    if options.json:
        pictures = [base64.b64encode(picture.png).decode() for picture in outcome.pictures]
        told = outcome._asdict() | {"pictures": pictures}
        print(json.dumps(told, indent=2, default=dataclasses.asdict))
    elif options.inline:
        for article in articles(answer, policy):
            print(text_of(article.message))
    else:
        text = text_of(render(answer, policy, with_pictures=bool(outcome.pictures)))
        print(text, end="\n" if text else "")


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
