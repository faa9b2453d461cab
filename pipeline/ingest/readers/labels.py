"""Decides which labels are integers, which are text, and which are refused.

The rule is the same for every format. A text is an integer label if it is the plain decimal form of a number from
0 to 2**63 - 1, so that the number written out is the same text. ``007``, ``+7``, ``0x7`` and ``7.0`` are not
integers. If they were read as 7, they would merge with vertex 7, and the output would have other labels.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.ingest.readers.base import BadLineError, shorten
from bicliques.schemas.edges import bytes_of
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.options import LabelType

INTEGER = pa.int64()
TEXT = pa.large_string()
MAX_INTEGER = 2**63 - 1

AS_TEXT = f"take the labels as text with {as_option('label_type', 'string')}"


def header_number(place: str, digits: bytes) -> int:
    """A number in the header of a file, from its decimal digits. `place` is the file and the line, for the message."""
    digits = digits.lstrip(b"0") or b"0"
    if len(digits) > len(str(MAX_INTEGER)) or int(digits) > MAX_INTEGER:
        raise InputError(f"{place}: {shorten(digits.decode())} is larger than 2**63 - 1; correct the header")
    return int(digits)


def to_integers(texts: pa.Array, lowest: int = 0) -> pa.Array | None:
    """Labels as int64. None when one of them is not an integer label of at least `lowest`.

    Blanks around a number are ignored.
    """
    numbers = _exact(texts)
    if numbers is None:
        numbers = _exact(pc.ascii_trim(texts, " \t"))
    if numbers is None or (len(numbers) and pc.min(numbers).as_py() < lowest):
        return None
    return numbers


def _exact(texts: pa.Array) -> pa.Array | None:
    try:
        numbers = pc.cast(texts, INTEGER)
    except pa.ArrowInvalid:
        return None
    if _are_plain(texts):
        return numbers
    # Arrow reads 0x10 as 16 and 007 as 7. Only a text that the number gives back is an integer label.
    same = pc.all(pc.equal(pc.cast(numbers, texts.type), texts), min_count=0)
    return numbers if same.as_py() else None


def _are_plain(texts: pa.Array) -> bool:
    """Whether large strings, none of which is empty, have digits only and no needless zero in front.

    Looking at the digits takes a tenth of the time of writing the numbers out.
    """
    if len(texts) == 0:
        return True
    digits, ends = bytes_of(texts)
    starts = digits[ends[:-1]]
    return bool(
        ((digits[ends[0] : ends[-1]] - np.uint8(ord("0"))) <= 9).all()
        and not ((starts == ord("0")) & (np.diff(ends) > 1)).any()
    )


def without_empty(texts: pa.Array) -> pa.Array | None:
    """`texts` itself. None when one of them is empty."""
    return None if pc.any(pc.equal(texts, ""), min_count=0).as_py() else texts


def looks_integer(text: str) -> bool:
    """Whether a column that begins with `text` is meant as integers, even if some of them are bad."""
    digits = text.strip(" \t").removeprefix("-")
    return digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")


def kind_of(label_type: LabelType, labels: Iterable[str]) -> pa.DataType:
    """The type of a column that begins with `labels`, or whose format has integers unless one says otherwise."""
    is_integer = label_type == "int" or (label_type == "auto" and all(map(looks_integer, labels)))
    return INTEGER if is_integer else TEXT


def parse_label(text: str, side: str, kind: pa.DataType, lowest: int = 0) -> int | str:
    """The value of one label, in the slow pass. `kind` is `INTEGER` or `TEXT`, and integers begin at `lowest`.

    BadLineError: the label is empty, or it is not an integer although `kind` is.
    """
    if not text:
        raise BadLineError(f"the {side} label is empty", "fill it in")
    if kind != INTEGER:
        return text
    digits = text.strip(" \t")
    if digits.isascii() and digits.isdigit() and digits[0] != "0" and len(digits) < len(str(MAX_INTEGER)):
        return int(digits)  # the common case; other texts are checked below
    if not looks_integer(digits):
        raise BadLineError(
            f"the {side} label {shorten(text)} is not a plain integer, but the column holds integers", AS_TEXT
        )
    if digits[0] == "-":
        raise BadLineError(f"the {side} label {shorten(text)} is a negative integer", AS_TEXT)
    if len(digits) > len(str(MAX_INTEGER)) or int(digits) > MAX_INTEGER:
        raise BadLineError(f"the {side} label {shorten(text)} is larger than 2**63 - 1", AS_TEXT)
    if int(digits) < lowest:
        raise BadLineError(f"the {side} label {digits} is below {lowest}, the first one of this format", AS_TEXT)
    return int(digits)
