"""Divides rows among threads. Each thread writes its own part of the result, so the result is always the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

#: Entries from which on another thread pays.
LEAST = 1 << 16
#: Words that are looked at to find the middle.
_SAMPLE = 1 << 12


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
    """Sort in place. The words are parted until each thread has two parts, and no part is too short to be worth it."""
    if threads == 1 or len(words) <= LEAST:
        words.sort()
        return
    with ThreadPoolExecutor(threads) as pool:
        parts = [words]
        while len(parts) < 2 * threads and max(map(len, parts)) > LEAST:
            if 2 * len(parts) <= threads:  # several threads for each part
                parts = [half for part in parts for half in _parted(part, threads, pool)]
            else:
                parts = [half for halves in pool.map(_halves, parts) for half in halves]
        list(pool.map(np.ndarray.sort, parts))


def _halves(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Part words at their middle, in place."""
    middle = len(words) // 2
    if middle:
        words.partition(middle)
    return words[:middle], words[middle:]


def _parted(words: np.ndarray, threads: int, pool: ThreadPoolExecutor) -> tuple[np.ndarray, np.ndarray]:
    """Part words near their middle, in place. Every thread parts a slice, and then wrong halves change places."""
    if len(words) <= LEAST:
        return _halves(words)
    sample = np.sort(words[:: max(len(words) // _SAMPLE, 1)])
    pivot = sample[len(sample) // 2]
    cuts = even(len(words), threads).tolist()
    slices = [words[start:stop] for start, stop in pairwise(cuts)]

    def part(one: np.ndarray) -> int:
        n = int(np.count_nonzero(one < pivot))
        if 0 < n < len(one):
            one.partition(n)  # those before place n are the n least
        return n

    less = list(pool.map(part, slices))
    middle = sum(less)
    if middle in (0, len(words)):  # most words are the same
        return _halves(words)
    behind = [(max(start, middle), start + n) for start, n in zip(cuts, less, strict=False)]
    before = [(start + n, min(stop, middle)) for (start, stop), n in zip(pairwise(cuts), less, strict=True)]

    def swap(here: int, there: int, n: int) -> None:
        words[here : here + n], words[there : there + n] = (
            words[there : there + n],
            words[here : here + n].copy(),
        )

    list(pool.map(swap, *zip(*_pairs(before, behind), strict=True)))
    return words[:middle], words[middle:]


def _pairs(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Where pieces begin that change places, and their lengths. Both lists of ranges have equally many entries."""
    ours, theirs = ([[a, b] for a, b in ranges if a < b] for ranges in (some, others))
    pairs = [(0, 0, 0)]
    while ours:
        n = min(ours[-1][1] - ours[-1][0], theirs[-1][1] - theirs[-1][0], LEAST)
        pairs.append((ours[-1][0], theirs[-1][0], n))
        for ranges in (ours, theirs):
            ranges[-1][0] += n
            if ranges[-1][0] == ranges[-1][1]:
                ranges.pop()
    return pairs
