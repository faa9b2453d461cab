"""The rows of a run, one row group at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from bicliques.pipeline.proof.read_back import read_part
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.tables import open_part
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.errors import IncompleteError


class Parts:
    """The parts of a run. Threads may read them at the same time.

    Parameters
    ----------
    files : sequence of Path
        The parts in their order, which numbers them from 0.

    Attributes
    ----------
    n_vertices : (int, int)
        Left and right vertices of the input.
    n_files : int
    """

    #: Rows that a thread decodes together.
    at_once = 1 << 31

    def __init__(self, run: Run, files: Sequence[Path]):
        self._files, self._tables, self.n_files = files, run.tables, len(files)
        left, right = map(len, run.labels)
        self.n_vertices = left, right

    def groups(self, parts: Iterable[int] | None = None) -> list[tuple[int, int, tuple[int, int] | None]]:
        """Every row group: numbers of the part and of the row group in it, and the largest sizes of both sides.

        The sizes are those of the statistics, and None if these do not say. `parts` has the numbers of the parts to
        look at. None: of all.
        """
        found = []
        for k in range(len(self._files)) if parts is None else parts:
            with open_part(self._files[k]) as part:
                for group in range(part.num_row_groups):
                    found.append((k, group, _largest_sizes(part.metadata.row_group(group))))
        return found

    def sizes(self, part: int, group: int) -> tuple[np.ndarray, np.ndarray]:
        """The left and right sizes of the rows of a row group, int64. Only these two columns are read.

        Raises
        ------
        IncompleteError
            If the part is missing or damaged.
        """
        with open_part(self._files[part]) as file:
            sizes = file.read_row_group(group, columns=["n_left", "n_right"], use_threads=False)
        left, right = (sizes[name].to_numpy().astype(np.int64) for name in ("n_left", "n_right"))
        return left, right

    def rows(self, part: int, group: int) -> Bicliques:
        """The rows of a row group.

        Raises
        ------
        IncompleteError
            If the part is missing or damaged, or holds an id that no vertex has.
        """
        path = self._files[part]
        (rows,) = read_part(path, self._tables, (group, group + 1), self.at_once)
        for side, members, n in zip(("left", "right"), (rows.left, rows.right), self.n_vertices, strict=True):
            if members.min(initial=0) < 0 or members.max(initial=0) >= n:
                raise IncompleteError(f"{path} holds a {side} id that no vertex has; delete it and resume the run")
        return rows


def _largest_sizes(group: pq.RowGroupMetaData) -> tuple[int, int] | None:
    columns = (group.column(k) for k in range(group.num_columns))
    found = {one.path_in_schema: one.statistics for one in columns if one.path_in_schema in ("n_left", "n_right")}
    if any(one is None or not one.has_min_max for one in found.values()):
        return None
    return found["n_left"].max, found["n_right"].max
