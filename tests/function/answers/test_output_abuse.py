"""Programs that print what hurts: each is answered, and nothing of it reaches Telegram."""

import json
import re
import unicodedata
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from function import natural
from function.answers.inline import articles
from function.answers.replies import reply
from function.calculator import calculate, read_program
from function.parts import text_of
from function.telegram.lengths import units
from function.telegram.sanitise import is_blank
from sandbox.sandbox import Sandbox

CORPUS = Path(__file__).parents[2] / "corpus" / "attacks.jsonl"
ROWS = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
OUTPUT_ABUSE = [row for row in ROWS if row["kind"] == "output-abuse"]
TOKEN_SHAPE = re.compile(r"\d{6,12}:[A-Za-z0-9_-]{35}")


class UncheckedSandbox(Sandbox):
    """Takes programs past the checker, as those that need a bypass are meant."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._policy = sandbox.policy
        self.run = partial(sandbox.run, unchecked=True)  # type: ignore[method-assign]


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in OUTPUT_ABUSE])
def test_what_a_program_prints_can_do_no_harm(row: dict[str, Any], sandbox: Sandbox) -> None:
    needs_bypass = row.get("policy") == "needs_bypass"
    program = read_program(row["source"], None, sandbox.policy)
    unchecked = UncheckedSandbox(sandbox) if needs_bypass else sandbox
    answer = calculate(program, unchecked, documents=True)
    said = reply(answer, sandbox.policy)
    texts = [text_of(said.message), said.document, text_of(said.caption)]
    texts += [text_of(each.message) for each in articles(answer, sandbox.policy)]
    assert not is_blank(texts[0])
    for text in texts[:1] + texts[3:]:
        assert units(text) <= row["expect"].get("utf16_max", 4096)
    for text in texts:
        text.encode()
        bare = "".join(c for c in text if unicodedata.category(c)[0] not in "CZ")
        assert not TOKEN_SHAPE.search(text)
        assert not TOKEN_SHAPE.search(bare)
        if "must_not_match" in row["expect"]:
            assert not re.search(row["expect"]["must_not_match"], text)
        assert not any(part in text for part in row["expect"].get("must_not_contain", []))
    if row["expect"].get("literal"):
        assert answer.outcome.output.strip() in texts[0]
        assert any(part.kind for part in said.message)


@pytest.mark.parametrize(
    "typed",
    [
        "print 'x` @durov https://evil.example/a `y'",
        "Len('a` t.me/evil_bot @durov `b')",
        "if 1 then ` @durov https://evil.example/a ` b",
        "Print('` @durov /start https://evil.example `')",
        "import evil.example",
        "from t.me import durov",
    ],
)
def test_nothing_that_a_stranger_wrote_stands_outside_code(typed: str, sandbox: Sandbox) -> None:
    program = read_program(typed, natural, sandbox.policy)
    answer = calculate(program, sandbox, natural)
    said = [reply(answer, sandbox.policy).message]
    said += [each.message for each in articles(answer, sandbox.policy)]
    for message in said:
        bare = "".join(part.text for part in message if not part.kind)
        assert not any(word in bare for word in ("@durov", "evil.example", "t.me"))
