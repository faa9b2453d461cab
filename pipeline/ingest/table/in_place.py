"""Work on the columns of an edge table where they are, slice by slice, on threads.

Integer labels that fit into 32 bits stand in the table themselves until all are known. So nothing is numbered while the
input is read, and in the end one pass finds the distinct labels and another one replaces them by their ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from bicliques.pipeline.process.in_order import in_order
from bicliques.schemas.dtypes import VERTEX

#: Entries that a thread takes at a time.
PIECE = 1 << 18
#: Integers below this are always looked up in a table.
SMALL = 1 << 22
#: Bytes per distinct label that a table of ranks may take.
RANK_BYTES = 40


Result = TypeVar("Result")


def rank_by_value(column: np.ndarray, threads: int) -> np.ndarray:
    """Replace integers from 0 by their positions among the distinct ones. Returns these, sorted, of type int32."""
    known = distinct(column, threads)
    most = int(known[-1]) if len(known) else 0
    if most < max(SMALL, RANK_BYTES // VERTEX.itemsize * len(known)):
        ranks = np.empty(most + 1, VERTEX)
        ranks[known] = np.arange(len(known), dtype=VERTEX)
        replace(column, ranks, threads)
        return known

    def search(piece: np.ndarray) -> None:
        piece[:] = np.searchsorted(known, piece)

    _on_pieces(search, column, threads)
    return known


def replace(column: np.ndarray, by: np.ndarray, threads: int) -> None:
    """Replace every entry ``k`` of `column` by ``by[k]``."""

    def look_up(piece: np.ndarray) -> None:
        piece[:] = by[piece]

    _on_pieces(look_up, column, threads)


def distinct(column: np.ndarray, threads: int) -> np.ndarray:
    """The distinct integers of a column, sorted. It takes at most a byte per entry, or 24 per distinct integer.

    Parameters
    ----------
    column : ndarray of int32
        Integers from 0.
    threads : int
    """
    most = max(_on_pieces(lambda piece: int(piece.max()), column, threads), default=-1)
    if most < max(SMALL, len(column)):
        is_there = np.zeros(most + 1, np.bool_)

        def mark(piece: np.ndarray) -> None:
            is_there[piece] = True  # threads may write the same byte, but all of them write the same

        _on_pieces(mark, column, threads)
        return np.flatnonzero(is_there).astype(VERTEX)
    known, waiting, n_waiting = np.empty(0, VERTEX), [], 0
    for part in in_order(np.unique, _pieces(column), threads):
        waiting.append(part)
        n_waiting += len(part)
        if n_waiting > max(SMALL, len(known)):
            known, waiting, n_waiting = np.unique(np.concatenate([known, *waiting])), [], 0
    return np.unique(np.concatenate([known, *waiting]))


def _on_pieces(work: Callable[[np.ndarray], Result], column: np.ndarray, threads: int) -> list[Result]:
    return list(in_order(work, _pieces(column), threads))


def _pieces(column: np.ndarray) -> Iterator[np.ndarray]:
    return (column[start : start + PIECE] for start in range(0, len(column), PIECE))
