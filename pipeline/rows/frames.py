"""Rows as pandas frames, with lists of members in a form of which pandas makes use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from schemas.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Lists", "framed", "json_text"]

#: What a list of members is in a frame: a NumPy array; a tuple, by which pandas can group, compare and drop; or text.
Lists = Literal["array", "tuple", "json"]


def framed(rows: pa.Table, lists: Lists = "array") -> pd.DataFrame:
    """Rows as a pandas frame.

    Parameters
    ----------
    rows : Table
    lists : "array", "tuple" or "json"
        What each list becomes.

    Raises
    ------
    InputError
        If `lists` is another word.
    """
    if lists not in get_args(Lists):
        raise InputError(f"lists become {', '.join(get_args(Lists))} in a frame, not {lists!r}")
    frame = rows.to_pandas()
    for field in rows.schema if lists != "array" else ():
        if pa.types.is_list(field.type):
            frame[field.name] = frame[field.name].map(_AS[lists])
    return frame


def json_text(value: Any) -> str:
    """A value as JSON in one line, as short as it can be."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


#: What is made of a NumPy array. Its members become those of Python, because others print as np.int64(7).
_AS: dict[Lists, Any] = {
    "tuple": lambda members: tuple(members.tolist()),
    "json": lambda members: json_text(members.tolist()),
}
