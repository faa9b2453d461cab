"""Makes `Bicliques` of a kernel's records: it expands and sorts members, and drops holes, all in compiled code."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import entry
from bicliques.kernels.compiled.lists import sort_list
from bicliques.schemas.bicliques import ID, Bicliques
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.hashes import mixed


def unpack(graph: MiningGraph, records: np.ndarray, values: np.ndarray) -> Bicliques:
    """Bicliques in dense ids of the user's sides.

    Parameters
    ----------
    records : ndarray of `layout.RECORD`
        ``n_root == 0`` marks a hole, which is no biclique.
    values : ndarray, int32
        For each record, its base vertices, then its root ranks.
    """
    records = records[records["n_root"] > 0]
    n_base, n_root, at = (np.ascontiguousarray(records[name]) for name in ("n_base", "n_root", "at"))
    base = _expand(values, at, n_base, np.asarray(graph.base_members_indptr), np.asarray(graph.base_members))
    root = _expand(values, at + n_base, n_root, np.asarray(graph.root_members_indptr), np.asarray(graph.root_members))
    smallest = np.empty(len(at), OFFSET)
    _smallest(values, at + n_base, n_root, smallest)
    first = np.asarray(graph.root_members)[np.asarray(graph.root_members_indptr)[smallest]]
    sums = _sums(values, at + n_base, n_root, graph.root_hash), _sums(values, at, n_base, graph.base_hash)
    if graph.root_side == "left":
        return Bicliques(*root, *base, first.astype(VERTEX), mixed(*sums).view(ID))
    return Bicliques(*base, *root, first.astype(VERTEX), mixed(*sums[::-1]).view(ID))


def _sums(values: np.ndarray, at: np.ndarray, n: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    sums = np.empty(len(at), np.uint64)
    _hash_sums(values, at, n, np.asarray(hashes), sums)
    return sums


def _expand(
    values: np.ndarray, at: np.ndarray, n: np.ndarray, indptr: np.ndarray, members: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.empty(len(at), OFFSET)
    _member_counts(values, at, n, indptr, sizes)
    out_indptr = np.concatenate([np.zeros(1, OFFSET), np.cumsum(sizes, dtype=OFFSET)])
    out = np.empty(out_indptr[-1], VERTEX)
    _fill(values, at, n, indptr, members, out_indptr, out)
    return out_indptr, out


@entry
def _member_counts(values, at, n, indptr, sizes):
    for i in range(at.size):
        total = 0
        for k in range(at[i], at[i] + n[i]):
            total += indptr[values[k] + 1] - indptr[values[k]]
        sizes[i] = total


@entry
def _fill(values, at, n, indptr, members, out_indptr, out):
    for i in range(at.size):
        free = out_indptr[i]
        for k in range(at[i], at[i] + n[i]):
            for e in range(indptr[values[k]], indptr[values[k] + 1]):
                out[free] = members[e]
                free += 1
        sort_list(out, out_indptr[i], free)


@entry
def _hash_sums(values, at, n, hashes, out):
    for i in range(at.size):
        total = np.uint64(0)
        for k in range(at[i], at[i] + n[i]):
            total += hashes[values[k]]
        out[i] = total


@entry
def _smallest(values, at, n, out):
    for i in range(at.size):
        least = values[at[i]]
        for k in range(at[i] + 1, at[i] + n[i]):
            least = min(least, values[k])
        out[i] = least
