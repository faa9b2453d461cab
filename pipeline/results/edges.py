"""The rows of a run and the edges of its input, of which a few row groups are in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from bicliques.pipeline.proof.read_back import read_part
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.tables import check_edges, check_ids, open_part
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.errors import IncompleteError


def edge_groups(run: Run) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The dense ids of the left and of the right ends of the edges, int32, sorted by both, some of them at a time.

    Except for the last ones of a file these are at least as many edges as there are vertices on the larger side,
    because who counts the ends of some edges adds up as many sums as there are vertices. Raises `IncompleteError` if
    the edge table is missing or damaged.
    """
    sizes, files = (run.input["n_left"], run.input["n_right"]), run.folder.edge_files()
    n = 0
    for file in files:
        with open_part(file) as table:
            n += table.metadata.num_rows
    check_edges(files[0], n, sizes)
    for file in files:
        with open_part(file) as table:
            for groups in _long_enough(table.metadata, max(sizes)):
                edges = table.read_row_groups(groups, columns=["left", "right"])
                yield check_ids(edges["left"].to_numpy(), sizes[0]), check_ids(edges["right"].to_numpy(), sizes[1])


def degrees_of(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """The number of neighbours of every left and of every right vertex of the input, int64, by dense id.

    Raises `IncompleteError` if the edge table is missing or damaged.
    """
    left = right = np.zeros(1, np.int64)  # of all vertices once the edges are open, which tells that there are so many
    for ends in edge_groups(run):
        left = np.bincount(ends[0], minlength=run.input["n_left"]) + left
        right = np.bincount(ends[1], minlength=run.input["n_right"]) + right
    return left, right


def blocks_of(run: Run, wanted: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """Which of some left vertices are joined to which of some right vertices, for several choices of both.

    Raises `IncompleteError` if the edge table is missing or damaged.

    Parameters
    ----------
    wanted : sequence of (ndarray, ndarray), int32
        Dense ids of left and of right vertices, each once.

    Returns
    -------
    list of ndarray, shape (left vertices, right vertices), bool
    """
    sizes = run.input["n_left"], run.input["n_right"]
    found = [np.zeros((len(left), len(right)), bool) for left, right in wanted]
    places = [[_numbered(ids, n) for ids, n in zip(pair, sizes, strict=True)] for pair in wanted]
    for left, right in edge_groups(run) if any(block.size for block in found) else ():
        for block, (of_left, of_right) in zip(found, places, strict=True):
            row, column = of_left[left], of_right[right]
            both = (row >= 0) & (column >= 0)
            block[row[both], column[both]] = True
    return found


def _numbered(ids: np.ndarray, n: int) -> np.ndarray:
    """For every vertex its position among `ids`, or -1."""
    found = np.full(n, -1, VERTEX)
    found[ids] = np.arange(len(ids))
    return found


def _long_enough(metadata: pq.FileMetaData, least: int) -> Iterator[list[int]]:
    """Row groups to read together, with `least` rows or more."""
    groups: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= least:
            yield groups
            groups, rows = [], 0
    if groups:
        yield groups


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

        Raises `IncompleteError` if the part is missing or damaged.
        """
        with open_part(self._files[part]) as file:
            sizes = file.read_row_group(group, columns=["n_left", "n_right"], use_threads=False)
        left, right = (sizes[name].to_numpy().astype(np.int64) for name in ("n_left", "n_right"))
        return left, right

    def rows(self, part: int, group: int) -> Bicliques:
        """The rows of a row group."""
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
