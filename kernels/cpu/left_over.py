"""Writes the state of a paused search down as `Subtrees`. It runs once per slice, in NumPy."""

from __future__ import annotations

import numpy as np

from kernels.cpu.workspace import Hub, Output, Sieve, Word
from schemas.dtypes import VERTEX
from schemas.work import Piece, Subtrees

__all__ = ["drain_aside", "left_over"]


def left_over(word: Word, hub: Hub, sieve: Sieve) -> Subtrees:
    """What the open problems still have to explore and to emit."""
    return Subtrees.of_pieces([*_word_pieces(word), *_hub_pieces(hub), *_sieve_pieces(sieve)])


def drain_aside(out: Output) -> Subtrees:
    """The pieces that were put aside so far. The buffer is empty afterwards."""
    pieces: list[Piece] = []
    at, end = 0, int(out.state[0]["n_aside"])
    while at < end:
        first = at + 1
        n_path = int(out.aside[at])
        n_candidates = int(out.aside[first + n_path])
        after = first + n_path + 1
        at = after + n_candidates + 1
        path, candidates = out.aside[first : first + n_path], out.aside[after : after + n_candidates]
        pieces.append((path.copy(), candidates.copy(), n_candidates, bool(out.aside[at - 1])))
    out.state[0]["n_aside"] = 0
    return Subtrees.of_pieces(pieces)


def _word_pieces(word: Word) -> list[Piece]:
    state = word.state[0]
    rows, masks = word.row[: state["n_rows"]], word.mask[: state["n_rows"]]
    nothing = np.empty(0, VERTEX)

    def closure(t: np.uint64) -> np.ndarray:
        return np.concatenate([word.full[: state["n_full"]], rows[masks & t == t]])

    pieces: list[Piece] = [(closure(t), nothing, 0, True) for t in word.found[state["delivered"] : state["n_found"]]]
    for frame, t in zip(word.frame[: state["depth"]], word.frame_mask, strict=False):
        first = frame["q0"] + frame["n_q"]
        named = [rows[masks & t == c] for c in word.stack[first + frame["next"] : first + frame["n_c"]]]
        todo = sum(len(rows_of_c) for rows_of_c in named[: frame["end"] - frame["next"]])
        if todo:
            pieces.append((closure(t), np.concatenate(named), todo, False))
    return pieces


def _hub_pieces(hub: Hub) -> list[Piece]:
    state = hub.state[0]
    rows, closed_at = hub.row[: state["n_rows"]], hub.closed_at[: state["n_rows"]]
    pieces: list[Piece] = []
    for depth, frame in enumerate(hub.frame[: state["depth"]], start=1):
        path = np.concatenate([hub.full[: state["n_full"]], rows[(closed_at > 0) & (closed_at <= depth)]])
        candidates = rows[hub.list[frame["list0"] + frame["next"] : frame["list0"] + frame["n_list"]]]
        todo, fresh = int(frame["end"] - frame["next"]), bool(depth == 1 and state["fresh"])
        if todo or fresh:
            pieces.append((path, candidates, todo, fresh))
    return pieces


def _sieve_pieces(sieve: Sieve) -> list[Piece]:
    state = sieve.state[0]
    pieces: list[Piece] = []
    for depth, frame in enumerate(sieve.frame[: state["depth"]], start=1):
        candidates = sieve.row[frame["list0"] + frame["next"] : frame["list0"] + frame["n_rows"]]
        todo, fresh = int(frame["end"] - frame["next"]), bool(depth == 1 and state["fresh"])
        if todo or fresh:
            pieces.append((sieve.closed[: frame["n_closed"]].copy(), candidates.copy(), todo, fresh))
    return pieces
