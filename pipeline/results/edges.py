"""The edges of the input of a run. A few row groups of its edge table are in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow.parquet as pq

from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.tables import check_edges, check_ids, open_part
from bicliques.schemas.dtypes import VERTEX


def edge_groups(run: Run) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The dense ids of the left and of the right ends of the edges, int32, sorted by both, some of them at a time.

    Except for the last ones of a file these are at least as many edges as there are vertices on the larger side,
    because who counts the ends of some edges adds up as many sums as there are vertices.

    Raises
    ------
    IncompleteError
        If the edge table is missing or damaged.
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

    Raises
    ------
    IncompleteError
        If the edge table is missing or damaged.
    """
    left = right = np.zeros(1, np.int64)  # of all vertices once the edges are open, which tells that there are so many
    for ends in edge_groups(run):
        left = np.bincount(ends[0], minlength=run.input["n_left"]) + left
        right = np.bincount(ends[1], minlength=run.input["n_right"]) + right
    return left, right


def blocks_of(run: Run, wanted: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """Which of some left vertices are joined to which of some right vertices, for several choices of both.

    Parameters
    ----------
    wanted : sequence of (ndarray, ndarray), int32
        Dense ids of left and of right vertices, each once.

    Returns
    -------
    list of ndarray, shape (left vertices, right vertices), bool

    Raises
    ------
    IncompleteError
        If the edge table is missing or damaged.
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
