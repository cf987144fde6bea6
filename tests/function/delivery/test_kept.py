"""Answers survive being kept, and nothing else is read from the store."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.delivery.kept import decode, encode
from function.parts import Part
from function.telegram.types import Reply

kept_parts = st.lists(
    st.builds(Part, st.sampled_from(["", "code", "pre"]), st.text()), max_size=4
).map(tuple)


@given(st.builds(Reply, kept_parts, kept_parts, st.text(), st.booleans(), st.just(())))
def test_a_reply_is_read_back_as_it_was(reply: Reply) -> None:
    assert decode(encode(reply)) == reply


def test_that_nothing_is_said_is_read_back_too() -> None:
    assert decode(encode(None)) is None


@pytest.mark.parametrize(
    "kept",
    [
        5,
        "text",
        [1, 2],
        {"method": "banChatMember", "chat_id": -100, "user_id": 7},
        {"message": [["", "4"]], "caption": [], "document": "", "asks": False},
        [[["", "4"]], [], 5, False],
        [[["text_link", "4"]], [], "", False],
        ["4", [], "", False],
    ],
)
def test_anything_else_is_no_answer(kept: Any) -> None:
    with pytest.raises(ValueError, match="no "):
        decode(json.dumps(kept))


@pytest.mark.parametrize("text", ["", "garbage", '{"a": NaN'])
def test_a_text_that_is_no_json_is_no_answer(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        decode(text)
