"""Rows as pandas frames, with lists of members in a form of which pandas makes use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from bicliques.schemas.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

#: What a list of members is in a frame: a NumPy array; a tuple, by which pandas can group, compare and drop; or text.
Lists = Literal["array", "tuple", "json"]
#: What the columns of ids are.
IdType = Literal["int64", "string"]
_IDS = ("id", "community")


def to_pandas(rows: Any, lists: Lists = "tuple", id_type: IdType = "int64") -> pd.DataFrame:
    """A table of bicliques as a pandas frame, with lists of members by which pandas can group and drop duplicates.

    Parameters
    ----------
    rows : Table or Results
        An Arrow table, as `Results.top`, `cover`, `sample` and slices of results are, or results as a whole; also what
        another library made of these, such as a frame of Polars.
    lists : "tuple", "json" or "array"
        What each list becomes: a tuple, by which pandas can group, compare and drop; text, a JSON array, which
        `json.loads` reads back from a file; or a NumPy array, which takes least time.
    id_type : "int64" or "string"
        What ids become. As text they lose no digit in a join that leaves gaps, nor in a spreadsheet.

    Returns
    -------
    DataFrame
        With the columns of the table.

    Raises
    ------
    InputError
        If `rows` is no table, or `lists` or `id_type` is another word.

    Examples
    --------
    >>> import bicliques
    >>> results = bicliques.mine("examples/debian12_package_tag.parquet", "OUT-frame", min_left=5, min_right=9)
    >>> frame = bicliques.to_pandas(results.top(20, by="balance"))
    >>> len(frame.drop_duplicates(["left", "right"])), frame.groupby("right").size().tolist()[:3]
    (20, [1, 1, 1])
    """
    if lists not in get_args(Lists):
        raise InputError(f"lists become {', '.join(get_args(Lists))} in a frame, not {lists!r}")
    if id_type not in get_args(IdType):
        raise InputError(f"ids become {' or '.join(get_args(IdType))} in a frame, not {id_type!r}")
    if not hasattr(rows, "__arrow_c_stream__"):
        raise InputError(f"{rows!r:.60} is no table of rows; take results, or what their top, cover or sample return")
    table = rows if isinstance(rows, pa.Table) else pa.table(rows)
    fields = [
        field.with_type(pa.string() if id_type == "string" and field.name in _IDS else _plain(field.type))
        for field in table.schema
    ]
    plain = pa.schema(fields, table.schema.metadata)
    frame = table.cast(plain).to_pandas()
    for field in plain if lists != "array" else ():
        if _is_list(field.type):
            frame[field.name] = frame[field.name].map(_AS[lists], na_action="ignore")
    return frame


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type that Arrow can hand to pandas, for lists of those with which Polars holds text and lists."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if _is_list(kind) and _plain(kind.value_type) != kind.value_type:
        return pa.large_list(_plain(kind.value_type))
    return kind


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def json_text(value: Any) -> str:
    """A value as JSON in one line, as short as it can be."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


#: What is made of a NumPy array. Its members become those of Python, because others print as np.int64(7).
_AS: dict[Lists, Any] = {
    "tuple": lambda members: tuple(members.tolist()),
    "json": lambda members: json_text(members.tolist()),
}
