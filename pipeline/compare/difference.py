"""A comparison of two runs that was written to a folder. Rows are read only when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.pipeline.proof.selection import largest, rows_at
from bicliques.pipeline.rows.collection import Rows
from bicliques.pipeline.run.files import PathLike, read_json
from bicliques.pipeline.run.names import CHANGES_FILES, temporary_name
from bicliques.pipeline.run.outside import remove_own
from bicliques.pipeline.run.progress import number
from bicliques.pipeline.run.tables import LOCAL, open_part, read_table
from bicliques.schemas.difference import ComparedRun, Record
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.regular_files import regular
from bicliques.schemas.search import By, Side
from bicliques.schemas.values import as_path, whole

if TYPE_CHECKING:
    import pyarrow.dataset as ds

GONE_FILE, NEW_FILE, _LEFT_FILE, _RIGHT_FILE, RECORD_FILE = CHANGES_FILES
VERTEX_FILES: dict[Side, str] = {"left": _LEFT_FILE, "right": _RIGHT_FILE}


def is_of_difference(name: str) -> bool:
    """Whether a comparison gives this name to a file in its folder, or to one that it has not finished."""
    return name in CHANGES_FILES or name in map(temporary_name, CHANGES_FILES)


def remove_difference(place: Path) -> None:
    """See `remove_own`."""
    remove_own(place, is_of_difference)


class Changed(Rows):
    """The bicliques that one of two runs has, and the other one has not. They are in one Parquet file.

    Parameters
    ----------
    path : Path
        Of the file.
    count : int
        Number of rows.
    """

    def __init__(self, path: Path, count: int):
        self._path, self._count = path, count

    def __len__(self) -> int:
        return self._count

    def __reduce__(self) -> tuple[type[Changed], tuple[Path, int]]:
        return Changed, (self._path.absolute(), self._count)

    def __repr__(self) -> str:
        return f"<{number(self._count, self._what)} in {self.path}>"

    @property
    def _what(self) -> str:
        try:
            return super()._what
        except IncompleteError:  # a file that is missing or damaged has a repr, too
            return "maximal biclique"

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def files(self) -> list[Path]:
        """The file alone."""
        return [self._path]

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows; see `schemas.bicliques.biclique_schema`."""
        with _reading(self.path):
            return pq.read_schema(regular(self.path), filesystem=LOCAL)

    @property
    def names(self) -> tuple[str, str]:
        """What the input calls the left and the right side."""
        told = self.schema.metadata
        return told[b"bicliques.left"].decode(), told[b"bicliques.right"].decode()

    def dataset(self) -> ds.Dataset:
        """The rows as a `pyarrow.dataset.Dataset`, which reads nothing yet. DuckDB and Polars can scan it."""
        import pyarrow.dataset as ds  # imported only here, because it imports pandas

        with _reading(self.path):
            return ds.dataset(str(regular(self.path)), format="parquet", filesystem=LOCAL)

    @contextmanager
    def _opened(self, file: Path) -> Iterator[pq.ParquetFile]:
        with _reading(file), open_part(file) as part:
            yield part

    def top(self, n: int = 20, by: By = "edges") -> pa.Table:
        """The `n` largest bicliques, the largest first.

        Parameters
        ----------
        n : int
            How many.
        by : "edges", "vertices", "balance", "left" or "right"
            The measure. Ties are as of `pipeline.results.results.Results.top`.

        Raises
        ------
        InputError
            If a parameter is wrong.
        IncompleteError
            If the file is missing or damaged.
        """
        n = whole(n, "the number of bicliques to show", 1)
        with _reading(self.path):
            return rows_at(self.files, largest(self.files, n, by), self.schema)

    def _taken(self, numbers: list[int]) -> pa.Table:
        with _reading(self.path):
            return super()._taken(numbers)


class Difference:
    """What changed between two runs. `bicliques.diff` returns such an object.

    Parameters
    ----------
    path : Path
        Folder of the comparison.

    Attributes
    ----------
    path : Path
    record : Record
        All numbers, and what is proven.
    gone, new : Changed
        The bicliques that only the old run has, and those that only the new run has.

    Raises
    ------
    InputError
        If `path` is not the folder of a comparison.
    IncompleteError
        If its record is damaged.
    """

    def __init__(self, path: PathLike):
        self.path = path = as_path(path, "the folder of a comparison")
        if not (path / RECORD_FILE).is_file():
            raise InputError(f"{path} holds no comparison of two runs: it has no {RECORD_FILE}")
        with _reading(path / RECORD_FILE):
            self.record = Record.from_json(read_json(path / RECORD_FILE))
        self.gone = Changed(path / GONE_FILE, self.record.gone.count)
        self.new = Changed(path / NEW_FILE, self.record.new.count)

    def __reduce__(self) -> tuple[type[Difference], tuple[Path]]:
        return Difference, (self.path.absolute(),)

    def __repr__(self) -> str:
        unchanged = "" if self.unchanged is None else f", {self.unchanged:,} unchanged"
        return f"<{len(self.gone):,} gone, {len(self.new):,} new{unchanged}, in {self.path}>"

    @property
    def old_run(self) -> ComparedRun:
        """The run before."""
        return self.record.old_run

    @property
    def new_run(self) -> ComparedRun:
        """The run after."""
        return self.record.new_run

    @property
    def unchanged(self) -> int | None:
        """Number of bicliques that both runs have. None if neither was mined."""
        return self.record.unchanged

    @property
    def share(self) -> float | None:
        """Of the bicliques that are in any of the two runs, the share that is in one of them only, 0 to 1.

        None if neither was mined.
        """
        return self.record.share

    @cached_property
    def vertices(self) -> dict[str, pa.Table]:
        """By side, "left" and "right": the vertices that are in a biclique that is gone or new, sorted by label.

        Columns ``label``; ``before`` and ``after``, in how many bicliques it was and is; ``gone`` and ``new``, in how
        many of these. ``before - gone + new`` is ``after``.
        """
        found: dict[str, pa.Table] = {}
        for side, name in VERTEX_FILES.items():
            with _reading(self.path / name):
                found[side] = read_table(self.path / name)
        return found

    def most_changed(self, n: int = 5) -> list[dict[str, Any]]:
        """The `n` vertices with most bicliques that are gone or new. Each has its ``side``, and a row of `vertices`.

        Ties are in the order of sides and labels.

        Parameters
        ----------
        n : int
            How many.
        """
        tables = self.vertices
        sizes = np.concatenate([table["gone"].to_numpy() + table["new"].to_numpy() for table in tables.values()])
        found = []
        for at in np.argsort(-sizes, kind="stable")[:n].tolist():
            side = "left" if at < len(tables["left"]) else "right"
            row = at if side == "left" else at - len(tables["left"])
            found.append(
                {"side": side, **{name: tables[side][name][row].as_py() for name in tables[side].column_names}}
            )
        return found


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    try:
        yield
    except (IncompleteError, OSError, ValueError, pa.ArrowException) as error:
        reason = "it is missing" if not file.exists() else "it is damaged"
        raise IncompleteError(f"{file} cannot be read ({reason}); compare the two runs again") from error
