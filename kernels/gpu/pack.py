"""From the kernel's records to `Bicliques` on the device: what `kernels.gpu.unpack` does on the host.

Array code for CuPy and NumPy alike: a few gathers and prefix sums over all members, no loop over bicliques.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kernels.gpu.layout import RECORD
from schemas.bicliques import Bicliques
from schemas.dtypes import OFFSET, VERTEX
from schemas.graph import MiningGraph

__all__ = ["Members", "pack"]

#: Of a record as int32 words (`layout.RECORD`): where the halves of ``at`` and the two sizes are.
_WORDS = RECORD.itemsize // 4
_N_BASE, _N_ROOT = RECORD.fields["n_base"][1] // 4, RECORD.fields["n_root"][1] // 4  # type: ignore[index]


class Members(NamedTuple):
    """`MiningGraph.root_members` and `base_members` on the device, with their offsets; uploaded once a graph."""

    root_indptr: Any
    root: Any
    base_indptr: Any
    base: Any
    root_is_left: bool

    @classmethod
    def of(cls, xp: Any, graph: MiningGraph) -> Members:
        """Upload those of a graph."""
        return cls(
            xp.asarray(graph.root_members_indptr),
            xp.asarray(graph.root_members),
            xp.asarray(graph.base_members_indptr),
            xp.asarray(graph.base_members),
            graph.root_side == "left",
        )


def pack(xp: Any, members: Members, records: Any, values: Any) -> Bicliques:
    """Bicliques in dense ids of the user's sides, all arrays on the device.

    Parameters
    ----------
    xp : module
        cupy, or numpy.
    members : Members
    records : array, uint8
        Bytes of `layout.RECORD`; ``n_root == 0`` marks a hole.
    values : array, int32
        For each record its base vertices, then its root ranks.

    Notes
    -----
    May synchronise. About 40 bytes a member on the device, besides the result.
    """
    words = records.view(VERTEX).reshape(-1, _WORDS)
    words = words[words[:, _N_ROOT] > 0]
    at = xp.ascontiguousarray(words).view(OFFSET).reshape(-1, _WORDS // 2)[:, 0]
    n_base, n_root = words[:, _N_BASE].astype(OFFSET), words[:, _N_ROOT].astype(OFFSET)
    base_vertices, _ = _lists(xp, values, at, n_base)
    ranks, root_owner = _lists(xp, values, at + n_base, n_root)
    base = _expand(xp, base_vertices, n_base, members.base_indptr, members.base)
    root = _expand(xp, ranks, n_root, members.root_indptr, members.root)
    smallest = xp.full(len(words), np.iinfo(VERTEX).max, dtype=VERTEX)
    xp.minimum.at(smallest, root_owner, ranks)
    first = members.root[members.root_indptr[smallest]]
    left, right = (root, base) if members.root_is_left else (base, root)
    return Bicliques(*left, *right, first)


def _offsets(xp: Any, lengths: Any) -> Any:
    return xp.concatenate([xp.zeros(1, OFFSET), xp.cumsum(lengths, dtype=OFFSET)])


def _owners(xp: Any, offsets: Any) -> Any:
    """Which list every entry belongs to; none is empty."""
    starts = xp.zeros(int(offsets[-1]), dtype=VERTEX)
    starts[offsets[1:-1]] = 1
    return xp.cumsum(starts, dtype=VERTEX)


def _lists(xp: Any, values: Any, at: Any, lengths: Any) -> tuple[Any, Any]:
    """Entries ``at`` to ``at + length - 1`` of `values`, one list after the other, and the list of each."""
    offsets = _offsets(xp, lengths)
    owner = _owners(xp, offsets)
    return values[xp.arange(len(owner)) + (at - offsets[:-1])[owner]], owner


def _expand(xp: Any, vertices: Any, lengths: Any, indptr: Any, members: Any) -> tuple[Any, Any]:
    """Lists of vertices as lists of the members they stand for: (offsets, ids)."""
    lists = _offsets(xp, lengths)
    if len(members) == len(indptr) - 1:  # every vertex stands for itself
        return lists, members[vertices]
    first = indptr[:-1][vertices]
    places = _offsets(xp, indptr[1:][vertices] - first)
    owner = _owners(xp, places)
    return places[lists], members[xp.arange(len(owner)) + (first - places[:-1])[owner]]
