"""The results of a run as a collection of rows: one by one, by number, as an Arrow stream, as a table in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import pyarrow as pa

from pipeline.proof.selection import Place, rows_at
from pipeline.run.tables import open_part

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as ds

    from schemas.manifest import Outcome
    from schemas.search import By

__all__ = ["Biclique", "Rows", "hashable"]

#: Rows that are in memory together while all are gone through.
_BATCH = 1 << 13
#: A notebook shows so many rows, so many members of a side, and so many letters of a label.
_ROWS_SHOWN, _MEMBERS_SHOWN, _LETTERS_SHOWN = 5, 8, 40


class _Sides(NamedTuple):
    left: list[Any]
    right: list[Any]


class Biclique(_Sides):
    """One biclique, a pair of two lists: ``left, right = biclique``.

    Attributes
    ----------
    left, right : list
        The members of each side: labels, or row numbers of the label tables for a run with dense ids.
    id : int
        Its id of 64 bits, which is made from the labels of its members.
    """

    id: int

    def __new__(cls, left: list[Any], right: list[Any], id: int) -> Biclique:
        """A biclique with these members."""
        made = super().__new__(cls, left, right)
        made.id = id
        return made


class Rows:
    """What `pipeline.results.results.Results` has as a collection. Rows are numbered in the order of the files.

    That order has no meaning, and is another one in another run.
    """

    if TYPE_CHECKING:  # what `Results` has besides

        @property
        def files(self) -> list[Path]: ...  # noqa: D102
        @property
        def path(self) -> Path: ...  # noqa: D102
        @property
        def schema(self) -> pa.Schema: ...  # noqa: D102
        @property
        def complete(self) -> bool: ...  # noqa: D102
        @property
        def outcome(self) -> Outcome: ...  # noqa: D102
        @property
        def names(self) -> tuple[str, str]: ...  # noqa: D102
        @property
        def lists_rows(self) -> bool: ...  # noqa: D102
        def dataset(self) -> ds.Dataset: ...  # noqa: D102
        def top(self, n: int = 20, by: By = "edges") -> pa.Table: ...  # noqa: D102
        def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Biclique]:
        """Every biclique, as a pair of two lists. A few thousand rows are in memory at a time.

        Raises
        ------
        InputError
            If the run only counted.

        Examples
        --------
        >>> import pipeline
        >>> results = pipeline.mine("examples/debian12_package_tag.parquet", "OUT-rows", min_left=5, min_right=5)
        >>> sum(len(left) * len(right) > 3000 for left, right in results)
        12
        """
        return _of_batches(self.batches(["left", "right", "id"]))

    def batches(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows as Arrow batches of a few thousand, of which a few are in memory at a time.

        Parameters
        ----------
        columns : list of str or None
            Names of columns of `schema`. None: all.

        Raises
        ------
        InputError
            If the run only counted.
        """
        how = {"batch_size": _BATCH, "batch_readahead": 1, "fragment_readahead": 1}
        found: Iterator[pa.RecordBatch] = self.dataset().scanner(columns=columns, **how).to_batches()
        return found

    @overload
    def __getitem__(self, which: int) -> Biclique: ...
    @overload
    def __getitem__(self, which: slice) -> pa.Table: ...
    def __getitem__(self, which: int | slice) -> Biclique | pa.Table:
        """The row with a number, or the rows of a slice as an Arrow table. Only their row groups are read.

        Raises
        ------
        IndexError
            If there is no row with this number.
        InputError
            If the run only counted.
        """
        rows = range(len(self))
        if isinstance(which, slice):
            return self._taken(list(rows[which]))
        try:
            number = rows[which]
        except IndexError:
            raise IndexError(f"there is no row {which}; {self.path} has {len(rows):,}") from None
        (row,) = _of_batches(iter(self._taken([number]).to_batches()))
        return row

    def head(self, n: int = 5) -> pd.DataFrame:
        """The first `n` rows as a pandas frame. Lists are tuples, by which pandas can group and drop duplicates.

        Raises
        ------
        InputError
            If the run only counted.
        """
        return hashable(self[: max(n, 0)])

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream of Arrow batches, which Polars, DuckDB, pandas and Arrow read without a copy on disk.

        Raises
        ------
        InputError
            If the run only counted.
        """
        scanned = self.dataset().scanner(batch_size=_BATCH, batch_readahead=1, fragment_readahead=1)
        return scanned.to_reader().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        state = "complete" if self.complete else f"not complete: {escape(str(self.outcome))}"
        head = f"<p><b>{len(self):,} maximal bicliques</b>, {state}, in <code>{escape(str(self.path))}</code></p>"
        if not (self.complete and self.lists_rows and len(self)):
            return f"<div>{head}</div>"
        titles = [*map(escape, self.names), "members", "edges"]
        rows = self.top(_ROWS_SHOWN).select(["left", "right", "n_left", "n_right"]).to_pylist()
        lines = [f"<tr>{''.join(f'<th>{title}</th>' for title in titles)}</tr>", *map(_line, rows)]
        return f"<div>{head}<table>{''.join(lines)}</table><p>the largest by edges</p></div>"

    def _taken(self, numbers: list[int]) -> pa.Table:
        if not self.files:  # no row yet, or the rows are in the ledger
            return self.dataset().take(pa.array(numbers, pa.int64()))
        return rows_at(self.files, _places(self.files, numbers), self.schema)


def hashable(rows: pa.Table) -> pd.DataFrame:
    """Rows as a pandas frame whose lists are tuples."""
    frame = rows.to_pandas()
    for name in ("left", "right"):
        frame[name] = frame[name].map(tuple)
    return frame


def _of_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[Biclique]:
    for batch in batches:
        yield from map(Biclique, *(batch.column(name).to_pylist() for name in ("left", "right", "id")))


def _places(files: list[Path], numbers: list[int]) -> list[Place]:
    """Where the rows with these numbers are."""
    wanted = iter(sorted(set(numbers)))
    number, found, begin = next(wanted, None), dict[int, Place](), 0
    for k, file in enumerate(files):
        if number is None:
            break
        with open_part(file) as part:
            for group in range(part.num_row_groups):
                end = begin + part.metadata.row_group(group).num_rows
                while number is not None and number < end:
                    found[number] = (k, group, number - begin)
                    number = next(wanted, None)
                begin = end
    return [found[number] for number in numbers]


def _line(row: dict[str, Any]) -> str:
    n_left, n_right = row["n_left"], row["n_right"]
    cells = [_some(row["left"]), _some(row["right"]), f"{n_left:,} x {n_right:,}", f"{n_left * n_right:,}"]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _some(members: list[Any]) -> str:
    """The first members of a side, with their number if there are more."""
    shown = [str(member) for member in islice(members, _MEMBERS_SHOWN)]
    cut = [label if len(label) <= _LETTERS_SHOWN else f"{label[: _LETTERS_SHOWN - 1]}…" for label in shown]
    more = f" and {len(members) - len(cut):,} more" if len(members) > len(cut) else ""
    return escape(", ".join(cut)) + more
