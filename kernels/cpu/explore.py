"""The outer loop of the compiled search. It opens the pieces of a list as problems, one after the other."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry
from bicliques.kernels.cpu.constants import EMPTY, FINISHED, PAUSED
from bicliques.kernels.cpu.hub import search_hub
from bicliques.kernels.cpu.open_hub import open_hub
from bicliques.kernels.cpu.open_word import open_word
from bicliques.kernels.cpu.output import aside_is_full
from bicliques.kernels.cpu.pointers import graph_at, hub_at, output_at, pieces_at, sieve_at, word_at
from bicliques.kernels.cpu.sieve import merge_in_top, search_sieve
from bicliques.kernels.cpu.word import search_word
from bicliques.kernels.cpu.workspace import CLOSED, OUTSIDE, WORD_BITS
from bicliques.schemas.work import EVERYTHING


@entry
def explore(graph, pieces, n_pieces, word, hub, out):
    """Work until all pieces are done, the output is full, or the steps are used up. Returns which of them it was.

    Parameters
    ----------
    graph, pieces, word, hub, out : ndarray of int64
        Addresses of the fields of `workspace.Graph`, `Pieces`, `Word`, `Hub` and `Output`.
    n_pieces : int
    """
    return _explore(graph_at(graph), pieces_at(pieces), n_pieces, word_at(word), hub_at(hub), None, output_at(out))


@entry
def explore_with_thresholds(graph, pieces, n_pieces, word, hub, out, sieve):
    """As `explore`, for thresholds and dense graphs. `sieve` has the addresses of the fields of `workspace.Sieve`.

    It is a function of its own because it takes half as long again to compile.
    """
    problems = word_at(word), hub_at(hub), sieve_at(sieve)
    return _explore(graph_at(graph), pieces_at(pieces), n_pieces, *problems, output_at(out))


@compiled
def _explore(g, pieces, n_pieces, word, hub, sieve, out):
    """`sieve` is None where it is not used. Numba leaves out what is below a condition that says no more than that."""
    s = out.state
    while True:
        status = search_word(g, word, out)
        if status == EMPTY:
            status = search_hub(g, word, hub, out)
        if sieve is not None:
            if status == EMPTY and sieve.state.depth > 0:
                status = search_sieve(g, word, hub, sieve, out)
        if status != EMPTY:
            return status
        if word.state.depth > 0 or hub.state.depth > 0:
            continue
        if sieve is not None:
            if sieve.state.depth > 0:
                continue
        _forget_keys(pieces, hub, out)
        if s.item == n_pieces:
            return FINISHED
        if s.steps <= 0 or aside_is_full(out):
            return PAUSED
        _take(g, pieces, s.item, word, hub, sieve, out)
        s.item += 1
        s.steps -= 1
        is_open = word.state.depth > 0 or hub.state.depth > 0
        if sieve is not None:
            is_open = is_open or sieve.state.depth > 0
        if is_open:  # opening a hub may use up all steps, and a slice of no time must not leave over what it was given
            s.steps = max(s.steps, 1)


@compiled
def _take(g, pieces, i, word, hub, sieve, out):
    """Open piece `i`."""
    s = out.state
    keyed = pieces.todo[i] != EVERYTHING
    root = pieces.path[pieces.path_indptr[i]]
    if keyed:
        n = _common_neighbours(g, pieces, i, hub)
        _set_keys(pieces, i, hub)
        s.keyed = i
    else:
        n = g.root_indptr[root + 1] - g.root_indptr[root]
    todo, fresh = np.int64(pieces.todo[i]), pieces.fresh[i] != 0  # as in all calls, because each type is compiled anew
    if n > WORD_BITS or (s.sieving and (s.measure != 0 or _members(g, pieces, i) < s.min_root)):
        if not keyed:
            for k in range(n):
                hub.base[k] = g.root_indices[g.root_indptr[root] + k]
        open_hub(g, hub, sieve, out, n, (keyed, root, todo, fresh))
        if sieve is not None:
            if sieve.state.depth > 0:
                merge_in_top(sieve, out)
    elif n > 0:
        for k in range(n):
            word.base[k] = hub.base[k] if keyed else g.root_indices[g.root_indptr[root] + k]
        open_word(g, word, hub, out, n, (keyed, -1 if keyed else root, todo, fresh))


@compiled
def _members(g, pieces, i):
    """Root members of the path of piece `i`."""
    total = 0
    for e in range(pieces.path_indptr[i], pieces.path_indptr[i + 1]):
        total += g.root_members_indptr[pieces.path[e] + 1] - g.root_members_indptr[pieces.path[e]]
    return total


@compiled
def _common_neighbours(g, pieces, i, hub):
    """Write the common neighbours of the path of piece `i` to `hub.base`. Returns their number."""
    first = pieces.path[pieces.path_indptr[i]]
    n = g.root_indptr[first + 1] - g.root_indptr[first]
    for k in range(n):
        hub.base[k] = g.root_indices[g.root_indptr[first] + k]
    for p in range(pieces.path_indptr[i] + 1, pieces.path_indptr[i + 1]):
        v = pieces.path[p]
        for e in range(g.root_indptr[v], g.root_indptr[v + 1]):
            hub.local[g.root_indices[e]] = 1
        m = 0
        for k in range(n):
            u = hub.base[k]
            if hub.local[u] == 1:
                hub.base[m] = u
                m += 1
        for e in range(g.root_indptr[v], g.root_indptr[v + 1]):
            hub.local[g.root_indices[e]] = OUTSIDE
        n = m
    return n


@compiled
def _set_keys(pieces, i, hub):
    for e in range(pieces.candidate_indptr[i], pieces.candidate_indptr[i + 1]):
        hub.key[pieces.candidates[e]] = e - pieces.candidate_indptr[i]
    for e in range(pieces.path_indptr[i], pieces.path_indptr[i + 1]):
        hub.key[pieces.path[e]] = CLOSED


@compiled
def _forget_keys(pieces, hub, out):
    i = out.state.keyed
    if i >= 0:
        for e in range(pieces.candidate_indptr[i], pieces.candidate_indptr[i + 1]):
            hub.key[pieces.candidates[e]] = OUTSIDE
        for e in range(pieces.path_indptr[i], pieces.path_indptr[i + 1]):
            hub.key[pieces.path[e]] = OUTSIDE
        out.state.keyed = -1
