import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.fork_server.png import MOST_PIXELS, NotAPicture, picture

Image = pytest.importorskip("PIL.Image", reason="Pillow comes with function/maths.txt")
PngInfo = pytest.importorskip("PIL.PngImagePlugin").PngInfo

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def header(width: int = 2, height: int = 2, rest: bytes = b"\x08\x00\x00\x00\x00") -> bytes:
    return chunk(b"IHDR", struct.pack(">II", width, height) + rest)


PIXELS = chunk(b"IDAT", zlib.compress(b"\0\1\2" * 2))
END = chunk(b"IEND")
SMALL = SIGNATURE + header() + PIXELS + END


def encoded(image: object, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", **options)  # type: ignore[attr-defined]
    return file.getvalue()


@given(
    mode=st.sampled_from(["1", "L", "LA", "P", "RGB", "RGBA", "I;16"]),
    width=st.integers(1, 40),
    height=st.integers(1, 40),
    seed=st.binary(min_size=8, max_size=64),
)
def test_what_pillow_writes_keeps_its_pixels(
    mode: str, width: int, height: int, seed: bytes
) -> None:
    depth = {"LA": 2, "RGB": 3, "RGBA": 4, "I;16": 2}.get(mode, 1)
    raw = (seed * (1 + width * height * depth // len(seed)))[: width * height * depth]
    size = width, height
    image = Image.frombytes(mode, size, raw) if mode != "1" else Image.new("1", size, 1)
    found = picture(encoded(image))
    again = Image.open(io.BytesIO(found.png))
    assert (found.width, found.height) == again.size == size
    assert again.convert("RGBA").tobytes() == image.convert("RGBA").tobytes()


def test_only_what_a_picture_is_made_of_is_kept() -> None:
    info = PngInfo()
    info.add_text("Author", "<script>")
    data = encoded(Image.new("RGB", (3, 3)), pnginfo=info, dpi=(72, 72), exif=b"Exif\0\0x")
    assert b"<script>" in data
    found = picture(data + b"PK\x03\x04 a program behind the end").png
    assert found == picture(encoded(Image.new("RGB", (3, 3)))).png
    frames = [Image.new("RGB", (3, 3), colour) for colour in ("red", "blue")]
    animation = picture(encoded(frames[0], save_all=True, append_images=frames[1:])).png
    assert Image.open(io.BytesIO(animation)).n_frames == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is no PNG"),
        (b"GIF89a", "it is no PNG"),
        (SIGNATURE, "it is cut off"),
        (SMALL[:-1], "it is cut off"),
        (SIGNATURE + header() + struct.pack(">I", 2**32 - 1) + b"IDAT" + END, "it is cut off"),
        (SIGNATURE + header()[:-1] + b"\0" + PIXELS + END, "a checksum in it is wrong"),
        (SIGNATURE + PIXELS + END, "it has no header"),
        (SIGNATURE + chunk(b"IHDR", b"\0\0\0\2") + PIXELS + END, "it has no header"),
        (SIGNATURE + header(0) + PIXELS + END, "its header is not well formed"),
        (SIGNATURE + header(rest=b"\x03\0\0\0\0") + PIXELS + END, "its header is not well formed"),
        (SIGNATURE + header(rest=b"\x08\5\0\0\0") + PIXELS + END, "its header is not well formed"),
        (SIGNATURE + header(rest=b"\x08\0\0\0\1") + PIXELS + END, "its header is not well formed"),
        (SIGNATURE + header() + END, "its chunks are not complete and in order"),
        (SIGNATURE + header() + header() + PIXELS + END, "a chunk stands in it twice"),
        (
            SIGNATURE + header() + PIXELS + chunk(b"PLTE", b"abc") + END,
            "its chunks are not complete and in order",
        ),
        (SIGNATURE + header() + chunk(b"PLTE", b"ab") + PIXELS + END, "its palette is not"),
        (SIGNATURE + header(rest=b"\x08\3\0\0\0") + PIXELS + END, "its palette is not"),
        (SIGNATURE + header() + chunk(b"CODE") + PIXELS + END, "a chunk that no PNG has"),
        (SIGNATURE + header(5000, 5001) + PIXELS + END, f"more than {MOST_PIXELS:,}"),
        (SIGNATURE + header(2**31, 2**31) + PIXELS + END, f"more than {MOST_PIXELS:,}"),
    ],
)
def test_anything_else_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(NotAPicture, match=reason):
        picture(data)


@given(data=st.binary(max_size=200), at=st.integers(0, len(SMALL)), cut=st.integers(0, 40))
def test_no_bytes_do_worse_than_be_refused(data: bytes, at: int, cut: int) -> None:
    for bytes_ in (data, SIGNATURE + data, SMALL[:at] + data + SMALL[at + cut :]):
        try:
            found = picture(bytes_)
        except NotAPicture:
            continue
        assert picture(found.png) == found  # what is passed on would pass again, unchanged


@pytest.mark.parametrize(
    ("width", "height", "is_photo"),
    [(640, 480, True), (5000, 5000, True), (9000, 1001, False), (200, 10, True), (201, 10, False)],
)
def test_only_dimensions_that_telegram_takes_make_a_photo(
    width: int, height: int, is_photo: bool
) -> None:
    assert picture(SIGNATURE + header(width, height) + PIXELS + END).is_photo == is_photo
