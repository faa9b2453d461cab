"""The memory of a search for near-bicliques (`kernels.reference.near` says what a node is). It grows when it has to.

A *problem* has vertices of both sides, and a row of bits for each. Its *inner* vertices are those that were chosen or
candidates when it was made: bit and row i belong to inner vertex i. Excluded vertices have the rows behind those, and
no bits. Side 0 is the root side, and side 1 the base side. A node whose vertices have become few gets a smaller problem
of its own, so that its rows are short.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bicliques.kernels.cpu.constants import PADDING
from bicliques.kernels.cpu.workspace import I32, U64, Address, Sizes, State, allocate_output, record
from bicliques.schemas.dtypes import VERTEX, WORD
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Search
from bicliques.schemas.work import Piece

NEAR_STATE = record(
    "n_roots pairs k0 k1 least0 least1 share "  # options: `pairs` is -1 in a k-biplex
    "first n_hop "  # the root that `hop` is of, and how many roots that are
    "n0 n1 s0 s1 n_met full0 full1 total "  # what is opened: inner vertices, of S, met; those of S that are full
    "depth pending "  # frames, and whether the last one is a leaf that is still to be delivered
    "max_bits max_list max_frames need_bits need_list "  # capacities, and what is needed now
    "measure bound max0 max1 "  # of the largest, as of `workspace.Output`; most members of a side
    "best best_side best_at "  # the pivot so far: how many candidates it has no edge to
)
NEAR_FRAME = record(
    "w0 w1 rows0 rows1 names0 names1 all0 all1 "  # the problem: words of a set, rows, vertices, how many rows
    "sets total x0 n_x0 x1 n_x1 "  # the node: its sets, missing pairs among S, excluded vertices
    "branch n_branch next bits_top list_top "  # its children, and the ends of what it uses
)
#: Bytes of the largest problem that was seen, with what its nodes take, and more than a hundred times as much.
_MOST_SEEN = 1 << 27
#: Sets of a frame, one of each side: S, C, those of C that miss nothing of S, those of S that may not miss any more,
#: those of C that are joined to all of S and C, S with C, and in a k-defective biclique S with those that miss nothing.
SETS = 7


class Near(NamedTuple):
    """The arrays of the search. Those with an entry per vertex are clean between two problems."""

    state: State  # NEAR_STATE
    frame: Address  # NEAR_FRAME
    bits: U64  # rows and sets of problems and frames, one behind the other
    list: I32  # vertices of problems; excluded vertices and children of frames: i, or ~i of the base side
    hop: I32  # (n_roots,): roots that share enough with the root `first`
    flag0: I32  # (n_roots,): what a vertex is in the problem that is being opened
    flag1: I32  # (n_base,)
    hit0: I32  # (n_roots,): neighbours in S
    hit1: I32
    full0: I32  # (n_roots,): neighbours in S that may not miss any more
    full1: I32
    count0: I32  # (n_roots,): neighbours in S and C; while `hop` is made, neighbours in common with its root
    count1: I32
    at0: I32  # (n_roots,): row
    at1: I32
    inner0: I32  # (n_roots,): vertices of S and C
    inner1: I32
    met: I32  # (n_base,): base vertices that have a neighbour in S and C
    listed: I32  # (n_base,): base members of the row that is delivered


def allocate_near(graph: MiningGraph, search: Search, least: int) -> Near:
    """The arrays of one search. `least` is how many entries those have that grow."""
    n_roots, n_base = graph.n_roots, graph.n_base

    def per_root() -> np.ndarray:
        return np.zeros(n_roots, VERTEX)

    def per_base() -> np.ndarray:
        return np.zeros(n_base, VERTEX)

    near = Near(
        np.zeros(1, NEAR_STATE),
        np.zeros(least, NEAR_FRAME),
        np.zeros(least + PADDING, WORD),
        np.zeros(least, VERTEX),
        per_root(),
        *(make() for _ in range(6) for make in (per_root, per_base)),
        *(per_base(), per_base()),
    )  # type: ignore[call-arg]
    state, allowed = near.state[0], search.near
    assert allowed is not None
    is_left = graph.root_side == "left"
    sides = (allowed.left, allowed.right), (search.min_left, search.min_right)
    (k0, k1), (least0, least1) = sides if is_left else (sides[0][::-1], sides[1][::-1])
    state["pairs"] = -1 if allowed.pairs is None else allowed.pairs
    state["k0"], state["k1"], state["least0"], state["least1"] = k0, k1, least0, least1
    state["share"] = max(least1 - (2 * k0 if allowed.pairs is None else k0), 1)
    state["n_roots"], state["first"] = n_roots, -1
    return with_capacities(near)


def near_bytes(graph: MiningGraph, search: Search) -> int:
    """About how many bytes of memory a search takes at most, besides the graph.

    It grows to what the largest problem takes, which is not known before. So the bound is a graph that is one problem,
    or what was ever seen.
    """
    least = allocate_near(graph, search, 1), allocate_output(graph, search, Sizes())
    fixed = sum(array.nbytes for group in least for array in group)
    return fixed + min(graph.n_roots * graph.n_base // 2, _MOST_SEEN)


def with_capacities(near: Near) -> Near:
    """Tell the compiled code how long the arrays are that grow."""
    state = near.state[0]
    state["max_frames"], state["max_bits"], state["max_list"] = (
        len(near.frame),
        len(near.bits) - PADDING,
        len(near.list),
    )
    return near


def grown(near: Near) -> Near:
    """The same search with the memory that it needs."""
    state = near.state[0]
    lengths = {
        "frame": 2 * len(near.frame) if state["depth"] + 1 >= len(near.frame) else 0,
        "bits": 2 * int(state["need_bits"]) + PADDING if state["need_bits"] > state["max_bits"] else 0,
        "list": 2 * int(state["need_list"]) if state["need_list"] > state["max_list"] else 0,
    }
    larger = {}
    for name, length in lengths.items():
        old = getattr(near, name)
        if length > len(old):
            larger[name] = np.zeros(length, old.dtype)
            larger[name][: len(old)] = old
    return with_capacities(near._replace(**larger))


def near_pieces(near: Near, n_roots: int) -> list[Piece]:
    """What the open frames still have to explore and to emit."""
    state, nothing = near.state[0], np.empty(0, VERTEX)
    pieces: list[Piece] = []
    for depth in range(int(state["depth"])):
        f = near.frame[depth]
        names = [
            near.list[f["names0"] : f["names0"] + f["all0"]],
            near.list[f["names1"] : f["names1"] + f["all1"]] + n_roots,
        ]
        path = _members(near, f, names, 0)
        if depth == state["depth"] - 1 and state["pending"]:
            pieces.append((path, nothing, 0, True))
            continue
        branch = near.list[f["branch"] + f["next"] : f["branch"] + f["n_branch"]]
        if len(branch):
            first = np.where(branch >= 0, names[0][np.maximum(branch, 0)], names[1][np.maximum(~branch, 0)])
            others = np.setdiff1d(_members(near, f, names, 1), first)
            pieces.append((path, np.concatenate([first, others]), len(first), False))
    return pieces


def _members(near: Near, f: np.void, names: list[np.ndarray], number: int) -> np.ndarray:
    """The vertices of both sides that are in a set of a frame."""
    at = int(f["sets"]) + number * int(f["w0"] + f["w1"])
    found = []
    for own, words in zip(names, (int(f["w0"]), int(f["w1"])), strict=True):
        bits = np.unpackbits(near.bits[at : at + words].view(np.uint8), bitorder="little")
        found.append(own[np.flatnonzero(bits)])
        at += words
    return np.concatenate(found)
