"""Each update once, whatever the network repeats; an edit only if the text has changed."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from function.bot import Bot
from function.delivery.deduplicate import Deduplication
from function.delivery.lease import Leases
from function.errors import Busy
from function.state import Store
from function.state.memory import Memory
from function.state.signed import Signed
from function.telegram.types import Identity
from sandbox.sandbox import Outcome
from tests.conftest import message
from tests.function.conftest import ScriptedSandbox


def updates_for(scripted: ScriptedSandbox, store: Store) -> Deduplication:
    bot = Bot(scripted, store, Identity())
    return Deduplication(bot, Signed(store, ""), Leases(store))


@pytest.fixture
def updates(scripted: ScriptedSandbox) -> Deduplication:
    return updates_for(scripted, Memory())


def sent(update_id: int, text: str, **fields: Any) -> dict[str, Any]:
    return {"update_id": update_id, "message": message(text, **fields)}


def edited(update_id: int, text: str, **fields: Any) -> dict[str, Any]:
    return {"update_id": update_id, "edited_message": message(text, **fields)}


def test_a_repeat_gets_the_first_answer_again(
    updates: Deduplication, scripted: ScriptedSandbox
) -> None:
    first = updates.answer(sent(7, "2+2"))
    assert first is not None
    assert updates.answer(sent(7, "2+2")) == first
    assert scripted.programs == ["2+2"]


def test_updates_may_come_out_of_order(updates: Deduplication, scripted: ScriptedSandbox) -> None:
    for number in (9, 3, 9, 5, 3):
        updates.answer(sent(number, str(number)))
    assert scripted.programs == ["9", "3", "5"]


def test_a_repeated_mode_does_not_change_it_back(updates: Deduplication) -> None:
    assert updates.answer(sent(1, "/mode")) == updates.answer(sent(1, "/mode"))


def test_a_repeat_is_known_to_another_copy_that_shares_the_store(scripted: ScriptedSandbox) -> None:
    store = Memory()
    first = updates_for(scripted, store).answer(sent(7, "2+2"))
    assert updates_for(scripted, store).answer(sent(7, "2+2")) == first
    assert scripted.programs == ["2+2"]


@pytest.mark.parametrize("at", ["the same copy", "another copy"])
def test_a_repeat_that_comes_meanwhile_waits_for_the_first(
    scripted: ScriptedSandbox, at: str
) -> None:
    store = Memory()
    one = updates_for(scripted, store)
    other = one if at == "the same copy" else updates_for(scripted, store)
    started, release = threading.Event(), threading.Event()

    def wait(source: str) -> Outcome:
        started.set()
        release.wait(10)
        return Outcome("ok", "4")

    scripted.script = wait
    with ThreadPoolExecutor() as threads:
        first = threads.submit(one.answer, sent(7, "2+2"))
        started.wait(10)
        repeats = [threads.submit(other.answer, sent(7, "2+2")) for _ in range(3)]
        assert not any(repeat.done() for repeat in repeats)
        release.set()
        assert {repeat.result()["text"] for repeat in repeats} == {first.result()["text"]}
    assert scripted.programs == ["2+2"]


def test_an_update_that_nobody_had_time_for_is_taken_again(
    updates: Deduplication, scripted: ScriptedSandbox
) -> None:
    scripted.script = lambda source: Outcome("busy")
    with pytest.raises(Busy):
        updates.answer(sent(7, "2+2"))
    scripted.script = lambda source: Outcome("ok", "4")
    assert updates.answer(sent(7, "2+2"))["text"] == "4 = 2+2"


def test_an_edit_is_answered_by_a_reply_to_the_edited_message(updates: Deduplication) -> None:
    updates.answer(sent(1, "2+2", message_id=50))
    call = updates.answer(edited(2, "2+3", message_id=50))
    assert call["text"] == "2+3 = 2+3"
    assert call["reply_parameters"]["message_id"] == 50


def test_an_edit_that_leaves_the_text_is_ignored(
    updates: Deduplication, scripted: ScriptedSandbox
) -> None:
    updates.answer(sent(1, "2+2", message_id=50))
    assert updates.answer(edited(2, "2+2", message_id=50)) is None
    assert updates.answer(edited(3, "2+3", message_id=50)) is not None
    assert updates.answer(edited(4, "2+3", message_id=50)) is None
    assert scripted.programs == ["2+2", "2+3"]


def test_an_edit_of_a_message_that_was_never_answered_is_ignored(
    updates: Deduplication, scripted: ScriptedSandbox
) -> None:
    assert updates.answer(edited(2, "2+3", message_id=50)) is None
    assert scripted.programs == []


def test_an_edit_whose_worker_died_before_its_answer_was_kept_is_answered_by_the_next(
    scripted: ScriptedSandbox,
) -> None:
    class Dying(Memory):
        def set(self, key: str, value: str, seconds: float) -> None:
            if key == "update:2" and not dead:
                dead.append(key)
                raise SystemExit
            super().set(key, value, seconds)

    dead: list[str] = []
    updates = updates_for(scripted, Dying())
    updates.answer(sent(1, "2+2", message_id=50))
    with pytest.raises(SystemExit):
        updates.answer(edited(2, "2+3", message_id=50))
    assert updates.answer(edited(2, "2+3", message_id=50))["text"] == "2+3 = 2+3"
    assert updates.answer(edited(3, "2+3", message_id=50)) is None


def test_a_usage_hint_can_be_mended_by_an_edit(updates: Deduplication) -> None:
    updates.answer(sent(1, "/cl", message_id=50))
    assert updates.answer(edited(2, "/cl 2+2", message_id=50))["text"] == "2+2 = 2+2"


def test_an_edited_setting_is_not_changed_again(updates: Deduplication) -> None:
    updates.answer(sent(1, "2+2", message_id=50))
    assert updates.answer(edited(2, "/mode", message_id=50)) is None


def test_what_another_wrote_into_the_store_is_never_the_answer(
    scripted: ScriptedSandbox,
) -> None:
    store = Memory()
    forged = '{"method": "banChatMember", "chat_id": -100, "user_id": 7}'
    store.set("update:7", forged, 100)
    call = updates_for(scripted, store).answer(sent(7, "2+2"))
    assert call is not None
    assert (call["method"], call["text"]) == ("sendMessage", "2+2 = 2+2")
