"""Rows as a table of which people ask what they ask of a frame: its shape, some of its rows, a form of a library.

In a pandas frame the lists of members have a form of which pandas makes use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.rows.printable import pairs_of
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.values import as_index, whole

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds

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


#: So many rows are in memory together while all are gone through.
FEW_AT_A_TIME = {"batch_size": 1 << 13, "batch_readahead": 1, "fragment_readahead": 1}


class Tabular:
    """What `pipeline.rows.collection.Rows` has as a table."""

    if TYPE_CHECKING:  # what `Rows` has besides

        @property
        def schema(self) -> pa.Schema: ...  # noqa: D102
        def to_arrow(self, columns: list[str] | None = None, filter: Any = None) -> pa.Table: ...  # noqa: D102
        def _scanner(self, **how: Any) -> ds.Scanner: ...
        def _batches_of(self, scanner: ds.Scanner) -> Iterator[pa.RecordBatch]: ...
        def __iter__(self) -> Iterator[Any]: ...
        def __len__(self) -> int: ...

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and that of columns."""
        return len(self), len(self.schema)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def __contains__(self, what: object) -> bool:
        """Whether a vertex, which is given by its label, is in any of the bicliques; or whether a biclique is a row.

        Raises `InputError` if no side has labels of the type of `what`, or the run only counted.

        Examples
        --------
        >>> import bicliques
        >>> results = bicliques.mine([("ann", "up"), ("bob", "up")], "OUT-contains")
        >>> "ann" in results, "eve" in results, (["ann", "bob"], ["up"]) in results
        (True, False, True)
        """
        if not np.isscalar(what):
            return any(row == what for row in self)
        return any(len(batch) for batch in self._having(what))

    def containing(self, label: Any) -> pa.Table:
        """The bicliques of which a vertex is a member, on whichever side. All rows are read.

        Raises `InputError` if no side has labels of that type, no vertex of the input of a run has this one, or the run
        only counted.

        Parameters
        ----------
        label : str or int
            As in the columns ``left`` and ``right``.
        """
        rows = pa.Table.from_batches(self._having(label), self.schema)
        if not len(rows):
            self._refuse_unknown(label)
        return rows

    def _refuse_unknown(self, label: Any) -> None:
        """Refuse a label that no vertex has, where that is known."""

    def filter(
        self,
        *,
        min_left: int = 0,
        min_right: int = 0,
        max_left: int | None = None,
        max_right: int | None = None,
        containing_left: Any = (),
        containing_right: Any = (),
    ) -> pa.Table:
        """The bicliques of some sizes that have some members.

        Raises `InputError` if a number is not whole, the labels of a side have another type, or the run only counted.

        Parameters
        ----------
        min_left, min_right : int
            The least number of members of a side.
        max_left, max_right : int or None
            The largest. None: any.
        containing_left, containing_right : label, or list, tuple, set or array of labels
            Members that a biclique must have, all of them.

        Notes
        -----
        All rows of these sizes are read. To search for no others, give the same options to `bicliques.mine`, which then
        takes less time and memory.

        Examples
        --------
        >>> import bicliques
        >>> results = bicliques.mine("examples/debian12_package_tag.parquet", "OUT-filter", min_left=5, min_right=5)
        >>> results.filter(min_left=20, containing_right=["game::arcade"]).num_rows
        177
        """
        chosen: Any = None
        for side, least, most in (("left", min_left, max_left), ("right", min_right, max_right)):
            size = pc.field(f"n_{side}")
            each = size >= whole(least, f"min_{side}", 0)
            if most is not None:
                each &= size <= whole(most, f"max_{side}", 0)
            chosen = each if chosen is None else chosen & each
        wanted = [
            (side, label)
            for side, labels in (("left", containing_left), ("right", containing_right))
            for label in (labels if isinstance(labels, (list, tuple, set, np.ndarray)) else [labels])
        ]
        scanner = self._scanner(filter=chosen, **FEW_AT_A_TIME)
        tests = [(side, _as_member(label, side, self.schema)) for side, label in wanted]
        have = (
            batch.filter(pa.array(np.logical_and.reduce([_rows_with(batch, *test) for test in tests])))
            if tests
            else batch
            for batch in self._batches_of(scanner)
        )
        return pa.Table.from_batches([batch for batch in have if len(batch)], self.schema)

    def describe(self) -> pd.DataFrame:
        """Mean, spread and quartiles of the sizes, as `pandas.DataFrame.describe` gives them.

        Raises `InputError` if the run only counted.
        """
        frame = self.to_arrow(columns=["n_left", "n_right"]).to_pandas()
        frame[pairs_of(self.schema)] = frame["n_left"].astype("int64") * frame["n_right"]
        return frame.describe()

    def to_polars(self) -> pl.DataFrame:
        """All rows as a frame of Polars in memory. ``polars.scan_pyarrow_dataset(results.dataset())`` reads less.

        Raises `InputError` if the run only counted.
        """
        try:
            import polars as pl
        except ModuleNotFoundError as error:
            raise ResourceError("to_polars needs Polars, which is not installed; install the package polars") from error
        return pl.DataFrame(self.to_arrow())

    def _having(self, label: Any) -> Iterator[pa.RecordBatch]:
        """Batches of the rows that have a member on any side."""
        scanner, tests, why = self._scanner(**FEW_AT_A_TIME), [], None
        for side in ("left", "right"):
            try:
                tests.append((side, _as_member(label, side, self.schema)))
            except InputError as error:
                why = error
        if not tests:
            assert why is not None
            raise why
        for batch in self._batches_of(scanner):
            has = np.logical_or.reduce([_rows_with(batch, *test) for test in tests])
            if has.any():
                yield batch.filter(pa.array(has))


def _as_member(label: Any, side: str, schema: pa.Schema) -> pa.Scalar:
    """A label as a value of the lists of a side."""
    kind = schema.field(side).type.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    try:
        if isinstance(label, str) != is_text:
            raise TypeError
        return pa.scalar(label if is_text else as_index(label), kind)
    except (TypeError, ValueError, OverflowError):  # of Arrow, too, whose errors are ValueErrors or TypeErrors
        kinds = "text" if is_text else "integers"
        raise InputError(
            f"{side} members are {kinds}, not {label!r:.60}; give a label as in the column {side}"
        ) from None


def _rows_with(batch: pa.RecordBatch, side: str, member: pa.Scalar) -> np.ndarray:
    """Which rows have a member: an array of bool."""
    lists, has = batch.column(side), np.zeros(len(batch), bool)
    found = pc.list_parent_indices(lists).filter(pc.equal(lists.flatten(), member))
    has[found.to_numpy()] = True
    return has
