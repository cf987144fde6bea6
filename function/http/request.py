"""What a route asks of a request: a secret, and a JSON object that came whole, in time."""

import contextlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

import falcon
from gunicorn.http.errors import ParseException

from function.telegram.types import Json

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # nosec B105: the header's name
BODY_BYTES = 1 << 20  # of the server's own responses too; updates are far smaller
MOST_VALUES = 50_000  # of a body, in which 350,000 empty lists fit: 60 ms and 30 MiB to parse
DISCARDED_BYTES = 8 << 20  # of a body that is refused
_PIECE_BYTES = 1 << 16


def demand(accepted: Sequence[str], *offered: str | None) -> None:
    """Raise 401 unless nothing is demanded or one of the offered secrets is accepted."""
    if accepted and not knows(accepted, *offered):
        raise falcon.HTTPUnauthorized(title="the secret is missing or wrong")


def knows(accepted: Sequence[str], *offered: str | None) -> bool:
    """Whether one of the offered secrets is accepted; takes as long for any that is not."""
    matches = [
        hmac.compare_digest(secret.encode(), offer.encode(errors="replace"))
        for secret in accepted
        for offer in offered
        if offer
    ]
    return any(matches)


def credentials(req: falcon.Request) -> tuple[str | None, ...]:
    """What a gateway or an operator offers: Authorization: Bearer SECRET, or Telegram's header."""
    scheme, _, offered = (req.auth or "").strip().rpartition(" ")
    bearer = offered if scheme.lower() in ("", "bearer") else None
    return bearer, req.get_header(SECRET_HEADER)


def read_object(req: falcon.Request) -> Json:
    """Return the body, a JSON object in UTF-8, of a stated length or in chunks.

    Raises the HTTP error that fits: 408 where the body ends early or the request's deadline passes
    (see `server`), 413 for more than BODY_BYTES or MOST_VALUES, 415 for another type, 400 for no
    JSON object.
    """
    if (req.content_type or "").partition(";")[0].strip().lower() != falcon.MEDIA_JSON:
        raise falcon.HTTPUnsupportedMediaType(title="Content-Type must be application/json")
    length = req.content_length or 0
    try:
        content = b"" if length > BODY_BYTES else req.stream.read(length or BODY_BYTES + 1)
    except ParseException:
        raise falcon.HTTPBadRequest(title="the body's chunks are malformed") from None
    except OSError:
        content, length = b"", 1
    if max(length, len(content)) > BODY_BYTES:
        raise falcon.HTTPContentTooLarge(title=f"the body is longer than {BODY_BYTES} bytes")
    if content.count(b",") > MOST_VALUES:  # those in texts too: no program that may run has as many
        raise falcon.HTTPContentTooLarge(title=f"the body has more than {MOST_VALUES} commas")
    if len(content) < length:
        raise falcon.HTTPError(falcon.HTTP_408, title="the body did not come whole in time")
    try:
        body = _decoder.decode(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise falcon.HTTPBadRequest(title="the body is not JSON in UTF-8") from None
    if not isinstance(body, dict):
        raise falcon.HTTPBadRequest(title="the body is no JSON object")
    return body


def discard_body(req: falcon.Request) -> None:
    """Read what is left of a refused body: gunicorn drops a connection of which much is unread."""
    left = DISCARDED_BYTES if (req.content_length or 0) <= DISCARDED_BYTES else 0
    with contextlib.suppress(OSError, ParseException):
        while left > 0 and (piece := req.stream.read(_PIECE_BYTES)):
            left -= len(piece)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)  # json.loads makes one each time: 4 us
