"""Rows as a collection: one by one, by number, as a table or a stream of Arrow, as a frame, in a notebook."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.proof.selection import Place, rows_at
from bicliques.pipeline.rows.printable import html_table, pairs_of
from bicliques.pipeline.rows.tabular import FEW_AT_A_TIME, IdType, Lists, Tabular, to_pandas
from bicliques.pipeline.run.progress import number
from bicliques.pipeline.run.tables import open_part
from bicliques.schemas.errors import IncompleteError, InputError, said
from bicliques.schemas.values import whole

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pandas as pd
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

#: A notebook shows so many rows.
_SHOWN = 5
#: Writes the first members of a side; there may be a million.
_SHORT = reprlib.Repr()
_SHORT.maxlist, _SHORT.maxstring = 6, 60


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

    def __repr__(self) -> str:
        """Its first members, and how many there are."""
        left, right = map(_SHORT.repr, self)
        return f"Biclique(left={left}, right={right}, n_left={len(self.left)}, n_right={len(self.right)}, id={self.id})"

    def __getnewargs__(self) -> tuple[list[Any], list[Any], int]:
        """What copies and pickles are made of."""
        return self.left, self.right, self.id


Rowed = TypeVar("Rowed", pa.RecordBatch, pa.Table)


class Rows(Tabular):
    """Rows of Parquet files as a collection. Rows are numbered in the order of the files.

    That order has no meaning, and is another one in another run. Rows are read only when they are asked for.
    """

    if TYPE_CHECKING:  # what a subclass has besides

        @property
        def files(self) -> Sequence[Path]: ...  # noqa: D102
        @property
        def path(self) -> Path: ...  # noqa: D102
        @property
        def schema(self) -> pa.Schema: ...  # noqa: D102
        @property
        def names(self) -> tuple[str, str]: ...  # noqa: D102
        def dataset(self) -> ds.Dataset: ...  # noqa: D102
        def _opened(self, file: Path) -> AbstractContextManager[pq.ParquetFile]: ...
        def top(self, n: int = 20) -> pa.Table: ...  # noqa: D102
        def __len__(self) -> int: ...

    def to_arrow(self, columns: list[str] | None = None, filter: Any = None) -> pa.Table:
        """All rows, or those that the `pyarrow.dataset` expression `filter` selects, as one Arrow table in memory.

        Parameters
        ----------
        columns : list of str or None
            Names of columns of `schema`, which come in this order. None: all.
        filter : pyarrow.dataset.Expression or None
            Which rows, such as ``pyarrow.dataset.field("n_left") > 3``. None: all.

        Raises
        ------
        InputError
            If the run only counted, or there is no such column.
        IncompleteError
            If a file is missing or damaged.
        """
        scanner = self._scanner(columns=columns, filter=filter)
        with self._all_read():
            return self._whole(scanner.to_table())

    def to_pandas(
        self,
        columns: list[str] | None = None,
        filter: Any = None,
        lists: Lists = "array",
        id_type: IdType = "int64",
    ) -> pd.DataFrame:
        """The rows of `to_arrow` as a pandas frame.

        Parameters
        ----------
        columns, filter : object
            As of `to_arrow`.
        lists : "array", "tuple" or "json"
            What each list of members becomes: a NumPy array, which takes least time; a tuple, by which pandas can
            group, compare and drop duplicates; or text, a JSON array, which `json.loads` reads back from a file.
        id_type : "int64" or "string"
            What the ids become; see `bicliques.to_pandas`.

        Raises
        ------
        InputError
            If the run only counted, there is no such column, or `lists` or `id_type` is another word.
        IncompleteError
            If a file is missing or damaged.
        """
        return to_pandas(self.to_arrow(columns, filter), lists, id_type)

    def __iter__(self) -> Iterator[Biclique]:
        """Every biclique, as a pair of two lists. A few thousand rows are in memory at a time.

        Raises
        ------
        InputError
            If the run only counted.
        IncompleteError
            If a file is missing or damaged.

        Examples
        --------
        >>> import bicliques
        >>> results = bicliques.mine("examples/debian12_package_tag.parquet", "OUT-rows", min_left=5, min_right=5)
        >>> sum(len(left) * len(right) > 3000 for left, right in results)
        12
        """
        return bicliques_of(self.batches(["left", "right", "id"]))

    def batches(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows as Arrow batches of a few thousand, of which a few are in memory at a time.

        Parameters
        ----------
        columns : list of str or None
            Names of columns of `schema`. None: all.

        Raises
        ------
        InputError
            If the run only counted, or there is no such column.
        IncompleteError
            If a file is missing or damaged.
        """
        return self._batches_of(self._scanner(columns=columns, **FEW_AT_A_TIME))

    def _batches_of(self, scanner: ds.Scanner) -> Iterator[pa.RecordBatch]:
        with self._all_read():
            yield from map(self._whole, scanner.to_batches())

    def _whole(self, rows: Rowed) -> Rowed:
        """The same rows. Arrow reads a column that a file has not as one without values."""
        if any(column.null_count for column in rows.columns):
            raise IncompleteError(
                f"a file of {self.path} has not the columns of bicliques; verify the run, or compare again"
            )
        return rows

    def _scanner(self, **how: Any) -> ds.Scanner:
        """A scanner of all files. What is wrong with a column or a filter shows here, before anything is read."""
        with self._all_read():
            dataset = self.dataset()
        columns, chosen = how.get("columns"), how.get("filter")
        if isinstance(columns, str):
            raise InputError(f"columns is a list of names, as [{columns!r}], not a text")
        if columns is not None and not isinstance(columns, (list, tuple)):
            raise InputError(f"columns is a list of names, as ['id'], not {columns!r:.60}")
        if chosen is not None and not isinstance(chosen, pc.Expression):
            raise InputError(f"filter is an expression of pyarrow.compute, as field('id') > 0, not {chosen!r:.60}")
        for name in columns or ():
            if name not in dataset.schema.names:
                raise InputError(f"there is no column {name!r}; the columns are {', '.join(dataset.schema.names)}")
        if columns is not None:
            how["columns"] = list(columns)  # Arrow takes no tuple
        return dataset.scanner(**how)

    @contextmanager
    def _all_read(self) -> Iterator[None]:
        """Arrow says what is wrong with a file, and not what helps. So the files are read again, one by one."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, MemoryError):
                raise
            for file in self.files:
                with self._opened(file) as part:
                    for group in range(part.num_row_groups):
                        part.read_row_group(group)
            raise  # no file is damaged

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
        except TypeError:
            raise TypeError(
                f"rows have numbers and slices, not {which!r}; to_arrow and to_pandas take columns"
            ) from None
        except IndexError:
            raise IndexError(said(f"there is no row {which}; {self.path} has {len(rows):,}")) from None
        (row,) = bicliques_of(self._taken([number]).to_batches())
        return row

    def head(self, n: int = 5) -> pd.DataFrame:
        """The first `n` rows as a pandas frame. Lists are tuples, by which pandas can group and drop duplicates.

        Parameters
        ----------
        n : int
            How many.

        Raises
        ------
        InputError
            If the run only counted, or `n` is less than 0 or no whole number.
        """
        return to_pandas(self[: whole(n, "the number of rows", 0)], "tuple")

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream of Arrow batches, which Polars, DuckDB, pandas and Arrow read without a copy on disk.

        Raises
        ------
        InputError
            If the run only counted.
        """
        return self._scanner(**FEW_AT_A_TIME).to_reader().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        told, best = self._told(), self._best()
        if best is None:
            return f"<div>{html_table(told)}</div>"
        cells = [
            (left.values, right.values, f"{len(left):,} x {len(right):,}", f"{len(left) * len(right):,}")
            for left, right in zip(best["left"], best["right"], strict=True)
        ]
        pairs = pairs_of(best.schema)
        return f"<div>{html_table([*told, f'the largest by {pairs}:'], [*self.names, 'members', pairs], cells)}</div>"

    @property
    def has_holes(self) -> bool:
        """Whether pairs of a row may be no edges. Then the rows have the column ``missing`` (docs/holes.md)."""
        return "missing" in self.schema.names

    @property
    def _what(self) -> str:
        return "maximal near-biclique" if self.has_holes else "maximal biclique"

    def _told(self) -> list[str]:
        """What a notebook says of the rows, the number first."""
        return [number(len(self), self._what), f"in {self.path}"]

    def _best(self) -> pa.Table | None:
        """The rows that a notebook shows."""
        return self.top(_SHOWN) if len(self) else None

    def _taken(self, numbers: list[int]) -> pa.Table:
        if not self.files:  # no row yet, or the rows are in the ledger
            return self.dataset().take(pa.array(numbers, pa.int64()))
        return rows_at(self.files, _places(self.files, numbers), self.schema)


def bicliques_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Biclique]:
    """The rows of Arrow batches one by one."""
    for batch in batches:
        yield from map(Biclique, *(batch.column(name).to_pylist() for name in ("left", "right", "id")))


def _places(files: Sequence[Path], numbers: list[int]) -> list[Place]:
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
