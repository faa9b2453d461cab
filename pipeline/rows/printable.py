"""What people see of characters that HTML and SVG do not allow."""

from __future__ import annotations

import re

#: What XML 1.0 allows in no document, not even as a reference; and DEL and the controls behind it, which are errors in
#: HTML. The script of the page of a run has the same characters (``CONTROLS`` in ``place.js``).
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: The pictures of the 32 controls of ASCII begin here. DEL has one of its own, and what has none is U+FFFD.
_PICTURES, _PICTURE_OF_DEL, _NO_PICTURE = 0x2400, "\u2421", "\ufffd"


def printable(text: str) -> str:
    """A text as HTML and SVG may hold it: a control has its picture in its place, as ``␀`` that of NUL."""
    return _FORBIDDEN.sub(lambda found: _picture(found[0]), text)


def is_kept(text: str) -> bool:
    """Whether a browser reads a text as it is. It takes a carriage return for a new line."""
    return "\r" not in text and not _FORBIDDEN.search(text)


def _picture(mark: str) -> str:
    if mark < " ":
        return chr(_PICTURES + ord(mark))
    return _PICTURE_OF_DEL if mark == "\x7f" else _NO_PICTURE
