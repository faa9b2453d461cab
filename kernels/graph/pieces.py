"""Makes the graph of `kernels.graph.prepare`, array for array, with a device that has room for some edges at a time.

Edges stay in main memory. The device counts degrees, removes what is too small, compares rows and transposes, and gets
a piece of the edges for each of these. A core that fits on the device as a whole is finished there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bicliques.kernels.graph.core import core_edges
from bicliques.kernels.graph.csr import from_sorted_pairs, select_rows
from bicliques.kernels.graph.prepare import Passes, graph_of_core
from bicliques.kernels.graph.sorting import (
    ROUNDS,
    VERTEX_BYTES,
    Csr,
    degrees_of,
    edges_of_a_whole,
    first_of_keys,
    groups_of,
    prepare_on,
    row_keys,
)
from bicliques.kernels.graph.twins import group_twins
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.facts import PrepareFacts
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.hashes import VertexHashes
from bicliques.schemas.jobs import EVERY_REDUCTION, Reduction
from bicliques.schemas.options import BuildOptions

#: Device memory per edge of a piece, in bytes, at the peak, besides `VERTEX_BYTES`.
PIECE_BYTES = 120

#: Edges in main memory, left and right ids, in order.
_Edges = list[tuple[np.ndarray, np.ndarray]]
#: A number per left and per right vertex, on the device.
_Both = tuple[Any, Any]


def edges_of_a_piece(free_bytes: int, n_left: int, n_right: int) -> int:
    """How many edges a device with so much free memory has room for at a time. 0 or less if it has none."""
    return (free_bytes - VERTEX_BYTES * max(n_left, n_right)) // PIECE_BYTES


@dataclass(frozen=True)
class PieceDevice:
    """A device that works on some edges at a time.

    Parameters
    ----------
    xp : module
        cupy or numpy.
    upload, download : callable
        Copy an array of NumPy to the device, and back. The arrays have one dimension.
    edges : int
        Most edges of a piece. It has more where a single row does.
    whole : int
        Most edges of a graph that the device builds as a whole.
    threads : int
        Threads of the host that copy rows.
    """

    xp: Any
    upload: Callable[[np.ndarray], Any]
    download: Callable[[Any], np.ndarray]
    edges: int
    whole: int
    threads: int = 1

    @classmethod
    def of(
        cls,
        xp: Any,
        upload: Callable[[np.ndarray], Any],
        download: Callable[[Any], np.ndarray],
        free_bytes: int,
        sizes: tuple[int, int],
        threads: int,
    ) -> PieceDevice:
        """A device with so much free memory, for a graph with so many left and right vertices."""
        edges = edges_of_a_piece(free_bytes, *sizes), edges_of_a_whole(free_bytes, *sizes)
        return cls(xp, upload, download, *edges, threads)

    def transpose(
        self, indptr: np.ndarray, indices: np.ndarray, n_columns: int, _: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `kernels.graph.csr.transpose`. Each range of columns is gathered from all pieces, and sorted."""
        xp, rows = self.xp, list(pairwise(_cuts(indptr, self.edges)))
        degrees = xp.zeros(n_columns, OFFSET)
        for start, stop in rows:
            degrees += degrees_of(xp, self.upload(indices[indptr[start] : indptr[stop]]), n_columns)
        out_indptr = np.zeros(n_columns + 1, OFFSET)
        np.cumsum(self.download(degrees), out=out_indptr[1:])
        del degrees
        out = np.empty(len(indices), VERTEX)
        for first, behind in pairwise(_cuts(out_indptr, self.edges)):
            words = []
            for start, stop in rows:
                columns = self.upload(indices[indptr[start] : indptr[stop]])
                chosen = xp.flatnonzero((columns >= first) & (columns < behind))
                ends = self.upload(indptr[start + 1 : stop + 1] - indptr[start])
                row = xp.searchsorted(ends, chosen, side="right") + start
                words.append((columns[chosen].astype(np.int64) << 32) | row)
                del columns, chosen, ends, row
            together = words[0] if len(words) == 1 else xp.concatenate(words)
            del words
            together.sort()
            out[out_indptr[first] : out_indptr[behind]] = self.download((together & 0xFFFFFFFF).astype(VERTEX))
        return out_indptr, out

    def group_twins(
        self, indptr: np.ndarray, indices: np.ndarray, threads: int = 1
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `kernels.graph.twins.group_twins`, which does it where different rows ever have the same hash."""
        xp, n = self.xp, len(indptr) - 1
        if n == 0:
            return group_twins(indptr, indices, threads)
        key = xp.empty(n, np.uint64)
        for start, stop in pairwise(_cuts(indptr, self.edges)):
            part = self.upload(indices[indptr[start] : indptr[stop]])
            key[start:stop] = row_keys(xp, Csr(self.upload(indptr[start : stop + 1] - indptr[start]), part))
        first = first_of_keys(xp, key, self.upload(np.diff(indptr)))
        del key
        if not self._are_equal(indptr, indices, self.download(first)):
            return group_twins(indptr, indices, threads)
        twins = groups_of(xp, first)
        return self.download(twins.representatives), self.download(twins.members_indptr), self.download(twins.members)

    def _are_equal(self, indptr: np.ndarray, indices: np.ndarray, first: np.ndarray) -> bool:
        """Whether every row is equal to its first row, which has as many columns. The host compares them."""
        others = np.flatnonzero(first != np.arange(len(first)))
        until = np.concatenate([[0], np.cumsum(np.diff(indptr)[others])])
        for start, stop in pairwise(_cuts(until, self.edges)):
            rows = others[start:stop]
            own, other = (select_rows(indptr, indices, these, self.threads)[1] for these in (rows, first[rows]))
            if not np.array_equal(own, other):
                return False
        return True

    def degrees(self, edges: _Edges, n_left: int, n_right: int) -> _Both:
        """Degrees of all vertices, int64."""
        found = self._no_degrees(n_left, n_right)
        for piece in edges:
            for degree, ids in zip(found, piece, strict=True):
                degree += degrees_of(self.xp, self.upload(ids), len(degree))
        return found

    def _no_degrees(self, n_left: int, n_right: int) -> _Both:
        return self.xp.zeros(n_left, OFFSET), self.xp.zeros(n_right, OFFSET)

    def core(self, edges: _Edges, degrees: _Both, min_left: int, min_right: int) -> tuple[_Edges, _Both]:
        """The edges of the (min_left, min_right) core, and its degrees. It ends early where they fit as a whole.

        `edges` are used up. Each round removes all vertices that are too small, as `kernels.graph.sorting` does.
        """
        n_left, n_right = map(len, degrees)
        for _ in range(ROUNDS):
            enough = degrees[0] >= min_right, degrees[1] >= min_left
            if all(bool((is_enough | (degree == 0)).all()) for is_enough, degree in zip(enough, degrees, strict=True)):
                return edges, degrees
            degrees = self._no_degrees(n_left, n_right)
            edges = [self._kept(edges.pop(0), enough, degrees) for _ in range(len(edges))]
            if _number(edges) <= self.whole:
                return edges, degrees
        left, right = _joined(edges)
        by_left = from_sorted_pairs(left, right, n_left, self.threads)
        keep = core_edges(*by_left, n_right, min_left, min_right, self.threads)
        edges = _pieces(left[keep], right[keep], self.edges)
        return edges, self.degrees(edges, n_left, n_right)

    def _kept(
        self, piece: tuple[np.ndarray, np.ndarray], marks: _Both, degrees: _Both
    ) -> tuple[np.ndarray, np.ndarray]:
        """The edges of a piece whose ends are both marked. They are added to the degrees."""
        left, right = map(self.upload, piece)
        keep = marks[0][left] & marks[1][right]
        left, right = left[keep], right[keep]
        for degree, ids in zip(degrees, (left, right), strict=True):
            degree += degrees_of(self.xp, ids, len(degree))
        return self.download(left), self.download(right)


def prepare_in_pieces(
    device: PieceDevice,
    read: Callable[[], tuple[np.ndarray, np.ndarray]],
    n_left: int,
    n_right: int,
    options: BuildOptions,
    min_left: int = 1,
    min_right: int = 1,
    reductions: frozenset[Reduction] = EVERY_REDUCTION,
    *,
    known: VertexHashes | None = None,
) -> tuple[MiningGraph, PrepareFacts, list[np.ndarray]]:
    """As `kernels.graph.prepare.prepare`. Also returns the degrees of both sides of the edge table, int64.

    Parameters
    ----------
    read : callable
        () -> the edge table, left and right, of which nothing else is kept while the graph is made.

    Notes
    -----
    The device needs `PIECE_BYTES` per edge of a piece and `VERTEX_BYTES` per vertex, main memory up to 24 bytes per
    edge. A round of the core copies all edges to the device once; a transposition copies them once more than there are
    pieces.
    """
    if "core" not in reductions:
        min_left = min_right = 1
    edges = _pieces(*read(), device.edges)
    degrees = device.degrees(edges, n_left, n_right)
    of_input = [device.download(each) for each in degrees]
    if min_left > 1 or min_right > 1:
        edges, degrees = device.core(edges, degrees, min_left, min_right)
    if _number(edges) <= device.whole:
        del degrees  # their memory is needed
        rest = n_left, n_right, options, min_left, min_right, reductions

        def uploaded() -> tuple[Any, Any]:
            left, right = map(device.upload, _joined(edges))
            return left, right

        return *prepare_on(device.xp, uploaded, *rest, known=known, to_host=device.download), of_input
    by_left, core = _compact(device, edges, degrees)
    del degrees
    passes, sizes = Passes(device.transpose, device.group_twins), (n_left, n_right)
    how = sizes, (min_left, min_right), options, reductions
    return *graph_of_core(by_left, core, *how, known=known, threads=device.threads, passes=passes), of_input


def _compact(device: PieceDevice, edges: _Edges, degrees: _Both) -> tuple[tuple[np.ndarray, np.ndarray], _Both]:
    """The rows of left vertices, without empty rows and columns, and the ids of both sides. `edges` are used up."""
    xp, (of_left, of_right) = device.xp, degrees
    left_core, right_core = (xp.flatnonzero(degree).astype(VERTEX) for degree in degrees)
    indptr = np.zeros(len(left_core) + 1, OFFSET)
    np.cumsum(device.download(of_left[left_core]), out=indptr[1:])
    number = xp.cumsum(of_right > 0, dtype=VERTEX) - 1
    columns, n = np.empty(indptr[-1], VERTEX), 0
    while edges:
        _, right = edges.pop(0)
        columns[n : n + len(right)] = device.download(number[device.upload(right)].astype(VERTEX))
        n += len(right)
    return (indptr, columns), (device.download(left_core), device.download(right_core))


def _pieces(left: np.ndarray, right: np.ndarray, size: int) -> _Edges:
    return [(left[start : start + size], right[start : start + size]) for start in range(0, len(left), size)]


def _joined(edges: _Edges) -> tuple[np.ndarray, np.ndarray]:
    """All edges as one piece. `edges` are used up."""
    left, right = (np.concatenate([np.zeros(0, VERTEX), *(piece[side] for piece in edges)]) for side in (0, 1))
    edges.clear()
    return left, right


def _number(edges: _Edges) -> int:
    return sum(len(left) for left, _ in edges)


def _cuts(indptr: np.ndarray, most: int) -> list[int]:
    """Where to cut rows so that those of each piece have at most so many entries together, or are a single row."""
    cuts, n = [0], len(indptr) - 1
    while cuts[-1] < n:
        stop = int(np.searchsorted(indptr, indptr[cuts[-1]] + most, side="right")) - 1
        cuts.append(max(stop, cuts[-1] + 1))
    return cuts
