"""How far long work is, on a terminal's last line; nothing at all elsewhere, such as in a log."""

import sys


def show(text: str = "") -> None:
    """Replace what stands on the line by `text`; "" leaves it empty for what is printed next."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")  # ECMA-48: erase to the end of the line
        sys.stderr.flush()
