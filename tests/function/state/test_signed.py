"""What is kept is not believed: only holders of the token can have written it."""

import pytest

from function.state.memory import Memory
from function.state.signed import Signed

TOKEN = "7100000001:" + "A" * 35


def test_a_text_is_read_back_by_all_who_know_the_token() -> None:
    store = Memory()
    Signed(store, TOKEN).set("update:1", "4 = 2+2 \U0001f600", 100)
    assert Signed(store, TOKEN).get("update:1") == "4 = 2+2 \U0001f600"
    Signed(store, TOKEN).set("update:1", "", 100)
    assert store.get("update:1") is None


@pytest.mark.parametrize("value", ["5", '{"method": "banChatMember"}', "\ud800", "x" * 200])
def test_a_text_that_another_wrote_is_deleted_and_not_returned(value: str) -> None:
    store = Memory()
    store.set("update:1", value, 100)
    assert Signed(store, TOKEN).get("update:1") is None
    assert store.get("update:1") is None


def test_a_text_of_another_bot_or_for_another_key_is_not_returned() -> None:
    store = Memory()
    Signed(store, "8:other").set("update:1", "4", 100)
    assert Signed(store, TOKEN).get("update:1") is None
    Signed(store, TOKEN).set("update:1", "4", 100)
    store.set("update:2", store.get("update:1") or "", 100)
    assert Signed(store, TOKEN).get("update:2") is None
