"""Divides rows among threads. Each thread writes its own part of the result, so the result is always the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

__all__ = ["LEAST", "borders", "even", "on_slices", "sort"]

#: Entries from which on another thread pays.
LEAST = 1 << 16


def borders(indptr: np.ndarray, parts: int) -> np.ndarray:
    """Rows at which `parts` slices of a CSR begin and end, with about as many entries each. int64, ascending."""
    n_rows, n = len(indptr) - 1, int(indptr[-1])
    parts = max(min(parts, n // LEAST), 1)
    between = np.searchsorted(indptr, np.arange(1, parts) * (n // parts))
    return np.concatenate([[0], np.minimum(between, n_rows), [n_rows]]).astype(np.int64)


def even(n: int, threads: int) -> np.ndarray:
    """Cuts of `n` entries into equal slices."""
    parts = max(min(threads, n // LEAST), 1)
    return np.arange(parts + 1) * n // parts


def on_slices(work: Callable[[int, int, int], object], cuts: np.ndarray) -> None:
    """``work(k, start, stop)`` for every slice ``k`` between two cuts, on as many threads as there are slices."""
    slices = [(k, int(cuts[k]), int(cuts[k + 1])) for k in range(len(cuts) - 1)]
    if len(slices) == 1:
        work(*slices[0])
        return
    with ThreadPoolExecutor(len(slices)) as pool:
        for done in [pool.submit(work, *some) for some in slices]:
            done.result()


def sort(words: np.ndarray, threads: int) -> None:
    """Sort in place. Halves are parted until each thread has two of them, and no half is too short to be worth it."""
    if threads == 1 or len(words) <= LEAST:
        words.sort()
        return
    with ThreadPoolExecutor(threads) as pool:
        parts = [words]
        while len(parts) < 2 * threads and len(parts[0]) > LEAST:
            middle = [len(part) // 2 for part in parts]
            list(pool.map(np.ndarray.partition, parts, middle))
            parts = [half for part, k in zip(parts, middle, strict=True) for half in (part[:k], part[k:])]
        list(pool.map(np.ndarray.sort, parts))
