"""What `input` reads: the lines that came with the program, and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.check.checker import check
from sandbox.policy.loader import Policy, load_policy
from sandbox.sandbox import Sandbox


@pytest.mark.parametrize(
    ("program", "stdin", "output"),
    [
        ("a = int(input())\nb = int(input())\na + b", "2\n3", "5\n"),
        ("[int(x) for x in input().split()]", "1 2 3\n", "[1, 2, 3]\n"),
        ("x = input('n? ')\nprint(repr(x))", " a \n", "n? ' a '\n"),
        ("[input() for _ in range(3)]", "a\n\nb", "['a', '', 'b']\n"),
        ("list(iter(input, 'end'))", "1\n2\nend\n3", "['1', '2']\n"),
        ("import sys\nsys.stdin.readline(), sys.stdin.read()", "1\n2\n3", "('1\\n', '2\\n3')\n"),
        ("import sys\n[int(line) for line in sys.stdin]", "1\n2\n", "[1, 2]\n"),
        (
            "from sys import stdin\nnext(stdin), stdin.readlines(), stdin.readline()",
            "a\nb",
            "('a\\n', ['b'], '')\n",
        ),
        ("import sys\ninput = sys.stdin.readline\nint(input()) + int(input())", "1\n2", "3\n"),
        ("input()", "\ud800 \U0001f600", "\\ud800 \U0001f600\n"),
    ],
)
def test_input_reads_the_lines_that_came(
    program: str, stdin: str, output: str, sandbox: Sandbox
) -> None:
    outcome = sandbox.run(program, stdin=stdin)
    assert (outcome.kind, outcome.output) == ("ok", output)


def test_a_program_that_asks_for_more_is_told_as_python_tells_it(sandbox: Sandbox) -> None:
    outcome = sandbox.run("a = input('a? ')\nb = input('b? ')", stdin="1")
    assert (outcome.kind, outcome.output) == ("error", "a? b? ")
    assert outcome.error == "EOFError: EOF when reading a line (line 2)"
    assert sandbox.run("try: input()\nexcept EOFError: print('end')").output == "end\n"
    for ask in ("sys.stdin.read()", "sys.stdin.readline()", "list(sys.stdin)", "next(sys.stdin)"):
        outcome = sandbox.run(f"import sys\n{ask}")
        assert outcome.error == "EOFError: EOF when reading a line (line 2)"


def test_lines_beyond_the_limit_are_refused(sandbox: Sandbox) -> None:
    limit = sandbox.policy.limits.input_bytes
    assert sandbox.run("len(input())", stdin="x" * limit).output == f"{limit}\n"
    outcome = sandbox.run("len(input())", stdin="x" * (limit + 1))
    assert outcome.kind == "rejected"
    assert f"at most {limit}" in outcome.error


@pytest.mark.parametrize("value", ["input_bytes: 0", ""])
def test_without_lines_the_name_is_refused_and_gone(
    value: str, policy: Policy, tmp_path: Path
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(policy.path.read_text().replace("input_bytes: 4096", value))
    strict = load_policy(path)
    assert "input" in strict.dangerous_names
    assert [each.rule for each in check("x = input()", strict)] == ["dangerous-name"]
    assert check("x = input()", replace(strict, dangerous_names=policy.dangerous_names)) == []
