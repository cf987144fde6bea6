"""Who asks for what in which update."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.telegram.types import Address, Identity, InlineQuery, Request
from function.telegram.updates import read_gateway_query, read_message, read_update

MOST = 16384
BOT = Identity(7100000001, "pycalc_demo_bot")
ADA = {"id": 5, "is_bot": False, "first_name": "Ada"}
PRIVATE = {"id": 5, "type": "private"}
GROUP = {"id": -100, "type": "supergroup", "title": "Number lovers"}
THIS_BOT = {"id": BOT.id, "is_bot": True, "username": "PyCalc_Demo_Bot"}
FILE = {"document": {"file_id": "F1", "file_name": "Task.PY"}}


def asked(text: str | None, chat: Any = PRIVATE, **fields: Any) -> Request | None:
    message = {"message_id": 9, "from": ADA, "chat": chat, "date": 1} | fields
    return read_message(message if text is None else message | {"text": text}, BOT, MOST)


def asks(text: str | None, chat: Any = PRIVATE, **fields: Any) -> tuple[str, str] | None:
    request = asked(text, chat, **fields)
    return request and (request.action, request.text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2+2", ("run", "2+2")),
        ("/cl 2+2", ("run", "2+2")),
        ("/CL 2+2", ("run", "2+2")),
        ("/cl(2+2)", ("run", "(2+2)")),
        ("/cl\nfor i in []:\n    pass", ("run", "for i in []:\n    pass")),
        ("/cl@PyCalc_Demo_Bot 2*21", ("run", "2*21")),
        ("@pycalc_demo_bot 2+2", ("run", "2+2")),
        ("a = 90\na/cl", ("run", "a = 90\na/cl")),
        ("/cl", ("usage", "")),
        (" \n ", ("usage", "")),
        ("/start ref_42", ("start", "ref_42")),
        ("/start@pycalc_demo_bot", ("start", "")),
        ("/help", ("help", "")),
        ("/mode", ("mode", "")),
        ("/privacy", ("privacy", "")),
        ("/startling", ("unknown_command", "")),
        ("/model 3", ("unknown_command", "")),
        ("/cl@other_demo_bot 2+2", ("unknown_command", "")),
    ],
)
def test_a_private_message_asks_for(text: str, expected: tuple[str, str]) -> None:
    assert asks(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2+2", None),
        ("look: /cl 2+2", None),
        ("/clear", None),
        ("/cl@other_demo_bot 2+2", None),
        ("I like @pycalc_demo_bot very much", None),
        ("@pycalc_demo_bot2 2+2", None),
        ("/cl 2+2", ("run", "2+2")),
        ("/cl@pycalc_demo_bot\n2+2", ("run", "2+2")),
        ("@PyCalc_demo_bot, 2+2", ("run", "2+2")),
        ("@pycalc_demo_bot /cl 2+2", ("run", "2+2")),
        ("3*3 @pycalc_demo_bot", ("run", "3*3")),
        ("@pycalc_demo_bot", ("usage", "")),
        ("/help", ("help", "")),
        ("/nonsense@pycalc_demo_bot", ("unknown_command", "")),
    ],
)
def test_a_group_is_answered_only_when_it_asks(text: str, expected: tuple[str, str] | None) -> None:
    assert asks(text, GROUP) == expected
    assert asks(text, GROUP | {"type": "hologram"}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3+4", ("run", "3+4")),
        ("math.pi", ("run", "math.pi")),
        ("thanks!", ("reply", "")),
        ("👍", ("reply", "")),
    ],
)
def test_a_reply_to_the_bot_is_a_program_unless_it_is_conversation(
    text: str, expected: tuple[str, str] | None
) -> None:
    replied = {"message_id": 8, "from": THIS_BOT, "chat": GROUP, "text": "4 = 2+2"}
    assert asks(text, GROUP, reply_to_message=replied) == expected
    assert asks(text, GROUP, reply_to_message=replied | {"from": ADA}) is None


def test_a_topics_service_message_is_no_reply_to_the_bot_that_made_it() -> None:
    created = {"message_id": 8, "from": THIS_BOT, "chat": GROUP, "forum_topic_created": {}}
    topic = {"message_thread_id": 8, "is_topic_message": True, "reply_to_message": created}
    assert asks("3+4", GROUP, **topic) is None
    assert asks("/cl 3+4", GROUP, **topic) == ("run", "3+4")


def test_a_command_alone_runs_the_message_that_it_replies_to() -> None:
    replied = {"message_id": 8, "from": ADA, "chat": GROUP, "text": "```\n6*7\n```"}
    request = asked("/cl", GROUP, reply_to_message=replied)
    assert request is not None
    assert (request.text, request.address.message_id) == ("6*7", 9)


@pytest.mark.parametrize(
    ("author", "is_answered"),
    [
        ({"id": 1087968824, "is_bot": True}, True),
        ({"id": 136817688, "is_bot": True}, True),
        ({"id": 77, "is_bot": True}, False),
        (None, True),
        ("mira", True),
    ],
)
def test_bots_are_not_answered_but_people_behind_stand_ins_are(
    author: object, is_answered: bool
) -> None:
    request = asked("/cl 2", GROUP, **{"from": author, "sender_chat": {"id": -7}})
    assert (request is not None) is is_answered
    # Whoever posts as a channel cannot be told from others: their chat's limits are shared.
    assert request is None or request.user == GROUP["id"]


def test_a_person_who_posts_as_a_channel_is_that_person() -> None:
    request = asked("/cl 2", GROUP, sender_chat={"id": -7})
    assert request is not None
    assert request.user == ADA["id"]


def test_what_came_out_of_a_bot_is_not_answered() -> None:
    assert asks("4 = 2+2", via_bot=THIS_BOT) is None
    assert asks("/cl 4", GROUP, via_bot={"id": 1, "is_bot": True}) is None


def test_in_a_group_a_sticker_for_the_bot_is_not_answered_but_a_program_is() -> None:
    replied = {"message_id": 8, "from": THIS_BOT, "chat": GROUP, "text": "4 = 2+2"}
    assert asks(None, GROUP, reply_to_message=replied, sticker={"x": 1}) is None
    assert asks(None, GROUP, reply_to_message=replied, **FILE) == ("document", "F1")
    assert asks("/cl", GROUP, reply_to_message=replied) == ("usage", "")


@pytest.mark.parametrize("author", [{"is_bot": True, "id": [1]}, {"is_bot": 1, "id": {}}])
def test_an_author_of_any_shape_is_read(author: object) -> None:
    asks("/cl 2+2", GROUP, **{"from": author})


@pytest.mark.parametrize(
    "name", ["@pycalc_demo_bot", "\U0001f44b @PyCalc_demo_bot,", "  @pycalc_demo_bot"]
)
def test_the_name_alone_as_a_reply_runs_what_it_replies_to(name: str) -> None:
    replied = {"message_id": 8, "from": ADA, "chat": GROUP, "text": "6*7"}
    assert asks(name, GROUP, reply_to_message=replied) == ("run", "6*7")
    assert asks(f"{name} 2+2", GROUP, reply_to_message=replied) == ("run", "2+2")
    assert asks(name, GROUP) == ("usage", "")


def test_a_quoted_part_is_what_is_run() -> None:
    replied = {"message_id": 8, "from": ADA, "chat": GROUP, "text": "I say 6*7 is it"}
    quote = {"text": "6*7", "position": 6, "is_manual": True}
    assert asks("/cl", GROUP, reply_to_message=replied, quote=quote) == ("run", "6*7")
    assert asks("/cl", GROUP, quote=quote) == ("run", "6*7")
    assert asks("/cl 2", GROUP, reply_to_message=replied, quote=quote) == ("run", "2")


def test_a_text_that_is_longer_than_a_program_may_be_is_not_looked_at() -> None:
    assert asks("a," * MOST) == ("too_long", "")
    assert asks("/cl " + "a," * MOST, GROUP) == ("too_long", "")
    assert asks("a," * MOST, GROUP) is None
    query = {"id": "7", "from": ADA, "query": "1+" * 200 + "1"}
    assert read_update({"inline_query": query}, BOT, MOST) == InlineQuery("7", 5, "")


def test_captions_count_as_text() -> None:
    marks = [{"type": "code", "offset": 3, "length": 3}]
    assert asks(None, caption="is 2+2 right", photo=[{}], caption_entities=marks) == ("run", "2+2")
    assert asks(None, GROUP, caption="our holiday", photo=[{}]) is None


def test_a_python_file_is_the_program() -> None:
    assert asks(None, **FILE) == ("document", "F1")
    assert asks(None, GROUP, **FILE) is None
    assert asks(None, GROUP, caption="/cl", **FILE) == ("document", "F1")
    replied = {"message_id": 8, "from": ADA, "chat": GROUP, **FILE}
    assert asks("/cl", GROUP, reply_to_message=replied) == ("document", "F1")
    assert asks(None, document={"file_id": "F2", "file_name": "notes.txt"}) == ("no_text", "")


@pytest.mark.parametrize("kind", ["voice", "location", "sticker"])
def test_media_get_an_answer_in_private_only(kind: str) -> None:
    assert asks(None, **{kind: {"x": 1}}) == ("no_text", "")
    assert asks(None, GROUP, **{kind: {"x": 1}}) is None


@pytest.mark.parametrize("text", [None, 7, ["2+2"], {"a": 1}, ""])
def test_text_of_a_wrong_type_asks_for_nothing(text: object) -> None:
    assert (
        read_message({"message_id": 9, "from": ADA, "chat": PRIVATE, "text": text}, BOT, MOST)
        is None
    )


@pytest.mark.parametrize("chat", [None, {}, {"id": "5"}, {"id": True}, {"id": 1 << 70}, []])
def test_a_message_from_nowhere_asks_for_nothing(chat: object) -> None:
    assert asks("2+2", chat) is None


def test_a_topic_is_named_only_for_topic_messages() -> None:
    chain = asked("/cl 1", GROUP, message_thread_id=77)
    topic = asked("/cl 1", GROUP, message_thread_id=77, is_topic_message=True)
    assert chain is not None
    assert topic is not None
    assert chain.address.thread_id is None
    assert topic.address.thread_id == 77


@pytest.mark.parametrize(
    "update",
    [
        {"update_id": 1, "channel_post": {"chat": GROUP, "text": "/cl 2+2"}},
        {"update_id": 1, "telepathy_message": {"chat": PRIVATE, "text": "2+2"}},
        {"update_id": 1, "business_message": {"chat": PRIVATE, "text": "2+2"}},
        {"update_id": 1, "callback_query": {}},
        {"update_id": 1, "inline_query": {"query": "2+2"}},
        {"update_id": 1, "message": None},
        {"update_id": 1},
    ],
)
def test_other_updates_ask_for_nothing(update: Any) -> None:
    assert read_update(update, BOT, MOST) is None


def test_an_edited_message_is_known_as_such() -> None:
    request = read_update(
        {"edited_message": {"message_id": 9, "from": ADA, "chat": PRIVATE, "text": "2+3"}},
        BOT,
        MOST,
    )
    assert request == Request(Address(5, 9, None, True), 5, "run", "2+3", typed="2+3", edited=True)


def test_inline_queries_are_read_from_telegram_and_from_a_gateway() -> None:
    update = {"inline_query": {"id": "77", "from": ADA, "query": "2+2", "offset": ""}}
    forwarded = {"from_user_id": 5, "inline_query_id": "77", "query": "2+2"}
    assert (
        read_update(update, BOT, MOST)
        == read_gateway_query(forwarded)
        == InlineQuery("77", 5, "2+2")
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    *("message", "text", "from", "chat", "id", "type", "entities", "offset"),
                    *(
                        "length",
                        "is_bot",
                        "caption",
                        "document",
                        "file_id",
                        "reply_to_message",
                        "query",
                    ),
                )
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


@given(json_values)
def test_json_of_any_shape_is_read_without_raising(value: Any) -> None:
    for key in ("message", "edited_message", "inline_query"):
        read_update({"update_id": 1, key: value}, BOT, MOST)


@given(st.dictionaries(st.sampled_from(["from", "entities", "chat", "via_bot"]), json_values))
def test_a_message_with_members_of_any_shape_is_read_without_raising(members: Any) -> None:
    read_message({"message_id": 1, "chat": PRIVATE, "text": "/cl 2+2"} | members, BOT, MOST)
