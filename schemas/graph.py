"""The graph that an engine searches, as CSR in both directions, with grouped and ranked vertices.

The vertices of the *root side* are the roots of the first-level subtrees. The other side is the *base side*.
An engine sees the vertices of a reduced graph. Each stands for a group of original vertices with the same
neighbourhood (twins). Root vertices are numbered by rank, so "smaller" means "earlier in the order". ``left``
and ``right`` always mean the user's sides.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from bicliques.schemas.dtypes import MAX_VERTICES, OFFSET, VERTEX, WORD, gathered
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.hashes import VertexHashes, mixed
from bicliques.schemas.regular_files import map_array, read_regular
from bicliques.schemas.search import Side

#: Files that are written at a time, and entries that are checked at a time.
_FILES_AT_A_TIME, _PIECE = 4, 1 << 20

_SCALARS = ("root_side", "n_left", "n_right", "given")


@dataclass(frozen=True, eq=False)
class MiningGraph:
    """A bipartite graph, ready to search.

    Parameters
    ----------
    root_side : "left" or "right"
        The user's side that the roots come from.
    n_left, n_right : int
        Number of dense ids per side, before reduction. Ids in ``*_members`` are smaller.
    root_indptr : ndarray, shape (n_roots + 1,), int64
    root_indices : ndarray, shape (n_edges,), int32
        Neighbours of root vertex ``r``: ``root_indices[root_indptr[r]:root_indptr[r + 1]]``, ascending.
    base_indptr, base_indices
        The same for base vertices. Their neighbours are root ranks, ascending.
    root_members_indptr : ndarray, shape (n_roots + 1,), int64
    root_members : ndarray, int32
        Dense ids (of `root_side`) that root vertex ``r`` stands for, ascending and never empty.
    base_members_indptr, base_members
        The same for base vertices, on the other side.
    root_hash : ndarray, shape (n_roots,), uint64
        Sum modulo 2**64 of the hashes (`schemas.hashes.vertex_hashes`) of the members of each root vertex.
    base_hash : ndarray, shape (n_base,), uint64
        The same for base vertices.
    marks : ndarray of int64, or None
        The marked edges (`schemas.jobs.Marked`), ascending: ``base << 32 | rank``. Roots with a marked edge have the
        lowest ranks. None: the job asks for no marks.
    given : tuple of int, or None
        Of a search for near-bicliques: vertices that every result has. Base vertex ``u`` is ``n_roots + u``. One of
        them is a root. Empty: one that was asked for is not in the graph. None: none were.

    Notes
    -----
    No vertex is isolated. No two root vertices and no two base vertices have the same neighbourhood.
    On disk a graph is one ``.npy`` file per array, which workers memory-map in milliseconds.
    """

    root_side: Side
    n_left: int
    n_right: int
    root_indptr: np.ndarray
    root_indices: np.ndarray
    base_indptr: np.ndarray
    base_indices: np.ndarray
    root_members_indptr: np.ndarray
    root_members: np.ndarray
    base_members_indptr: np.ndarray
    base_members: np.ndarray
    root_hash: np.ndarray
    base_hash: np.ndarray
    marks: np.ndarray | None = None
    given: tuple[int, ...] | None = None

    @classmethod
    def of(cls, known: VertexHashes, *, root_side: Side, **fields: Any) -> MiningGraph:
        """A graph of these fields, with the sums of the hashes of its members.

        Parameters
        ----------
        known : VertexHashes
            `schemas.hashes.vertex_hashes` of both sides, by the ids of the members.
        """
        own, other = known if root_side == "left" else known[::-1]
        sums: dict[str, Any] = {
            "root_hash": _sums(own, fields["root_members_indptr"], fields["root_members"]),
            "base_hash": _sums(other, fields["base_members_indptr"], fields["base_members"]),
        }
        return cls(root_side=root_side, **fields, **sums)

    @property
    def n_roots(self) -> int:
        """Number of root vertices."""
        return len(self.root_indptr) - 1

    @property
    def n_base(self) -> int:
        """Number of base vertices."""
        return len(self.base_indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of edges of the reduced graph."""
        return len(self.root_indices)

    @property
    def is_dense(self) -> bool:
        """Whether the mean root has a sixth of the base vertices, and more than 64.

        Then most base vertices of a node are twins inside it, and so few classes are left that it pays to merge them.
        """
        return self.n_edges > self.n_roots * max(64, self.n_base / 6)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays together."""
        return sum(getattr(self, name).nbytes for name in self._arrays)

    @property
    def roots_to_search(self) -> int:
        """How many first-level subtrees hold a result, the first ones: with marks, every result has a marked root.

        With given vertices there is one, which begins with all of them (`schemas.work.first_nodes`).
        """
        if self.given is not None:
            return min(len(self.given), 1)
        return self.n_roots if self.marks is None else int((self.marks & 0xFFFFFFFF).max(initial=-1)) + 1

    def neighbours(self) -> tuple[np.ndarray, np.ndarray]:
        """The neighbours of each root of a double cover without merged twins, as ascending ranks: offsets, and ranks.

        In a double cover both sides have the same vertices. If u and v are joined, so are u on the left and v on the
        right, and v on the left and u on the right.
        """
        same = np.searchsorted(self.base_members, self.root_members)
        return gathered(self.base_indices, self.base_indptr[same], np.diff(self.base_indptr)[same])

    def marks_by_base(self) -> tuple[np.ndarray, np.ndarray]:
        """The root vertices that each base vertex has a marked edge to: offsets, and ranks in ascending order."""
        if self.marks is None:
            return np.empty(0, OFFSET), np.empty(0, VERTEX)
        ends = np.searchsorted(self.marks, np.arange(self.n_base + 1) << 32)
        return ends.astype(OFFSET), (self.marks & 0xFFFFFFFF).astype(VERTEX)

    @property
    def _arrays(self) -> tuple[str, ...]:
        return (*_ARRAYS, *(() if self.marks is None else ("marks",)))

    def validate(self, threads: int = 1) -> None:
        """Check every invariant that can be checked in linear time.

        Raises
        ------
        IncompleteError
            An invariant does not hold. The sentence names the first.
        """
        for side, other in (("root", "base"), ("base", "root")):
            n, n_other = getattr(self, f"n_{_PLURAL[side]}"), getattr(self, f"n_{_PLURAL[other]}")
            own = getattr(self, f"{side}_indptr"), getattr(self, f"{side}_indices")
            _check_csr(f"{side}_indices", *own, n_other, threads)
            user_side = self.root_side if side == "root" else _OPPOSITE[self.root_side]
            limit = self.n_left if user_side == "left" else self.n_right
            indptr = getattr(self, f"{side}_members_indptr")
            if len(indptr) != n + 1:
                raise IncompleteError(f"{side}_members_indptr has {len(indptr)} entries, expected {n + 1}")
            _check_csr(f"{side}_members", indptr, getattr(self, f"{side}_members"), limit, threads)
            hashes = getattr(self, f"{side}_hash")
            if hashes.dtype != np.uint64 or len(hashes) != n:
                raise IncompleteError(
                    f"{side}_hash has {len(hashes)} entries of {hashes.dtype}, expected {n} of uint64"
                )
        if self.marks is not None and len(self.marks):
            base, root = self.marks[[0, -1]] >> 32, self.marks & 0xFFFFFFFF
            if base[0] < 0 or base[1] >= self.n_base or root.max() >= self.n_roots or (np.diff(self.marks) <= 0).any():
                raise IncompleteError("marks holds what is no edge, or is not strictly ascending")
        if not all(type(x) is int and 0 <= x < self.n_roots + self.n_base for x in self.given or ()):
            raise IncompleteError("given holds what is no vertex")
        if len(self.root_indices) != len(self.base_indices):
            raise IncompleteError("the two directions of the graph have different numbers of edges")

    def validate_directions(self, threads: int = 1) -> None:
        """Check that both directions of a valid graph have the same edges, but for a chance of 1 in 2**64.

        Raises
        ------
        IncompleteError
            They do not.
        """
        with ThreadPoolExecutor(threads) as pool:

            def total(rows: np.ndarray, ends: np.ndarray, is_base: bool) -> int:
                return sum(pool.map(lambda start: _sum_of_edges(rows, ends, start, is_base), _starts(len(ends))))

            sums = total(self.root_indptr, self.root_indices, False), total(self.base_indptr, self.base_indices, True)
        if (sums[0] - sums[1]) % 2**64:
            raise IncompleteError("the two directions of the graph have different edges")

    def save(self, folder: Path) -> None:
        """Write the graph into an existing, empty `folder`."""
        with ThreadPoolExecutor(_FILES_AT_A_TIME) as pool:  # threads start when they get work
            at_a_time = pool.map if self.n_edges > _PIECE else map
            list(at_a_time(lambda name: np.save(folder / f"{name}.npy", getattr(self, name)), self._arrays))
        scalars = {name: getattr(self, name) for name in _SCALARS}
        (folder / "graph.json").write_text(json.dumps(scalars))

    @classmethod
    def open(cls, folder: Path) -> MiningGraph:
        """Memory-map a graph that `save` wrote.

        Raises
        ------
        IncompleteError
            A file is missing or damaged.
        """
        try:
            scalars = _scalars_of(json.loads(read_regular(folder / "graph.json")))
            kinds = _ARRAYS | ({"marks": OFFSET} if (folder / "marks.npy").exists() else {})
            arrays: dict[str, Any] = {name: map_array(folder / f"{name}.npy", kind) for name, kind in kinds.items()}
        except _UNREADABLE as error:
            raise IncompleteError(f"the graph in {folder} cannot be read ({error}); start the run again") from error
        return cls(**scalars, **arrays)

    @classmethod
    def save_all(cls, graphs: Sequence[MiningGraph], folder: Path) -> None:
        """Write several graphs, one behind the other in the same files, beside the one that `save` writes."""
        for name in _ARRAYS:
            parts = [getattr(graph, name) for graph in graphs]
            np.save(folder / f"bands_{name}.npy", np.concatenate(parts) if parts else np.empty(0, OFFSET))
        each = [
            {name: getattr(graph, name) for name in _SCALARS}
            | {"lengths": [len(getattr(graph, name)) for name in _ARRAYS]}
            for graph in graphs
        ]
        (folder / "bands.json").write_text(json.dumps(each))

    @classmethod
    def open_all(cls, folder: Path) -> list[MiningGraph]:
        """Memory-map the graphs that `save_all` wrote.

        Raises
        ------
        IncompleteError
            A file is missing or damaged.
        """
        graphs, begin = [], dict.fromkeys(_ARRAYS, 0)
        try:
            arrays: dict[str, Any] = {
                name: map_array(folder / f"bands_{name}.npy", kind) for name, kind in _ARRAYS.items()
            }
            for told in json.loads(read_regular(folder / "bands.json")):
                end = {name: begin[name] + length for name, length in zip(_ARRAYS, told["lengths"], strict=True)}
                own = {name: arrays[name][begin[name] : end[name]] for name in _ARRAYS}
                graphs.append(cls(**_scalars_of(told), **own))
                begin = end
        except _UNREADABLE as error:
            raise IncompleteError(f"the graphs in {folder} cannot be read ({error}); start the run again") from error
        return graphs


#: What a damaged file leads to.
_UNREADABLE = (IncompleteError, KeyError, OSError, RecursionError, TypeError, ValueError)
#: The arrays, by their names.
_ARRAYS = {
    field.name: WORD if field.name.endswith("hash") else OFFSET if field.name.endswith("indptr") else VERTEX
    for field in fields(MiningGraph)
    if field.name not in (*_SCALARS, "marks")
}
_PLURAL = {"root": "roots", "base": "base"}
_OPPOSITE: dict[Side, Side] = {"left": "right", "right": "left"}


def _scalars_of(told: dict[str, Any]) -> dict[str, Any]:
    sizes = told["n_left"], told["n_right"]
    if told["root_side"] not in _OPPOSITE or any(type(n) is not int or not 0 <= n <= MAX_VERTICES for n in sizes):
        raise ValueError(f"it is of {sizes} vertices, with roots on the side {told['root_side']!r:.40}")
    given = told.get("given")
    return {name: told[name] for name in _SCALARS[:-1]} | {"given": None if given is None else tuple(given)}


def _sums(hashes: np.ndarray, indptr: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Sum of the hashes of each list, none of which is empty."""
    if len(members) == len(indptr) - 1:
        return hashes[members]
    return np.add.reduceat(hashes[members], indptr[:-1])


