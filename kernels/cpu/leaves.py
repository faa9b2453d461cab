"""Counts leaves behind the slice contract: one piece after the other (`kernels.reference.pivot`, `cliques` there).

A piece is counted as a whole or not at all. One that takes long, or would take much memory, is divided into the piece
with its path alone, and one for each of its candidates. These are not written out before they are counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bicliques.kernels.compiled.jit import Entry
from bicliques.kernels.reference.pivot import Bounds, by_side, keys_of
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.leaves import Leaves
from bicliques.schemas.search import Limits
from bicliques.schemas.stats import EngineStats
from bicliques.schemas.work import EVERYTHING, Slice, Subtrees

#: The compiled search, and what it answers. Its module is imported only to compile it.
COUNT_PIECES = Entry("bicliques.kernels.cpu.pivot", "count_pieces")
FINISHED, PAUSED, WIDER, DEEPER, FULL, HEAVY = range(6)
PIECE, DEPTH, ROOTS, BASE, STEPS, MOST_STEPS, MOST_WORDS, TAKEN, NEED, N_OWN, N_ALL, ROOM, OWN_MIX, MIX = range(14)
HELD, ONE = 15, 16
#: Integers per node of the stack.
_NODE = 7
#: Steps after which a piece is divided, and words of its rows.
_HEAVY, _WIDE = 1 << 20, 1 << 19
#: Steps until the first look at the clock, and seconds between two later ones.
_PULSE, _PULSE_S = 1 << 12, 0.005
#: Children of a divided piece that are prepared together.
_CHILDREN = 1 << 12
#: Places of the table for a piece. There are twice as many for all.
_PLACES = 1 << 16

#: The shares of vertices are not wanted.
_NO_SHARES = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.uint64)

#: Pieces name no base vertices.
_NOT_NAMED = np.empty(0, np.bool_), np.empty(0, VERTEX)

Table = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Batch(NamedTuple):
    """Pieces that are counted one after the other: see `kernels.cpu.pivot.count_pieces`.

    Parameters
    ----------
    indptr, path, after, place, named, listed : ndarray
    source : Subtrees
        The same pieces. If it is only one, and not fresh, they are its first children.
    held : ndarray
        Base vertices of their paths.
    """

    indptr: np.ndarray
    path: np.ndarray
    after: np.ndarray
    place: np.ndarray
    named: np.ndarray
    listed: np.ndarray
    source: Subtrees
    held: np.ndarray

    def __len__(self) -> int:
        return len(self.after)

    def path_of(self, i: int) -> np.ndarray:
        """Path of number `i`."""
        return self.path[self.indptr[i] : self.indptr[i + 1]]

    def rest(self, i: int) -> Subtrees:
        """All from number `i` on."""
        if self.source.fresh.all():
            return self.source.take(i, len(self))
        todo = int(self.source.todo[0]) - i
        return waiting(self.source.path_of(0), self.source.candidates_of(0)[i:], todo) if todo else Subtrees.empty()


def waiting(path: np.ndarray, candidates: np.ndarray, todo: int) -> Subtrees:
    """A piece of which only the children of the first candidates are to be counted."""
    return Subtrees.of_pieces([(path, candidates, todo, False)])


class LeafCounter:
    """Counts the leaves below pieces of one graph.

    Parameters
    ----------
    most : (int, int)
        The most held roots and base vertices: see `kernels.reference.pivot.held_bounds`.
    one : bool
        Whether cliques are counted.
    """

    def __init__(self, graph: MiningGraph, most: Bounds, one: bool = False) -> None:
        self.graph, self.most, self.one = graph, most, one
        n_base = len(graph.base_indptr) - 1
        at = [np.full(n, -1, VERTEX) for n in (graph.n_roots, n_base)]
        self._local = (*at, *(np.empty(n, VERTEX) for n in (graph.n_roots, n_base)))
        self._graph = graph.root_indptr, graph.root_indices, graph.base_indptr, graph.base_indices
        if one:
            self._graph = graph.neighbours() * 2
        self._bits, self._frames = np.empty(1 << 12, np.uint64), np.empty(1 << 12, np.uint64)
        self._ints = np.empty(_NODE << 8, np.int64)
        self._own, self._every = _table(_PLACES), _table(2 * _PLACES)
        self._trail, self._shares = np.empty(graph.n_roots + n_base + 1, np.int64), _NO_SHARES
        self._state, self._ranks = np.zeros(17, np.int64), np.arange(graph.n_roots, dtype=VERTEX)

    def slice(self, subtrees: Subtrees, limits: Limits, is_asked_to_stop: Callable[[], bool]) -> Slice:
        """Count until all is counted, the time is up, or somebody stops it. At least one piece is counted or divided.

        Parameters and result are those of `schemas.work.Engine.mine`.
        """
        started, pulse, done, late, work = time.perf_counter(), _PULSE, False, False, subtrees
        self._state[:] = 0
        heavy = _HEAVY if self._shares is _NO_SHARES else 1 << 62  # no piece that has shared may be counted again
        self._state[MOST_STEPS], self._state[MOST_WORDS], self._state[ROOM] = heavy, _WIDE, _PLACES
        self._state[ONE] = self.one
        found = Leaves.none()
        while len(work) and not (late and done):
            batch, work = self._next(work)
            self._state[PIECE], status, divided = 0, PAUSED, Subtrees.empty()
            self._state[HELD] = len(batch.held)
            while status != FINISHED:
                self._state[STEPS] = pulse
                began = time.perf_counter()
                status = self._count(batch)
                now = time.perf_counter()
                late = (limits.seconds is not None and now - started > limits.seconds) or is_asked_to_stop()
                is_open = bool(self._state[DEPTH])
                done |= bool(self._state[PIECE] > is_open)
                if status == HEAVY or (late and is_open and not done and self._state[ROOTS] > 1):
                    divided, done = self._divided(batch), True
                    break
                if status == FULL:  # the leaves of the piece before are not among those of all yet
                    found += self._flushed()
                elif late and done:
                    self._state[PIECE] -= is_open
                    self._drop()
                    break
                elif status == PAUSED:
                    pulse = int(np.clip(pulse * _PULSE_S / max(now - began, 1e-6), 1 << 10, 1 << 30))
                else:
                    self._make_room(status)
            work = Subtrees.concat([divided, batch.rest(int(self._state[PIECE])), work])
        found += self._flushed()
        return Slice(found, work, EngineStats(seconds=time.perf_counter() - started))

    def shares(self, roots: int, base: int) -> tuple[np.ndarray, np.ndarray]:
        """By root and by base vertex, how many bicliques of so many roots and base contain it, modulo 2**64."""
        n_roots, n_base = self.graph.n_roots, len(self._local[1])
        ways = np.ones((max(roots, base) + 1, max(n_roots, n_base) + 1), np.uint64)
        for k in range(1, len(ways)):
            ways[k] = np.concatenate([np.zeros(1, np.uint64), np.cumsum(ways[k - 1, :-1], dtype=np.uint64)])
        found = np.zeros(n_roots, np.uint64), np.zeros(n_base, np.uint64)
        self._shares = ways.ravel(), np.array([roots, base]), *found
        self.slice(Subtrees.of_roots(self._ranks), Limits(), lambda: False)
        self._shares = _NO_SHARES
        return found

    def _count(self, batch: Batch) -> int:
        memory = self._local, self._bits, self._frames, self._ints, self._own, self._every
        return COUNT_PIECES(
            self._graph, batch[:6], len(batch), *memory, self.most, self._trail, self._shares, self._state
        )

    def _next(self, work: Subtrees) -> tuple[Batch, Subtrees]:
        """The pieces to count next, and the others."""
        n = self.graph.n_roots
        firsts = work.todo == EVERYTHING
        if firsts.any():
            own = work.pick(np.flatnonzero(firsts))
            batch = Batch(own.path_indptr, own.path, own.path, self._ranks, *_NOT_NAMED, own, own.path[:0])
            return batch, work.pick(np.flatnonzero(~firsts))
        path, todo, listed = work.path_of(0), int(work.todo[0]), work.candidates_of(0)
        if work.ranged[0]:
            listed = np.arange(listed[0], n, dtype=VERTEX)
        path, held, listed, base, todo = *_by_side(path, n), *_by_side(listed, n), int((listed[:todo] < n).sum())
        place, names = np.full(n, -1, VERTEX), _NOT_NAMED
        if len(held) or len(base):
            names = np.zeros(len(self._local[1]), np.bool_), listed
            names[0][base - n] = True
        else:
            place[listed] = np.arange(len(listed))
        rest = work.take(1, len(work))
        if work.fresh[0] and todo == len(listed):
            alone = np.array([0, len(path)]), path, np.array([-1], VERTEX)
            return Batch(*alone, place, *names, work.take(0, 1), held), rest
        children = waiting(np.append(path, held), np.append(listed, base), todo)
        if work.fresh[0]:
            own = Subtrees.of_pieces([(np.append(path, held), base, 0, True)])
            return self._next(Subtrees.concat([own, children, rest]))
        first = np.arange(min(todo, _CHILDREN), dtype=VERTEX)
        paths = np.column_stack([np.tile(path, (len(first), 1)), listed[: len(first)]]).astype(VERTEX)
        indptr = np.arange(len(first) + 1) * paths.shape[1]
        return Batch(indptr, paths.ravel(), first, place, *names, children, held), rest

    def _divided(self, batch: Batch) -> Subtrees:
        """The open piece in two: its path alone, and the children of all of its candidates."""
        path = np.append(batch.path_of(int(self._state[PIECE]) - 1), batch.held)
        roots = self._local[2][: self._state[ROOTS]].copy()
        base = self._local[3][: self._state[BASE] if len(batch.named) else 0] + VERTEX.type(self.graph.n_roots)
        self._drop()
        alone = Subtrees.of_pieces([(path, base, 0, True)])
        return Subtrees.concat([alone, waiting(path, np.append(roots, base), len(roots))])

    def _drop(self) -> None:
        """Forget what was counted of the open piece."""
        self._own[2][self._own[3][: self._state[N_OWN]]] = 0
        self._state[N_OWN] = self._state[DEPTH] = self._state[OWN_MIX] = 0

    def _flushed(self) -> Leaves:
        """The leaves of the pieces that are done, which are then forgotten."""
        used = self._every[3][: self._state[N_ALL]]
        roots, base, numbers = (column[used] for column in self._every[:3])
        self._every[2][used] = 0
        keys, mix = keys_of(roots, base), int(self._state[MIX]) % 2**64
        found = Leaves.of(keys, numbers, mix) if self.one else by_side(self.graph, keys, numbers, mix)
        self._state[N_ALL] = self._state[MIX] = 0
        return found

    def _make_room(self, status: int) -> None:
        if status == WIDER:
            n = int(self._state[NEED])
            self._bits = np.empty(max(2 * n, len(self._bits)), np.uint64)
            self._frames = np.empty(max(len(self._frames), 16 * (n + 64) // 64 + 1024), np.uint64)
        elif status == DEEPER:
            self._frames = np.concatenate([self._frames, np.empty_like(self._frames)])
            self._ints = np.concatenate([self._ints, np.empty_like(self._ints)])


def _by_side(vertices: np.ndarray, n_roots: int) -> tuple[np.ndarray, np.ndarray]:
    return vertices[vertices < n_roots], vertices[vertices >= n_roots]


def _table(size: int) -> Table:
    """An empty table of leaves; see `kernels.cpu.pivot.count_pieces`."""
    return np.empty(size, np.uint64), np.empty(size, np.uint64), np.zeros(size, np.int64), np.empty(size, np.int64)


def workspace_bytes(graph: MiningGraph) -> int:
    """The most memory of a counter besides the graph. A stack takes up to four times the rows of a piece.

    To find neighbours takes 28 bytes per edge. Only cliques need them.
    """
    n = graph.n_roots, len(graph.base_indptr) - 1
    rows = n[0] * (n[1] + 63 >> 6) + n[1] * (n[0] + 63 >> 6)
    return 8 * (2 + 8) * min(rows, _WIDE) + 5 * 32 * _PLACES + 20 * sum(n) + 28 * graph.n_edges
