"""Calls with pictures, as bodies that the server reads."""

import json

import pytest

from function.parts import code, parts
from function.telegram import calls
from function.telegram.body import encode
from function.telegram.types import Address, File, Json, Reply, Request
from sandbox import Picture
from tests import bot_api_server

REQUEST = Request(Address(-7, 5, 3, private=False), 5, "run")
PHOTO = Picture(b"\x89PNG\r\n\x1a\n a", 640, 480)
OTHER = Picture(b"\x89PNG\r\n\x1a\n b\r\n--", 640, 480)
BANNER = Picture(b"\x89PNG\r\n\x1a\n c", 4000, 100)
CAPTION = parts("Größe: ", code("'2' = 2"))


def read(call: Json) -> tuple[Json, dict[str, tuple[str, bytes]]]:
    """Return parameters and uploads as the server reads them, which has nothing against them."""
    body, content_type = encode({name: call[name] for name in call if name != "method"})
    params, files = bot_api_server.read_body(content_type, body)
    assert bot_api_server.problems(call["method"], params, tuple(files)) == []
    return params, files


@pytest.mark.parametrize(
    ("picture", "method", "name"),
    [(PHOTO, "sendPhoto", "photo"), (BANNER, "sendDocument", "document")],
)
def test_a_picture_is_a_photo_or_where_telegram_takes_none_a_document(
    picture: Picture, method: str, name: str
) -> None:
    call = calls.answer(REQUEST, Reply((), CAPTION, pictures=(picture,)))
    params, files = read(call)
    assert call["method"] == method
    assert files == {name: ("picture.png", picture.png)}
    assert (params["chat_id"], params["caption"]) == (-7, "Größe: '2' = 2")
    assert params["caption_entities"] == [{"type": "code", "offset": 7, "length": 7}]
    assert params["reply_parameters"]["message_id"] == 5


@pytest.mark.parametrize(("second", "kind"), [(OTHER, "photo"), (BANNER, "document")])
def test_several_are_an_album_of_one_kind_whose_first_has_the_caption(
    second: Picture, kind: str
) -> None:
    call = calls.answer(REQUEST, Reply((), CAPTION, pictures=(PHOTO, second)))
    params, files = read(call)
    assert call["method"] == "sendMediaGroup"
    assert [each["type"] for each in params["media"]] == [kind, kind]
    assert ["caption" in each for each in params["media"]] == [True, False]
    names = [each["media"].removeprefix("attach://") for each in params["media"]]
    assert [files[name][1] for name in names] == [PHOTO.png, second.png]


def test_a_picture_takes_the_place_of_an_earlier_answer() -> None:
    call = calls.edit(-7, 9, Reply((), pictures=(PHOTO,)))
    params, files = read(call)
    assert (call["method"], params["message_id"]) == ("editMessageMedia", 9)
    assert params["media"]["media"] == f"attach://{next(iter(files))}"
    assert "caption" not in params["media"]


def test_a_call_without_files_is_json() -> None:
    call = calls.answer(REQUEST, Reply(CAPTION))
    body, content_type = encode(call)
    assert (json.loads(body), content_type) == (call, "application/json")


def test_nothing_in_a_file_or_its_name_breaks_out_of_its_part() -> None:
    odd = File(
        'a"\r\nX: y.png', b'\r\n--x\r\nContent-Disposition: form-data; name="chat_id"', "a/b"
    )
    _, files = read({"method": "sendPhoto", "chat_id": 1, "photo": odd})
    assert list(files) == ["photo"]
    assert files["photo"][1] == odd.content
