"""Lengths as Telegram's limits count them, and texts cut to them.

A message holds 1 to 4096 characters (https://core.telegram.org/bots/api#sendmessage), a caption
1024. Here they are UTF-16 units: the server counts code points, which are never more.
"""

import unicodedata

MESSAGE_UNITS = 4096
CAPTION_UNITS = 1024

JOINERS = "\u200c\u200d"


def units(text: str) -> int:
    """The length of a text in UTF-16 units; surrogates count as one each."""
    return len(text) if text.isascii() else len(text) + sum(c > "\uffff" for c in text)


def cut(text: str, room: int, end: str = "", omitted: int = 0) -> str:
    """Shorten to `room` units, at least 100: the beginning and the end, and how much is missing.

    Of a text whose middle is not at hand, `text` and `end` are what stands around the `omitted`
    characters.
    """
    if not omitted:
        if units(text) <= room:
            return text
        end = text
    what = "digits" if text.lstrip("-").isdigit() and end.lstrip("-").isdigit() else "characters"
    gap = "\n" if "\n" in text or "\n" in end else " "
    marker = f"{gap}… {{:,}} {what} left out …{gap}"
    length = len(text) + (len(end) + omitted if omitted else 0)
    left = room - len(marker.format(length))
    head, tail = beginning(text, left - left // 3), _last(end, left // 3)
    # Whole lines, where that costs little.
    if (stop := head.rfind("\n", len(head) * 3 // 4)) >= 0:
        head = head[:stop]
    if (start := tail.find("\n", 0, len(tail) // 4)) >= 0:
        tail = tail[start + 1 :]
    return head + marker.format(length - len(head) - len(tail)) + tail


def beginning(text: str, room: int) -> str:
    """As much of the beginning of a text without surrogates as `room` units hold."""
    return text.encode("utf-16-le")[: room * 2].decode("utf-16-le", "ignore")


def _last(text: str, room: int) -> str:
    tail = text.encode("utf-16-le")[-room * 2 :].decode("utf-16-le", "ignore")
    while tail and (tail[0] in JOINERS or unicodedata.category(tail[0])[0] == "M"):
        tail = tail[1:]
    return tail
