"""Method calls that answer (https://core.telegram.org/bots/api#available-methods)."""

from collections.abc import Sequence

from function.parts import Parts, text_of
from function.telegram.lengths import units
from function.telegram.types import Address, File, Json, Results
from sandbox import Picture


def send_message(
    address: Address, message: Parts, *, as_reply: bool = False, asks: bool = False
) -> Json:
    """The call that answers; in groups, or with `as_reply`, as a reply to the message.

    With `asks` the user's client offers to reply (https://core.telegram.org/bots/api#forcereply).
    """
    call: Json = {"method": "sendMessage", **_where(address, as_reply), **_content(message)}
    return call | ({"reply_markup": {"force_reply": True, "selective": True}} if asks else {})


def send_document(
    address: Address, caption: Parts, document: File, *, as_reply: bool = False
) -> Json:
    """The same with a file."""
    where = _where(address, as_reply)
    return {"method": "sendDocument", **where, **caption_fields(caption), "document": document}


def send_pictures(
    address: Address, caption: Parts, pictures: Sequence[Picture], *, as_reply: bool = False
) -> Json:
    """The same with pictures, several as an album; as documents where one is no photo."""
    where, kind = _where(address, as_reply), _kind(pictures)
    if len(pictures) == 1:
        method = "sendPhoto" if kind == "photo" else "sendDocument"
        return {"method": method, **where, **caption_fields(caption), kind: _file(pictures[0])}
    media: list[Json] = [{"type": kind, "media": _file(picture)} for picture in pictures]
    media[0] |= caption_fields(caption)  # which is shown below all of them
    return {"method": "sendMediaGroup", **where, "media": media}


def edit_message(chat_id: int, message_id: int, message: Parts) -> Json:
    """The call that puts another text into a message of the bot's own."""
    call = {"method": "editMessageText", "chat_id": chat_id, "message_id": message_id}
    return call | _content(message)


def edit_picture(chat_id: int, message_id: int, caption: Parts, picture: Picture) -> Json:
    """The call that puts a picture into a message of the bot's own."""
    media = {"type": _kind([picture]), "media": _file(picture), **caption_fields(caption)}
    return {
        "method": "editMessageMedia",
        "chat_id": chat_id,
        "message_id": message_id,
        "media": media,
    }


def answer_inline_query(query_id: str, results: Results) -> Json:
    """The call that shows results; those not to be kept are shown to the one person alone."""
    return {
        "method": "answerInlineQuery",
        "inline_query_id": query_id,
        "results": [
            {
                "type": "article",
                "id": article.id,
                "title": article.title,
                **({"description": article.description} if article.description else {}),
                "input_message_content": _content(article.message, text="message_text"),
            }
            for article in results.articles
        ],
        "cache_time": results.cache_seconds,
        "is_personal": results.cache_seconds == 0,
    }


def _where(address: Address, as_reply: bool) -> Json:
    where: Json = {"chat_id": address.chat_id}
    if address.thread_id is not None:
        where["message_thread_id"] = address.thread_id
    if address.message_id is not None and (as_reply or not address.private):
        target = {"message_id": address.message_id, "allow_sending_without_reply": True}
        where["reply_parameters"] = target
    return where


def _content(message: Parts, text: str = "text") -> Json:
    content: Json = {text: text_of(message), "link_preview_options": {"is_disabled": True}}
    if entities := _entities(message):
        content["entities"] = entities
    return content


def caption_fields(caption: Parts) -> Json:
    """A caption with its entities, in the Bot API's fields; {} for none."""
    call: Json = {"caption": text_of(caption)} if caption else {}
    if entities := _entities(caption):
        call["caption_entities"] = entities
    return call


def _kind(pictures: Sequence[Picture]) -> str:
    return "photo" if all(picture.is_photo for picture in pictures) else "document"


def _file(picture: Picture) -> File:
    return File("picture.png", picture.png, "image/png")


def _entities(message: Parts) -> list[Json]:
    """Formatting by position (#messageentity): offset and length are in UTF-16 units."""
    entities, offset = [], 0
    for kind, text in message:
        length = units(text)
        if kind and length:
            entities.append({"type": kind, "offset": offset, "length": length})
        offset += length
    return entities
