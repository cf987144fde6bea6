"""Method calls that answer (https://core.telegram.org/bots/api#available-methods)."""

from collections.abc import Sequence

from function.parts import Parts, text_of
from function.telegram.lengths import units
from function.telegram.types import File, Json, Reply, Request, Results
from sandbox import Picture


def answer(request: Request, reply: Reply) -> Json:
    """The call that says a reply; in groups, or after an edit, as a reply to the message."""
    where = _where(request)
    if not reply.pictures:
        call = {"method": "sendMessage", **where, **_message(reply.message)}
        # The user's client offers to reply (https://core.telegram.org/bots/api#forcereply).
        forced = {"reply_markup": {"force_reply": True, "selective": True}}
        return call | forced if reply.asks else call
    first, *others = _media(reply.pictures)
    caption = with_entities("caption", reply.caption)
    if others:  # the first one's caption is shown below all of them
        return {"method": "sendMediaGroup", **where, "media": [first | caption, *others]}
    method = "sendPhoto" if first["type"] == "photo" else "sendDocument"
    return {"method": method, **where, **caption, first["type"]: first["media"]}


def document(request: Request, caption: Parts, text: str) -> Json:
    """The same with a long output as a file."""
    file = File("output.txt", text.encode(), "text/plain; charset=utf-8")
    call = {"method": "sendDocument", **_where(request), "document": file}
    return call | with_entities("caption", caption)


def edit(chat_id: int, message_id: int, reply: Reply) -> Json:
    """The call that puts a reply, with one picture at most, into a message of the bot's own."""
    where = {"chat_id": chat_id, "message_id": message_id}
    if not reply.pictures:
        return {"method": "editMessageText", **where, **_message(reply.message)}
    [media] = _media(reply.pictures)
    media |= with_entities("caption", reply.caption)
    return {"method": "editMessageMedia", **where, "media": media}


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
                "input_message_content": _message(article.message, "message_text"),
            }
            for article in results.articles
        ],
        "cache_time": results.cache_seconds,
        "is_personal": results.cache_seconds == 0,
    }


def with_entities(field: str, message: Parts) -> Json:
    """A text with its formatting (#messageentity), in a field of this name; {} for no text.

    Offset and length are in UTF-16 units.
    """
    entities, offset = [], 0
    for kind, text in message:
        length = units(text)
        if kind and length:
            entities.append({"type": kind, "offset": offset, "length": length})
        offset += length
    texts: Json = {field: text_of(message)} if message else {}
    return texts | ({_ENTITIES[field]: entities} if entities else {})


_ENTITIES = {"text": "entities", "message_text": "entities", "caption": "caption_entities"}


def _message(message: Parts, field: str = "text") -> Json:
    return with_entities(field, message) | {"link_preview_options": {"is_disabled": True}}


def _where(request: Request) -> Json:
    address = request.address
    where: Json = {"chat_id": address.chat_id}
    if address.thread_id is not None:
        where["message_thread_id"] = address.thread_id
    if address.message_id is not None and (request.edited or not address.private):
        target = {"message_id": address.message_id, "allow_sending_without_reply": True}
        where["reply_parameters"] = target
    return where


def _media(pictures: Sequence[Picture]) -> list[Json]:
    """Pictures as photos; as documents where one is none."""
    kind = "photo" if all(picture.is_photo for picture in pictures) else "document"
    files = (File("picture.png", picture.png, "image/png") for picture in pictures)
    return [{"type": kind, "media": file} for file in files]
