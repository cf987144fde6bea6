"""Coverage-guided fuzzing of the checker or the policy loader, until an exception or a hang.

    python tests/fuzz/fuzz.py checker [LIBFUZZER OPTIONS] [FOLDER]     e.g. -max_total_time=3600
    python tests/fuzz/fuzz.py policy  [LIBFUZZER OPTIONS] [FOLDER]

Needs atheris. FOLDER, where given, holds inputs to start from and takes the new ones; without it
the corpora and policy.yaml are the start. What fails is written to ./crash-... or ./timeout-....
"""

import json
import sys
import tempfile
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

with atheris.instrument_imports(include=["sandbox"]):
    from sandbox.check.checker import MOST_VIOLATIONS, check
    from sandbox.policy.loader import PolicyError, load_policy

POLICY = load_policy(ROOT / "policy.yaml")


def seeds(target: str) -> list[bytes]:
    """Inputs to start from."""
    if target == "policy":
        return [(ROOT / "policy.yaml").read_bytes()]
    lines = [
        line
        for name in ("attacks.jsonl", "benign.jsonl")
        for line in (ROOT / "tests/corpus" / name).read_text("utf-8").splitlines()
    ]
    return [json.loads(line)["source"].encode("utf-8", "surrogatepass") for line in lines]


def judge_program(data: bytes) -> None:
    """Check the bytes as a program's text; lone surrogates included."""
    found = check(data.decode("utf-8", "surrogateescape"), POLICY)
    if len(found) > MOST_VIOLATIONS or any(one.line < 1 or one.column < 1 for one in found):
        raise AssertionError(found)


def judge_policy(data: bytes) -> None:
    """Load the bytes as a policy file."""
    FILE.write_bytes(data)
    try:
        load_policy(FILE)
    except PolicyError as error:
        if not all(one.line >= 1 and one.message and one.cure for one in error.findings):
            raise AssertionError(error.findings) from error


if __name__ == "__main__":
    target, *options = sys.argv[1:] or ["--help"]
    judges = {"checker": judge_program, "policy": judge_policy}
    if target not in judges:
        sys.stdout.write(__doc__)
        raise SystemExit(0 if target in ("--help", "-h") else 2)
    with tempfile.TemporaryDirectory() as folder:
        FILE = Path(folder, "policy.yaml")
        if not options or options[-1].startswith("-"):
            start = Path(folder, "seeds")
            start.mkdir()
            for number, seed in enumerate(seeds(target)):
                (start / str(number)).write_bytes(seed)
            options.append(str(start))
        atheris.Setup([sys.argv[0], "-timeout=5", "-max_len=16384", *options], judges[target])
        atheris.Fuzz()
