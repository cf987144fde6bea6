"""Pictures that a guest made: a stranger's bytes, which are checked and never decoded here.

A PNG is a signature and chunks (https://www.w3.org/TR/png-3/#5DataRep). What leaves this module
holds the chunks that a picture is made of and nothing else: no text, no animation, nothing behind
the end.
"""

import zlib
from dataclasses import dataclass
from itertools import pairwise

MOST_PIXELS = 25_000_000  # 100 MB in whatever shows it
# sendPhoto (https://core.telegram.org/bots/api#sendphoto); else it must be sent as a document.
PHOTO_SIDES = 10_000
PHOTO_RATIO = 20

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Allowed bit depths by colour type: grey, RGB, palette, grey with alpha, RGB with alpha.
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PALETTE = 3
_KEPT = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")


class NotAPicture(ValueError):
    """What is wrong with the bytes, as a person may read it."""


@dataclass(frozen=True)
class Picture:
    """A PNG of well-formed chunks; its compressed pixels are as the guest wrote them."""

    png: bytes
    width: int
    height: int

    @property
    def is_photo(self) -> bool:
        """Whether Telegram takes its dimensions for a photo."""
        short, long = sorted((self.width, self.height))
        return short + long <= PHOTO_SIDES and long <= PHOTO_RATIO * short


def picture(data: bytes) -> Picture:
    """Return the picture that these bytes hold. Raises NotAPicture."""
    if not data.startswith(_SIGNATURE):
        raise NotAPicture("it is no PNG")
    chunks = _chunks(data)
    kinds = [kind for kind, _ in chunks]
    width, height, colour = _header(kinds[0], chunks[0][1][8:-4])
    if width * height > MOST_PIXELS:
        raise NotAPicture(f"it has {width} x {height} pixels, more than {MOST_PIXELS:,}")
    order = [_KEPT.index(kind) for kind in kinds]
    if kinds[-1] != b"IEND" or b"IDAT" not in kinds or order != sorted(order):
        raise NotAPicture("its chunks are not complete and in order")
    if any(one == other != b"IDAT" for one, other in pairwise(kinds)):
        raise NotAPicture("a chunk stands in it twice")
    palette = next((len(chunk) - 12 for kind, chunk in chunks if kind == b"PLTE"), 0)
    if palette % 3 or palette > 3 * 256 or (colour == _PALETTE and not palette):
        raise NotAPicture("its palette is not well formed")
    return Picture(_SIGNATURE + b"".join(chunk for _, chunk in chunks), width, height)


def _chunks(data: bytes) -> list[tuple[bytes, memoryview]]:
    """Return the chunks to keep, up to the end, each by its kind and with the right checksum.

    A chunk is the size of its body, kind, body and checksum: section 5.3.
    """
    view, at = memoryview(data), len(_SIGNATURE)
    chunks: list[tuple[bytes, memoryview]] = []
    while at + 12 <= len(data):
        size = 12 + int.from_bytes(view[at : at + 4])
        chunk = view[at : at + size]
        at += size
        if at > len(data):
            break
        kind = bytes(chunk[4:8])
        if zlib.crc32(chunk[4:-4]) != int.from_bytes(chunk[-4:]):
            raise NotAPicture("a checksum in it is wrong")
        if kind in _KEPT:
            chunks.append((kind, chunk))
        elif not kind[0] & 0x20:  # a decoder must understand it: section 5.4
            raise NotAPicture("it holds a chunk that no PNG has")
        if kind == b"IEND":
            return chunks
    raise NotAPicture("it is cut off")


def _header(kind: bytes, body: memoryview) -> tuple[int, int, int]:
    """Return width, height and colour type from IHDR: section 11.2.1."""
    if kind != b"IHDR" or len(body) != 13:
        raise NotAPicture("it has no header")
    width, height = int.from_bytes(body[:4]), int.from_bytes(body[4:8])
    depth, colour, *methods = body[8:]
    if not width or not height or depth not in _DEPTHS.get(colour, ()) or any(methods):
        raise NotAPicture("its header is not well formed")
    return width, height, colour
