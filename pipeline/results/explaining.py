"""Explains one biclique: how its members are joined to the graph, who nearly belongs, and what overlaps it most."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.output.part_writer import to_batch
from bicliques.pipeline.proof.selection import Place, rows_at
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.results.candidates import ABOVE_NOTHING, best_rows
from bicliques.pipeline.results.edges import Parts, blocks_of, edge_groups
from bicliques.pipeline.results.explanation import Explanation, Standing
from bicliques.pipeline.results.surprise import surprise_of
from bicliques.pipeline.rows.collection import bicliques_of
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.search import MEASURES, By, Side
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.totals import measured

SIDES: tuple[Side, Side] = ("left", "right")
#: An array for the left side, and one for the right side.
Sides = tuple[np.ndarray, np.ndarray]


class _Counted(NamedTuple):
    """What is known of every vertex, by dense id, int64: how many neighbours it has, and how many members are among
    them. None is known of the rows of a run that is not complete: in how many each vertex is.
    """

    degrees: Sides
    joined: Sides
    bicliques: Sides | None


class _Near(NamedTuple):
    """The vertices of a side that nearly belong: how many there are, and the dense ids of the nearest, int32."""

    total: int
    ids: np.ndarray


def explained(
    run: Run,
    files: Sequence[Path],
    schema: pa.Schema,
    place: Place,
    summary: Summary | None,
    sizes: SizeCounts,
    missing: int,
    n: int,
) -> Explanation:
    """Explain the biclique at a place; see `pipeline.results.by_id.ById.explain`.

    Raises `IncompleteError` if a part or the edge table is missing or damaged.

    Parameters
    ----------
    files : sequence of Path
        Its parts.
    schema : Schema
        That of the rows.
    summary : Summary or None
        That of the run, if it is complete.
    sizes : SizeCounts
        How many bicliques of each size the run has.
    missing, n : int
        As of `explain`.
    """
    parts = Parts(run, files)
    row = parts.rows(*place[:2]).pick(np.array(place[2:]))
    members: Sides = row.left, row.right
    counted = _counted(run, members, summary)
    near = [_near(counted, members, k, missing, n) for k in (0, 1)]
    none = np.empty(0, VERTEX)
    own = (none, none) if row.missing is None else members
    of_left, of_right, joined = blocks_of(run, [(near[0].ids, row.right), (row.left, near[1].ids), own])
    at = np.argwhere(~joined).T
    holes, with_holes = (row.left[at[0]], row.right[at[1]]), np.unique(at[0])
    lacking = [[row.right[~own] for own in of_left], [row.left[~own] for own in of_right.T]]
    of_holes = _labels(run, 0, row.left[with_holes]), _lists(run, 1, [row.right[~joined[k]] for k in with_holes])
    of_members = [own[ids] for own, ids in zip(counted.degrees, members, strict=True)]
    (biclique,) = bicliques_of([to_batch(row, run.tables)])
    return Explanation(
        biclique=biclique,
        run=run.store.address,
        names=run.names,
        count=sizes.total,
        standings=_standings(sizes, *map(len, members)),
        surprise=surprise_of(
            of_members[0],
            of_members[1],
            parts.n_vertices,
            int(counted.degrees[0].sum()),
            (of_members[0][at[0]], of_members[1][at[1]]),
        ),
        members={side: _table(run, counted, k, members[k]) for k, side in enumerate(SIDES)},
        near={
            side: _table(run, counted, k, near[k].ids).append_column("missing", _lists(run, 1 - k, lacking[k]))
            for k, side in enumerate(SIDES)
        },
        n_near={side: near[k].total for k, side in enumerate(SIDES)},
        missing=missing,
        n=n,
        overlapping=_overlapping(run, parts, files, schema, row, holes, place, n),
        holes=None if row.missing is None else pa.table({"label": of_holes[0], "missing": of_holes[1]}),
    )


def _counted(run: Run, members: Sides, summary: Summary | None) -> _Counted:
    """One pass over the edges, with 16 bytes per vertex."""
    sizes, groups = (run.input["n_left"], run.input["n_right"]), edge_groups(run)
    first = next(groups)  # with which it is checked that there are so many vertices
    degrees, joined = ((np.zeros(sizes[0], np.int64), np.zeros(sizes[1], np.int64)) for _ in range(2))
    are_members = [_marked(ids, n) for ids, n in zip(members, sizes, strict=True)]
    for ends in chain((first,), groups):
        for k in (0, 1):
            to_member = ends[k][are_members[1 - k][ends[1 - k]]]
            degrees[k][:] += np.bincount(ends[k], minlength=sizes[k])
            joined[k][:] += np.bincount(to_member, minlength=sizes[k])
    return _Counted(degrees, joined, None if summary is None else (summary.left, summary.right))


def _marked(ids: np.ndarray, n: int) -> np.ndarray:
    marks = np.zeros(n, bool)
    marks[ids] = True
    return marks


def _near(counted: _Counted, members: Sides, k: int, missing: int, n: int) -> _Near:
    """The vertices of side `k` that are joined to a member and miss at most so many: those that miss fewest come first,
    then those with fewest other neighbours, then those with the smallest label.
    """
    lacks = len(members[1 - k]) - counted.joined[k]
    is_near = (counted.joined[k] > 0) & (lacks <= missing)
    is_near[members[k]] = False
    ids = np.flatnonzero(is_near)
    order = np.lexsort((ids, counted.degrees[k][ids], lacks[ids]))
    return _Near(len(ids), ids[order[:n]].astype(VERTEX))


def _table(run: Run, counted: _Counted, k: int, ids: np.ndarray) -> pa.Table:
    """What is known of vertices of side `k`."""
    unknown = pa.nulls(len(ids), pa.int64())
    return pa.table(
        {
            "label": _labels(run, k, ids),
            "degree": counted.degrees[k][ids],
            "bicliques": unknown if counted.bicliques is None else counted.bicliques[k][ids],
        }
    )


def _labels(run: Run, k: int, ids: np.ndarray) -> pa.Array:
    """Vertices as the rows of the run name them."""
    return pa.array(ids) if run.tables is None else run.tables[k].take(pa.array(ids))


def _lists(run: Run, k: int, lists: list[np.ndarray]) -> pa.ListArray:
    ends = np.cumsum([0, *map(len, lists)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), _labels(run, k, np.concatenate([np.empty(0, VERTEX), *lists])))


def _standings(sizes: SizeCounts, n_left: int, n_right: int) -> dict[By, Standing]:
    """The place of a size among all rows, by each measure."""
    found = {}
    left, right = sizes.n_left.astype(np.int64), sizes.n_right.astype(np.int64)
    for by in MEASURES:
        keys, own = measured(left, right, by), measured(np.array([n_left]), np.array([n_right]), by)
        found[by] = Standing(1 + int(sizes.count[keys > own].sum()), int(sizes.count[keys == own].sum()) - 1)
    return found


class SharedEdges:
    """The score of the rows that overlap a biclique: the number of edges that they share with it.

    Parameters
    ----------
    row : Bicliques
        One biclique.
    holes : (ndarray, ndarray)
        The left and the right ends of its missing pairs, which are no edges of another row, either.
    n_vertices : (int, int)
        Left and right vertices of the input.
    """

    def __init__(self, row: Bicliques, holes: Sides, n_vertices: tuple[int, int]):
        self._holes = list(zip(*holes, strict=True))
        self._sizes = len(row.left), len(row.right)
        self._marks = _marked(row.left, n_vertices[0]), _marked(row.right, n_vertices[1])

    def most(self, n_left: int, n_right: int) -> int:
        """All edges of the smaller of each two sides."""
        return min(n_left, self._sizes[0]) * min(n_right, self._sizes[1])

    def bounds(self, n_left: np.ndarray, n_right: np.ndarray) -> np.ndarray:
        """The same for each pair of sizes."""
        shared: np.ndarray = np.minimum(n_left, self._sizes[0]) * np.minimum(n_right, self._sizes[1])
        return shared

    def of(self, rows: Bicliques, numbers: np.ndarray) -> np.ndarray:
        """The edges that each of these rows shares with it."""
        left = np.add.reduceat(self._marks[0][rows.left], rows.left_indptr[:-1], dtype=np.int64)
        right = np.add.reduceat(self._marks[1][rows.right], rows.right_indptr[:-1], dtype=np.int64)
        shared: np.ndarray = left * right
        for u, v in self._holes:
            ends = (rows.left == u, rows.left_indptr), (rows.right == v, rows.right_indptr)
            of_left, of_right = (np.logical_or.reduceat(is_end, indptr[:-1]) for is_end, indptr in ends)
            shared -= of_left & of_right
        return shared[numbers]


def _overlapping(
    run: Run, parts: Parts, files: Sequence[Path], schema: pa.Schema, row: Bicliques, holes: Sides, place: Place, n: int
) -> pa.Table:
    """The other rows that share most edges with a biclique, in one pass over those that can share as many."""
    best = best_rows(parts, SharedEdges(row, holes, parts.n_vertices), n + 1, hold=False, between=(ABOVE_NOTHING, None))
    others = [(one, edges) for one, edges in zip(best.places, best.ranks[:, 0], strict=True) if one != place][:n]
    rows = rows_at(files, [one for one, _ in others], schema)
    shared = {
        f"shared_{side}": _shared(rows[side], _labels(run, k, own))
        for k, (side, own) in enumerate(zip(SIDES, (row.left, row.right), strict=True))
    }
    edges = np.array([shares for _, shares in others], np.int64)
    own = len(row.left) * len(row.right) - len(holes[0])
    columns = {"share": edges / own, "shared_edges": edges} | shared
    return pa.table(columns | {name: rows[name] for name in rows.column_names})


def _shared(lists: pa.ChunkedArray, members: pa.Array) -> np.ndarray:
    """How many members each list has of these, int64."""
    whole = lists.combine_chunks()
    lengths = whole.value_lengths().to_numpy()
    are_shared = pc.is_in(whole.flatten(), value_set=members).to_numpy(zero_copy_only=False)
    return np.bincount(np.repeat(np.arange(len(lengths)), lengths), are_shared, len(lengths)).astype(np.int64)
