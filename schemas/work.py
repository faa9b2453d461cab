"""Pieces of work, and what comes back when some of it is done.

A unit of work is a node of the search tree; any unfinished work is a list of such nodes. Engines take
`Subtrees`, work for a bounded slice, and return what they found plus the nodes that are left. This one
contract gives load balancing, progress, checkpoints, resume, cancellation and bounded buffers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from schemas.dtypes import OFFSET, VERTEX
from schemas.emit import Emit
from schemas.errors import IncompleteError
from schemas.graph import MiningGraph
from schemas.search import Limits, Search
from schemas.stats import EngineStats
from schemas.totals import Total

__all__ = ["EVERYTHING", "Engine", "Piece", "Slice", "Subtrees"]

#: `Subtrees.todo` of a whole first-level subtree: its candidates are all that come after the root.
EVERYTHING = -1

#: One node of `Subtrees`: path, candidates, todo, fresh.
Piece = tuple[np.ndarray, np.ndarray, int, bool]


@dataclass(frozen=True, eq=False)
class Subtrees:
    """A list of search-tree nodes whose subtrees are still to be explored, as flat arrays.

    Node ``i`` has

    - a *path*: root vertices (ranks) whose common neighbourhood is the node's L;
    - *candidates*: root vertices, in the order in which they are to be tried. Those that contain L join
      its closure, those that miss L are passed over;
    - ``todo``: how many of the leading candidates are to be explored here. The ones behind them are
      candidates inside the children, but their own children belong to another piece;
    - ``fresh``: the node's own biclique is still to be emitted. If it is not, all of the closure is in the path.

    Every other root vertex is *excluded*: a biclique whose root side it could join belongs to somebody
    else. So the node itself is dead, and dropped, when its closure (every root vertex adjacent to all of
    L) has a member that is neither in the path nor a candidate. A whole first-level subtree is a path of
    one root, ``todo == EVERYTHING``, no stored candidates (all ranks above the root), fresh.

    A node whose candidates are *all ranks from one on* (``ranged``) stores the first of them alone, because a hub
    of a large graph has millions. It is alive, and all of its closure is in the path. `in_lists` writes such
    candidates out, for engines that take lists only.

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
        """Whole first-level subtrees, one for each rank in `roots`, in that order."""
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
        """One node for each (path, candidates, todo, fresh)."""
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
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.empty()
        return cls(
            _join_offsets([p.path_indptr for p in parts]),
            np.concatenate([p.path for p in parts]),
            _join_offsets([p.candidate_indptr for p in parts]),
            np.concatenate([p.candidates for p in parts]),
            np.concatenate([p.todo for p in parts]),
            np.concatenate([p.fresh for p in parts]),
            np.concatenate([p.ranged for p in parts]),
        )

    def take(self, start: int, stop: int) -> Subtrees:
        """Nodes ``start`` to ``stop - 1``."""
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
        """The nodes of these numbers, in that order."""
        return Subtrees(
            *_pick_lists(self.path_indptr, self.path, which),
            *_pick_lists(self.candidate_indptr, self.candidates, which),
            self.todo[which],
            self.fresh[which],
            self.ranged[which],
        )

    def path_of(self, i: int) -> np.ndarray:
        """Path of node `i`, int32 ranks."""
        return self.path[self.path_indptr[i] : self.path_indptr[i + 1]]

    def candidates_of(self, i: int) -> np.ndarray:
        """Stored candidates of node `i`, int32 ranks: none for a whole first-level subtree, one for a range."""
        return self.candidates[self.candidate_indptr[i] : self.candidate_indptr[i + 1]]

    def spread(self, pieces: int) -> Subtrees:
        """The same work in about `pieces` nodes, by dealing out the ``todo`` lists of the longest nodes.

        Exact: the pieces of a node explore disjoint ranges of its candidates, and each keeps the later ones as
        candidates. Whole first-level subtrees and other fresh nodes are left as they are: only an engine can open
        them, and tell which candidates belong to the closure. Of a node that is not fresh all of these are in the
        path; a member among the candidates would be missing from all pieces but the first, and make them dead.
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
        """Arrow IPC stream, zstd."""
        batch = pa.record_batch(
            {
                "path": pa.LargeListArray.from_arrays(self.path_indptr, self.path),
                "candidates": pa.LargeListArray.from_arrays(self.candidate_indptr, self.candidates),
                "todo": self.todo,
                "fresh": pa.array(self.fresh),
                "ranged": pa.array(self.ranged),
            }
        )
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
            writer.write_batch(batch)
        return sink.getvalue().to_pybytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Subtrees:
        """Inverse of `to_bytes`.

        Raises
        ------
        IncompleteError
            If `data` is damaged.
        """
        try:
            table = pa.ipc.open_stream(data).read_all().combine_chunks()
            path, candidates = (table[name].combine_chunks() for name in ("path", "candidates"))
            fresh, ranged = (np.asarray(table[name], dtype=np.bool_) for name in ("fresh", "ranged"))
        except (pa.ArrowInvalid, pa.ArrowKeyError, KeyError, OSError) as error:
            raise IncompleteError(f"a stored list of subtrees cannot be read: {error}") from error
        return cls(
            path.offsets.to_numpy().astype(OFFSET),
            path.values.to_numpy().astype(VERTEX),
            candidates.offsets.to_numpy().astype(OFFSET),
            candidates.values.to_numpy().astype(VERTEX),
            table["todo"].to_numpy().astype(VERTEX),
            fresh,
            ranged,
        )


def _pick_lists(indptr: np.ndarray, values: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    lengths = indptr[which + 1] - indptr[which]
    picked = np.concatenate([np.zeros(1, OFFSET), np.cumsum(lengths, dtype=OFFSET)])
    return picked, values[np.arange(picked[-1]) + np.repeat(indptr[which] - picked[:-1], lengths)]


def _join_offsets(offsets: list[np.ndarray]) -> np.ndarray:
    lengths = np.concatenate([np.diff(o) for o in offsets])
    return np.concatenate([np.zeros(1, OFFSET), np.cumsum(lengths, dtype=OFFSET)])


@dataclass(frozen=True, eq=False)
class Slice:
    """What one slice did.

    Parameters
    ----------
    total : Total
        What the job of the search adds up. `schemas.totals.Found` counts bicliques by the sizes of the user's sides
        (members, twins included); an engine that cannot do a job says so in its `EngineKind`.
    left_over : Subtrees
        What is still to be done; empty when the slice finished.
    stats : EngineStats
    """

    total: Total
    left_over: Subtrees
    stats: EngineStats = field(default_factory=EngineStats)

    @property
    def count(self) -> int:
        """Bicliques that the engine came to."""
        return self.total.seen

    @property
    def fingerprint(self) -> int | None:
        """Of the rows."""
        return self.total.fingerprint


class Engine(Protocol):
    """What the pipeline knows of an engine; it cannot tell them apart."""

    name: str

    def mine(self, graph: MiningGraph, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        """Explore `subtrees` until done or until a limit is reached.

        In mode ``list`` every biclique emitted is handed to `emit` exactly once, in batches whose arrays
        are valid only during the call. Nothing is ever emitted twice or lost between a slice and its
        left-over.
        """
        ...