def _check_csr(name: str, indptr: np.ndarray, indices: np.ndarray, limit: int, threads: int) -> None:
    if indptr.dtype != OFFSET or indices.dtype != VERTEX:
        raise IncompleteError(f"{name} must be int32 with int64 offsets, not {indices.dtype} and {indptr.dtype}")
    indptr, indices = np.asarray(indptr), np.asarray(indices)  # slices of mapped arrays take longer
    with ThreadPoolExecutor(threads) as pool:
        at_a_time = pool.map if len(indices) > _PIECE else map
        ascend = all(at_a_time(lambda start: _ascends(indptr[start : start + _PIECE + 1]), _starts(len(indptr) - 1)))
        if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(indices) or not ascend:
            raise IncompleteError(f"the offsets of {name} do not partition its {len(indices)} entries")

        def check(start: int) -> str | None:
            """What is wrong with the entries from `start`, and with the step from the last of them to the next."""
            part = indices[start : start + _PIECE]
            if part.min() < 0 or part.max() >= limit:
                return f"{name} holds an id outside 0..{limit - 1}"
            steps = np.diff(indices[start : start + _PIECE + 1])
            first, last = np.searchsorted(indptr, [start + 1, start + len(steps) + 1])
            steps[indptr[first:last] - start - 1] = 1  # the first entry of a row may be smaller than the one before it
            return None if (steps > 0).all() else f"{name} is not strictly ascending inside a row"

        wrong = next(filter(None, at_a_time(check, _starts(len(indices)))), None)
    if wrong is not None:
        raise IncompleteError(wrong)


def _sum_of_edges(indptr: np.ndarray, indices: np.ndarray, start: int, is_base: bool) -> int:
    """Sum of the hashes of the edges from `start` in a piece."""
    indptr, part = np.asarray(indptr), np.asarray(indices)[start : start + _PIECE]
    first, last = np.searchsorted(indptr, (start, start + len(part) - 1), side="right") - 1
    lengths = np.diff(np.clip(indptr[first : last + 2], start, start + len(part)))
    rows = np.repeat(np.arange(first, last + 1, dtype=np.uint64), lengths)
    return int(mixed(*((part.astype(np.uint64), rows) if is_base else (rows, part.astype(np.uint64)))).sum())


def _starts(n: int) -> range:
    """Where pieces of `n` entries begin. The arrays that are made of a piece are small."""
    return range(0, n, _PIECE)


def _ascends(offsets: np.ndarray) -> bool:
    return bool((np.diff(offsets) > 0).all())
