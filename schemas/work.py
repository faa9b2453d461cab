"""Pieces of work, and the results of slices.

A unit of work is a node of the search tree. Unfinished work is always a list of such nodes. Engines take
`Subtrees`, work for a bounded slice, and return what they found and the nodes that are left. Load balancing,
progress, checkpoints, resume, cancellation and bounded buffers all follow from this contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from bicliques.schemas.bicliques import Emit
from bicliques.schemas.dtypes import OFFSET, VERTEX, gathered, offsets_of
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.stats import EngineStats
from bicliques.schemas.totals import Total

#: `Subtrees.todo` of a whole first-level subtree. Its candidates are all ranks after the root.
EVERYTHING = -1

#: Columns of `Subtrees.to_bytes`.
_PACKED = ["path", "candidates", "todo", "fresh", "ranged"]
_TYPES = [pa.large_list(pa.int32()), pa.large_list(pa.int32()), pa.int32(), pa.bool_(), pa.bool_()]

#: One node of `Subtrees`: path, candidates, todo, fresh.
Piece = tuple[np.ndarray, np.ndarray, int, bool]


@dataclass(frozen=True, eq=False)
class Subtrees:
    """A list of search-tree nodes whose subtrees are still to be explored, as flat arrays.

    Node ``i`` has

    - a *path*: root vertices (ranks) whose common neighbourhood is the node's L;
    - *candidates*: root vertices, in the order in which they are to be tried. Candidates that contain L join
      its closure. Candidates without a neighbour in L are skipped;
    - ``todo``: how many of the first candidates are to be explored here. The later ones are candidates
      inside the children, but their own children belong to another piece;
    - ``fresh``: whether the node's own biclique is still to be emitted. If not, its whole closure is in the path.

    Every other root vertex is *excluded*. If it could join the root side of a biclique, that biclique belongs to
    another piece. The closure of a node has every root vertex that is adjacent to all of L. If one of these is
    neither in the path nor a candidate, the node is *dead*, and is dropped. A whole first-level subtree has a path
    of one root, ``todo == EVERYTHING``, and is fresh. Its candidates are all ranks above the root, and are not stored.

    The candidates of a *ranged* node are all ranks from a first one on. Only the first is stored, because a hub of a
    large graph has millions. A ranged node is alive, and its whole closure is in the path. `in_lists` writes such
    candidates out for engines that only take lists.

    Where pairs may be no edges (`schemas.jobs.NearMaximal`), or bicliques need not be maximal
    (`schemas.jobs.AllSizes`), paths and candidates hold vertices of both sides, and base vertex ``u`` is
    ``n_roots + u``. A node is then as `kernels.reference.near` or `kernels.reference.pivot` says.

    Parameters
    ----------
    path_indptr, candidate_indptr : ndarray, shape (n + 1,), int64
    path, candidates : ndarray, int32
    todo : ndarray, shape (n,), int32
    fresh : ndarray, shape (n,), bool
    ranged : ndarray, shape (n,), bool
    """

    path_indptr: np.ndarray
    path: np.ndarray
    candidate_indptr: np.ndarray
    candidates: np.ndarray
    todo: np.ndarray
    fresh: np.ndarray
    ranged: np.ndarray

    def __len__(self) -> int:
        return len(self.todo)

    @classmethod
    def of_roots(cls, roots: np.ndarray) -> Subtrees:
        """Whole first-level subtrees, one per rank in `roots`, in that order."""
        n = len(roots)
        return cls.of_lists(
            np.arange(n + 1, dtype=OFFSET),
            np.asarray(roots, dtype=VERTEX),
            np.zeros(n + 1, dtype=OFFSET),
            np.empty(0, dtype=VERTEX),
            np.full(n, EVERYTHING, dtype=VERTEX),
            np.ones(n, dtype=np.bool_),
        )

    @classmethod
    def empty(cls) -> Subtrees:
        """No work."""
        return cls.of_roots(np.empty(0, dtype=VERTEX))

    @classmethod
    def of_pieces(cls, pieces: list[Piece]) -> Subtrees:
        """One node per (path, candidates, todo, fresh)."""
        if not pieces:
            return cls.empty()
        paths, candidates, todo, fresh = zip(*pieces, strict=True)
        return cls.of_lists(
            np.cumsum([0, *map(len, paths)], dtype=OFFSET),
            np.concatenate(paths).astype(VERTEX),
            np.cumsum([0, *map(len, candidates)], dtype=OFFSET),
            np.concatenate(candidates).astype(VERTEX),
            np.array(todo, dtype=VERTEX),
            np.array(fresh, dtype=np.bool_),
        )

    @classmethod
    def of_lists(
        cls,
        path_indptr: np.ndarray,
        path: np.ndarray,
        candidate_indptr: np.ndarray,
        candidates: np.ndarray,
        todo: np.ndarray,
        fresh: np.ndarray,
    ) -> Subtrees:
        """Nodes whose candidates are listed, or which are whole first-level subtrees."""
        return cls(path_indptr, path, candidate_indptr, candidates, todo, fresh, np.zeros(len(todo), np.bool_))

    @classmethod
    def of_ranges(
        cls, path_indptr: np.ndarray, path: np.ndarray, begin: np.ndarray, todo: np.ndarray, fresh: np.ndarray
    ) -> Subtrees:
        """Nodes whose candidates are all ranks from ``begin`` on."""
        n = len(begin)
        first = np.asarray(begin, dtype=VERTEX)
        return cls(
            np.asarray(path_indptr, dtype=OFFSET),
            np.asarray(path, dtype=VERTEX),
            np.arange(n + 1, dtype=OFFSET),
            first,
            np.asarray(todo, dtype=VERTEX),
            np.asarray(fresh, dtype=np.bool_),
            np.ones(n, dtype=np.bool_),
        )

    @classmethod
    def concat(cls, parts: list[Subtrees]) -> Subtrees:
        """All nodes of `parts`, in order."""
        parts = [part for part in parts if len(part)]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.empty()
        return cls(
            offsets_of(np.concatenate([np.diff(p.path_indptr) for p in parts])),
            np.concatenate([p.path for p in parts]),
            offsets_of(np.concatenate([np.diff(p.candidate_indptr) for p in parts])),
            np.concatenate([p.candidates for p in parts]),
            np.concatenate([p.todo for p in parts]),
            np.concatenate([p.fresh for p in parts]),
            np.concatenate([p.ranged for p in parts]),
        )

    def take(self, start: int, stop: int) -> Subtrees:
        """Nodes ``start`` to ``stop - 1``. All of them are this object."""
        if (start, stop) == (0, len(self)):
            return self
        p, c = self.path_indptr[start : stop + 1], self.candidate_indptr[start : stop + 1]
        return Subtrees(
            p - p[0],
            self.path[p[0] : p[-1]],
            c - c[0],
            self.candidates[c[0] : c[-1]],
            self.todo[start:stop],
            self.fresh[start:stop],
            self.ranged[start:stop],
        )

    def pick(self, which: np.ndarray) -> Subtrees:
        """The nodes with these numbers, in that order."""
        return Subtrees(
            *gathered(self.path, self.path_indptr[which], np.diff(self.path_indptr)[which]),
            *gathered(self.candidates, self.candidate_indptr[which], np.diff(self.candidate_indptr)[which]),
            self.todo[which],
            self.fresh[which],
            self.ranged[which],
        )

    def check(self, n_roots: int) -> Subtrees:
        """The same nodes, which a graph of so many roots can have, or vertices (`schemas.jobs.Job.numbers`).

        Raises
        ------
        IncompleteError
            They are of another graph, or damaged. An engine would read and write outside of its arrays.
        """
        known, listed = np.diff(self.path_indptr), np.diff(self.candidate_indptr)
        ends = (self.path_indptr, self.path), (self.candidate_indptr, self.candidates)
        held = np.where(self.ranged, 0, listed)
        first = np.zeros(len(self), VERTEX)
        fits = (
            len(known) == len(listed) == len(self.fresh) == len(self.ranged) == len(self)
            and all(indptr[0] == 0 and indptr[-1] == len(values) for indptr, values in ends)
            and all(len(ids) == 0 or 0 <= ids.min() <= ids.max() < n_roots for _, ids in ends)
            and bool((known > 0).all() and (listed >= 0).all() and (listed[self.ranged] == 1).all())
        )
        if fits:
            first[self.ranged] = self.candidates[self.candidate_indptr[:-1][self.ranged]]
            most = np.where(self.ranged, n_roots - first, held)
            is_whole = (self.todo == EVERYTHING) & (known == 1) & (listed == 0) & self.fresh
            fits = bool(((known + held <= n_roots) & (is_whole | (self.todo >= 0) & (self.todo <= most))).all())
        if not fits:
            raise IncompleteError(f"a stored list of subtrees is not of a graph with {n_roots} roots")
        return self

    def path_of(self, i: int) -> np.ndarray:
        """Path of node `i`, int32 ranks."""
        return self.path[self.path_indptr[i] : self.path_indptr[i + 1]]

    def candidates_of(self, i: int) -> np.ndarray:
        """Stored candidates of node `i`, int32 ranks. A whole first-level subtree has none, and a range has one."""
        return self.candidates[self.candidate_indptr[i] : self.candidate_indptr[i + 1]]

    def spread(self, pieces: int) -> Subtrees:
        """The same work in about `pieces` nodes, by dividing the ``todo`` lists of the longest nodes.

        This is exact, because the pieces of a node explore disjoint ranges of its candidates, and each keeps the later
        ones as candidates. Whole first-level subtrees and other fresh nodes are not divided, because some of their
        candidates may belong to the closure, and only an engine can find these. Only the first piece would have such a
        candidate, so the other pieces would be dead. Of a node that is not fresh, the whole closure is in the path.
        """
        total = int(np.maximum(self.todo, 1).sum())
        share = max(1, -(-total // max(pieces, 1)))
        is_long = (self.todo > share) & ~self.fresh
        if len(self) >= pieces or not is_long.any():
            return self
        parts: list[Subtrees] = []
        for i in range(len(self)):
            parts.append(self._cut(i, share) if is_long[i] else self.take(i, i + 1))
        return Subtrees.concat(parts)

    def _cut(self, i: int, share: int) -> Subtrees:
        candidates, todo, path = self.candidates_of(i), int(self.todo[i]), self.path_of(i)
        at = range(0, todo, share)
        if self.ranged[i]:
            lengths = [min(share, todo - k) for k in at]
            paths = np.arange(len(at) + 1) * len(path), np.tile(path, len(at))
            return Subtrees.of_ranges(*paths, candidates[0] + np.array(at), np.array(lengths), np.zeros(len(at)))
        return Subtrees.of_pieces([(path, candidates[k:], min(share, todo - k), False) for k in at])

    def to_bytes(self) -> bytes:
        """An Arrow IPC stream, compressed by zstd."""
        columns = [
            pa.LargeListArray.from_arrays(self.path_indptr, self.path),
            pa.LargeListArray.from_arrays(self.candidate_indptr, self.candidates),
            pa.array(self.todo),
            pa.array(self.fresh),
            pa.array(self.ranged),
        ]
        batch = pa.record_batch(columns, names=_PACKED)
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
            writer.write_batch(batch)
        return sink.getvalue().to_pybytes()

    @staticmethod
    def number_in(data: bytes) -> int:
        """Number of the nodes that `to_bytes` has packed, without unpacking their lists.

        Raises
        ------
        IncompleteError
            `data` is damaged.
        """
        with _unpacking():
            todo = pa.ipc.IpcReadOptions(included_fields=[_PACKED.index("todo")])
            return pa.ipc.open_stream(data, options=todo).read_all().num_rows

    @classmethod
    def from_bytes(cls, data: bytes) -> Subtrees:
        """Inverse of `to_bytes`.

        Raises
        ------
        IncompleteError
            `data` is damaged.
        """
        with _unpacking():
            table = pa.ipc.open_stream(data).read_all().combine_chunks()
            table.validate(full=True)
            if table.schema.types != _TYPES:
                raise TypeError(f"its columns are {table.schema.types}")
            path, candidates = (table[name].combine_chunks() for name in ("path", "candidates"))
            fresh, ranged = (np.asarray(table[name], dtype=np.bool_) for name in ("fresh", "ranged"))
        return cls(
            path.offsets.to_numpy().astype(OFFSET),
            path.values.to_numpy().astype(VERTEX),
            candidates.offsets.to_numpy().astype(OFFSET),
            candidates.values.to_numpy().astype(VERTEX),
            table["todo"].to_numpy().astype(VERTEX),
            fresh,
            ranged,
        )


def first_nodes(graph: MiningGraph, work: Subtrees) -> Subtrees:
    """The same nodes, where a whole first-level subtree begins with the vertices that the graph says are given.

    Every other vertex of the graph is a candidate of such a node, so nothing is excluded.
    """
    whole = work.todo == EVERYTHING
    if graph.given is None or not whole.any():
        return work
    given = np.array(graph.given, VERTEX)
    others = np.setdiff1d(np.arange(graph.n_roots + graph.n_base, dtype=VERTEX), given)
    node = Subtrees.of_pieces([(given, others, len(others), True)])
    return Subtrees.concat([node, work.pick(np.flatnonzero(~whole))])


@contextmanager
def _unpacking() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, KeyError, MemoryError, OSError, TypeError, ValueError) as error:
        raise IncompleteError(f"a stored list of subtrees cannot be read: {error}") from error


@dataclass(frozen=True, eq=False)
class Slice:
    """The result of one slice.

    Parameters
    ----------
    total : Total
        Total of the job of the search. `schemas.totals.Found` counts bicliques by the sizes of the user's sides
        (members, twins included). The `EngineKind` of an engine names the jobs that it can do.
    unfinished : Subtrees or callable
        The work that is still to be done. Where an engine needs time for that, but no device: () -> the work.
    """

    total: Total
    unfinished: Subtrees | Callable[[], Subtrees]
    stats: EngineStats = field(default_factory=EngineStats)

    @cached_property
    def left_over(self) -> Subtrees:
        """The work that is still to be done. Empty when the slice finished.

        To make it may take time, so whoever has an engine that others wait for asks for it afterwards.
        """
        return self.unfinished() if callable(self.unfinished) else self.unfinished

    @property
    def count(self) -> int:
        """Bicliques that the engine found."""
        return self.total.seen

    @property
    def fingerprint(self) -> int | None:
        """The fingerprint of the rows."""
        return self.total.fingerprint


class Engine(Protocol):
    """All that the pipeline knows of an engine. It treats all engines alike."""

    name: str

    def mine(self, graph: MiningGraph, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        """Explore `subtrees` until all is done or a limit is reached.

        In mode ``list`` every biclique is handed to `emit` exactly once, in batches whose arrays are valid only
        during the call. No biclique is emitted by both a slice and its left-over, and none by neither.
        """
        ...

    def stop(self) -> None:
        """End the running `mine` early, as if its time were over, or the next one if none runs.

        Another thread calls this.
        """
        ...
