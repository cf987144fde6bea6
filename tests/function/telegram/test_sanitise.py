"""What Telegram would delete, refuse or show wrongly is replaced; tokens are taken out."""

import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.telegram.lengths import cut, units
from function.telegram.sanitise import REDACTED, is_blank, redact, sanitise

TOKEN = "111222333:" + "Hq-_7" * 7
TOKEN_SHAPE = re.compile(r"\d{6,12}:[A-Za-z0-9_-]{35}")
any_text = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("  *\n ***", "  *\n ***"),
        ("\n\n  *\n", "  *"),
        ("a\tb\n12345678\tc", "a       b\n12345678        c"),
        ("a\r\nb\rc\x0bd\x85e\u2028f", "a\nb\nc\nd\ne\nf"),
        ("a\x00b\x07", "ab"),
        ("\x1b[31mred\x1b[0m\x1b[2J\x1b[H\x1b]0;title\x07", "red"),
        ("a" + "\n" * 1000 + "b", "a\n\n\n\nb"),
        ("\u202eabc\u2067\u200f", "abc"),
        ("so\xadft\u200b", "soft"),
        ("\ud83d!", "\ufffd!"),
        ("\ud83d\ude00", "😀"),
        ("\ufffe\U0010ffff", "\ufffd\ufffd"),
        ("a\u030angstro\u0308m", "ångstro\u0308m"),
        ("x\u0333\u033f", "x"),
        ("e\u0301" + "\u0301" * 500, "e" + "\u0301" * 4),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("A\u200d\u200d\u200dB", "AB"),
        ("1\ufe0f2", "12"),
        ("", ""),
        ("\n\n", ""),
        ("   \n  ", r"'   \n  '"),
        ("\u200b\u2800", r"'\u200b\u2800'"),
        ("\u3164\u115f\xa0\u3000", r"'\u3164\u115f\xa0\u3000'"),
        ("\u0308", r"'\u0308'"),
    ],
)
def test_text_is_made_sanitise(text: str, shown: str) -> None:
    assert sanitise(text) == shown


@given(any_text)
def test_nothing_is_left_that_telegram_changes(text: str) -> None:
    shown = sanitise(text)
    shown.encode()  # no lone surrogate
    assert shown == shown.rstrip()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", shown)
    assert not shown or not is_blank(shown)
    assert sanitise(shown) == shown


@pytest.mark.parametrize(
    "printed",
    [
        TOKEN,
        f"id{TOKEN}tail",
        "\xad".join(TOKEN[:20]) + "\u2060" + TOKEN[20:],
        TOKEN[:30] + "\x1b[0m" + TOKEN[30:],
        "\u200d".join(TOKEN),
        "\ufe0f".join(TOKEN),
        "\x00".join(TOKEN),
        "\n".join(TOKEN),
        " ".join(TOKEN),
        str(list(TOKEN)),
        "１１１２２２３３３：" + "L" * 35,
    ],
)
def test_text_shaped_like_a_token_is_taken_out(printed: str) -> None:
    shown = redact(sanitise(printed))
    assert REDACTED in shown
    assert not TOKEN_SHAPE.search(shown)


@given(any_text, any_text, st.sampled_from(["", "\xad", "\x00", "\u200c", "\ufeff"]))
def test_a_token_is_taken_out_amid_anything(before: str, after: str, between: str) -> None:
    assert not TOKEN_SHAPE.search(redact(sanitise(before + between.join(TOKEN) + after)))


def test_a_secret_is_taken_out_whatever_its_shape() -> None:
    assert redact("it is 1:abc.", ["1:abc"]) == f"it is {REDACTED}."


@pytest.mark.parametrize("text", ["12:30:45", "1234567: total", "{1234567: 'x'}", "1e100", "a:b"])
def test_ordinary_output_is_kept(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "piece",
    ["1", " ", "\n", " \n", "\t", "1:", "a-", "\x1b]", "\x1b[", "\u200d", "e\u0301", "😀\u200d"],
)
def test_hostile_output_of_full_size_takes_no_time(piece: str) -> None:
    text = piece * (65536 // len(piece.encode()))
    start = time.perf_counter()
    cut(redact(sanitise(text)), 4096)
    assert time.perf_counter() - start < 1


@given(any_text.map(sanitise), st.integers(100, 400))
def test_a_cut_text_fits(text: str, room: int) -> None:
    assert units(cut(text * 9, room)) <= room


def test_a_cut_number_keeps_both_ends_and_counts_what_is_missing() -> None:
    digits = "123" + "0" * 6000 + "789"
    shown = cut(digits, 4096)
    head, missing, tail = re.fullmatch(r"(\d+) … ([\d,]+) digits left out … (\d+)", shown).groups()
    assert head.startswith("123")
    assert tail.endswith("789")
    assert len(head) + len(tail) + int(missing.replace(",", "")) == len(digits)
    assert units(shown) > 4000


def test_lines_are_cut_whole() -> None:
    lines = "\n".join(map(str, range(1000, 3000)))
    head, marker, tail = re.split(r"\n(… [\d,]+ characters left out …)\n", cut(lines, 500))
    assert set(f"{head}\n{tail}".split("\n")) < set(lines.split("\n"))
    assert "characters" in marker


def test_one_character_beyond_the_basic_plane_counts_twice() -> None:
    assert units("a😀") == 3
    text = "😀" * 300
    assert units(cut(text, 200)) <= 200
    assert unicodedata.category(cut(text, 200)[0]) == "So"


def test_a_cut_does_not_part_a_letter_from_its_accent() -> None:
    for room in range(100, 110):
        tail = cut("e\u0301" * 300, room).rpartition("… ")[2]
        assert not unicodedata.combining(tail[0])
