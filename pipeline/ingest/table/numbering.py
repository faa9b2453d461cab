"""Numbers the labels of one side, block after block. Text is hashed and integers are sorted.

Hashing would need up to 200 bytes per integer for a moment, and sorting needs 60. Sorting also takes only two thirds
of the time if most integers are different. A number does not change later.

Text may be numbered on several threads. Labels of a block are dealt to parts by their hashes. A part numbers its own as
`Texts` does, and a number tells its part, so that no two parts give the same one. In the end each part is sorted, and
ranges of labels are gathered from all sorted parts and sorted together, a range per thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.schemas.dtypes import MAX_VERTICES, VERTEX
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.hashes import vertex_hashes

#: Most bytes of text that all labels of a side may have together, because a label table has offsets of 32 bits.
MAX_TEXT = 2**31 - 1


def refuse_too_many(side: str, n: int, n_bytes: int = 0) -> None:
    """Refuse `n` labels that cannot be numbered, or whose text (`n_bytes` of it) does not fit into a label table."""
    if n > MAX_VERTICES:
        raise ResourceError(
            f"{n} {side} labels are more than the {MAX_VERTICES} that 32-bit ids can number; split the graph"
        )
    if n_bytes > MAX_TEXT:
        raise ResourceError(
            f"the {side} labels have {n_bytes} bytes of text together, and {MAX_TEXT} are the most; shorten them, "
            "or take integers"
        )


class Texts:
    """Labels that are text."""

    def __init__(self, side: str) -> None:
        self.side = side
        self.known = pa.array([], pa.large_string())

    def __len__(self) -> int:
        return len(self.known)

    @property
    def nbytes(self) -> int:
        """Bytes of the labels."""
        return self.known.nbytes

    def numbers_of(self, blocks: Sequence[pa.Array]) -> list[np.ndarray]:
        """The number of every label of every block, whether it was known before or not. Integers."""
        before = [self.known] if len(self) else []  # Arrow would drop an empty chunk
        merged = pa.chunked_array([*before, *blocks]).dictionary_encode()
        self.known = merged.chunk(0).dictionary
        refuse_too_many(self.side, len(self), pc.sum(pc.binary_length(self.known), min_count=0).as_py())
        return [chunk.indices.to_numpy() for chunk in merged.chunks[len(before) :]]

    def ranked(self) -> tuple[pa.Array, np.ndarray, np.ndarray]:
        """The labels, their positions in sorted order, and the rank of every number."""
        order = pc.array_sort_indices(self.known).to_numpy()
        ranks = np.empty(len(order), VERTEX)
        ranks[order] = np.arange(len(order), dtype=VERTEX)
        return self.known, order, ranks


class Integers:
    """Labels that are integers. Methods are those of `Texts`.

    Parameters
    ----------
    side : str
        "left" or "right", for messages.
    known : ndarray or None
        Sorted labels whose numbers are their positions.
    """

    def __init__(self, side: str, known: np.ndarray | None = None) -> None:
        self.side = side
        self.known = np.empty(0, np.int64) if known is None else known.astype(np.int64)  # sorted
        self.number = np.arange(len(self.known), dtype=VERTEX)  # the number of each

    def __len__(self) -> int:
        return len(self.known)

    @property
    def nbytes(self) -> int:
        """Bytes of the labels."""
        return self.known.nbytes

    def numbers_of(self, blocks: Sequence[pa.Array]) -> list[np.ndarray]:
        """The number of every label of every block, whether it was known before or not. int32."""
        labels = np.concatenate([block.to_numpy() for block in blocks])
        order = np.argsort(labels)
        ordered = labels[order]
        is_first = np.ones(len(labels), np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
        distinct = ordered[is_first]
        numbers = np.empty(len(labels), VERTEX)
        numbers[order] = self._add(distinct)[np.cumsum(is_first) - 1]
        return np.split(numbers, np.cumsum([len(block) for block in blocks])[:-1])

    def ranked(self) -> tuple[pa.Array, np.ndarray, np.ndarray]:
        """See `Texts`."""
        ranks = np.empty(len(self), VERTEX)
        ranks[self.number] = np.arange(len(self), dtype=VERTEX)
        return pa.array(self.known), np.arange(len(self)), ranks

    def _add(self, labels: np.ndarray) -> np.ndarray:
        """Numbers of sorted distinct labels. Labels that are not known yet get new numbers."""
        places = np.searchsorted(self.known, labels)
        is_new = np.ones(len(labels), np.bool_)
        inside = places < len(self)
        is_new[inside] = self.known[places[inside]] != labels[inside]
        n = len(self) + int(is_new.sum())
        refuse_too_many(self.side, n)
        numbers = np.empty(len(labels), VERTEX)
        numbers[~is_new] = self.number[places[~is_new]]
        numbers[is_new] = np.arange(len(self), n, dtype=VERTEX)
        is_old = np.ones(n, np.bool_)
        is_old[places[is_new] + np.arange(n - len(self))] = False
        self.known = _merged(is_old, self.known, labels[is_new])
        self.number = _merged(is_old, self.number, numbers[is_new])
        return numbers


def _merged(is_old: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    merged = np.empty(len(is_old), old.dtype)
    merged[is_old], merged[~is_old] = old, new
    return merged


#: Labels of each part that are looked at to choose the ranges, for each range.
_SAMPLE = 16


class TextParts:
    """Labels that are text, in parts. Methods are those of `Texts`, but there are numbers that no label has.

    Parameters
    ----------
    side : str
        "left" or "right", for messages.
    parts : int
        Parts, 256 at most, and threads.
    """

    def __init__(self, side: str, parts: int) -> None:
        self.side = side
        self.parts = [Texts(side) for _ in range(parts)]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def nbytes(self) -> int:
        """Bytes of the labels."""
        return sum(part.nbytes for part in self.parts)

    def numbers_of(self, blocks: Sequence[pa.Array]) -> list[np.ndarray]:
        """The number of every label of every block, whether it was known before or not. int32."""
        n_parts = len(self.parts)
        numbers = [np.empty(len(block), VERTEX) for block in blocks]
        with ThreadPoolExecutor(n_parts) as threads:
            dealt = list(threads.map(self._dealt, blocks))

            def number(k: int) -> None:
                own = [(block, rows[k], out) for block, rows, out in zip(blocks, dealt, numbers, strict=True)]
                own = [each for each in own if len(each[1])]  # Arrow would drop an empty chunk
                if not own:
                    return
                found = self.parts[k].numbers_of([block.take(pa.array(rows)) for block, rows, _ in own])
                for (_, rows, out), codes in zip(own, found, strict=True):
                    out[rows] = codes * n_parts + k

            list(threads.map(number, range(n_parts)))
        n_bytes = sum(pc.sum(pc.binary_length(part.known), min_count=0).as_py() for part in self.parts)
        refuse_too_many(self.side, n_parts * max(map(len, self.parts)), n_bytes)
        return numbers

    def _dealt(self, block: pa.Array) -> list[np.ndarray]:
        """The rows of a block for each part, ascending."""
        n_parts = np.uint64(len(self.parts))
        part = ((vertex_hashes(block, "left") >> np.uint64(48)) * n_parts >> np.uint64(16)).astype(np.uint8)
        rows = np.argsort(part, kind="stable")
        return np.split(rows, np.cumsum(np.bincount(part, minlength=len(self.parts)))[:-1])

    def ranked(self) -> tuple[pa.Array, np.ndarray, np.ndarray]:
        """See `Texts`."""
        lengths = [len(part) for part in self.parts]
        starts = np.cumsum([0, *lengths])
        known = pa.concat_arrays([part.known for part in self.parts])
        with ThreadPoolExecutor(len(self.parts)) as threads:
            ordered = list(threads.map(lambda part: pc.array_sort_indices(part.known).to_numpy(), self.parts))
            ordered = [start + own.astype(np.int64) for start, own in zip(starts, ordered, strict=False)]
            cuts = _cuts(known.view(pa.large_binary()), ordered)

            def sort(k: int) -> np.ndarray:
                at = np.concatenate([own[cut[k] : cut[k + 1]] for own, cut in zip(ordered, cuts, strict=True)])
                by_label: np.ndarray = pc.array_sort_indices(known.take(pa.array(at))).to_numpy()
                return at[by_label]

            order = np.concatenate(list(threads.map(sort, range(len(self.parts)))))
        rank = np.empty(len(order), VERTEX)
        rank[order] = np.arange(len(order), dtype=VERTEX)
        ranks = np.zeros((max(lengths), len(lengths)), VERTEX)
        for k, (start, stop) in enumerate(pairwise(starts.tolist())):
            ranks[: stop - start, k] = rank[start:stop]
        return known, order, ranks.reshape(-1)


def _cuts(labels: pa.Array, ordered: Sequence[np.ndarray]) -> list[list[int]]:
    """Where to cut each list, so that the first pieces of all have the least labels together, and so on.

    Parameters
    ----------
    ordered : sequence of ndarray
        Lists of positions in `labels`, each in the order of its labels. There are as many pieces as lists.
    """
    n = len(ordered)

    def label(position: np.integer) -> bytes:
        found: bytes = labels[int(position)].as_py()
        return found

    sample = sorted(label(k) for own in ordered for k in own[:: max(len(own) // (_SAMPLE * n), 1)])
    borders = [sample[k * len(sample) // n] for k in range(1, n)]
    return [[0, *(bisect_left(own, border, key=label) for border in borders), len(own)] for own in ordered]
