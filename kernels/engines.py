"""Engines by name: which there are, and which can run here and why not.

Workers look an engine up by its name; no engine object crosses a process border. What is known of an engine before it
is made is in its room (``kernels/NAME/kind.py``). The engine itself is imported when it is made, because compilers and
GPU libraries take a second or more to import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bicliques.kernels.bitmatrix.kind import KIND as BITMATRIX
from bicliques.kernels.cpu.kind import KIND as CPU
from bicliques.kernels.cumbe.kind import KIND as CUMBE
from bicliques.kernels.reference.kind import KIND as REFERENCE
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.platform import EngineKind
from bicliques.schemas.search import Limits, Search

#: Let `choose` take the first engine of its list that can run.
AUTO = "auto"

#: By name, in the order in which they are shown.
_KINDS = {kind.name: kind for kind in (BITMATRIX, CPU, CUMBE, REFERENCE)}

#: What ``auto`` tries, the fastest first.
_PREFERENCE = (BITMATRIX.name, CPU.name)


class Choice(NamedTuple):
    """The engine of a run, why it is this one, and whether a faster one had to be passed over."""

    name: str
    reason: str
    is_fallback: bool = False


def kinds() -> tuple[EngineKind, ...]:
    """All engines, in the order in which they are shown."""
    return tuple(_KINDS.values())


def kind(name: str) -> EngineKind:
    """The engine of that name."""
    if name not in _KINDS:
        raise InputError(f"there is no engine {name!r}; choose one of {', '.join([AUTO, *_KINDS])}")
    return _KINDS[name]


def register(kind: EngineKind) -> None:
    """Have one more engine in this process; it takes the place of one of the same name.

    For engines of other packages. The processes of workers have to register it, too, because they look it up by its
    name.
    """
    _KINDS[kind.name] = kind


def here(kind: EngineKind) -> str | None:
    """Why an engine cannot run in this process; None when it can."""
    return kind.why_not()


def choose(name: str, why_not: Callable[[EngineKind], str | None] = here) -> Choice:
    """The engine to use for a name the user gave.

    Raises `InputError` if there is no such engine.

    Parameters
    ----------
    why_not : callable
        Why an engine cannot run where the workers are, None when it can; asks this process by default.
    """
    if name != AUTO:
        reason = why_not(kind(name))
        if reason:
            raise ResourceError(f"engine {name} cannot run here: {reason}; choose another one, or auto")
        return Choice(name, "asked for")
    passed_over: list[str] = []
    for candidate in _PREFERENCE:
        reason = why_not(kind(candidate))
        if reason is None:
            return Choice(candidate, "; ".join(["the fastest that can run here", *passed_over]), bool(passed_over))
        passed_over.append(f"{candidate} cannot: {reason}")
    raise ResourceError(f"no engine can run here: {'; '.join(passed_over)}")


def compile_engine(name: str, search: Search | None = None) -> None:
    """Compile an engine once, so that workers that start together find the machine code on disk.

    Parameters
    ----------
    search : Search or None
        What it is going to search. If that has no thresholds, what only they need is not compiled. If it counts
        bicliques that are not maximal, only what that needs is.
    """
    import numpy as np  # not before it is needed: this module is read for the names of the engines

    from bicliques.schemas.bicliques import nowhere
    from bicliques.schemas.graph import MiningGraph
    from bicliques.schemas.hashes import hashes_of_ids
    from bicliques.schemas.work import Subtrees

    one, offsets = np.zeros(1, np.int32), np.array([0, 1], np.int64)
    edge = MiningGraph("left", 1, 1, *(offsets, one) * 4, *hashes_of_ids(1, 1))
    engine = kind(name)
    least = engine.make(engine.platform.most_halvings)
    counts = search if search is not None and search.pq is not None else None
    thresholds = Search(min_left=2) if search is not None and search.prunes else Search()
    if search is not None and search.near is not None:
        thresholds = Search(min_left=2, min_right=2, missing_pairs=1)
    least.mine(edge, Subtrees.of_roots(one), counts or thresholds, Limits(), nowhere)


def compile_proof() -> None:
    """Compile what sorts rows, reads them back, and looks at every vertex of them, once, or load it."""
    import numpy as np

    from bicliques.kernels.compiled import parquet_pages
    from bicliques.kernels.compiled.lists import count_members, keep_largest, reorder, sum_lists

    one, offsets = np.zeros(1, np.int32), np.array([0, 1], np.int64)
    sums, counts = np.zeros(1, np.uint64), np.zeros(1, np.int64)
    reorder(offsets, one, counts, offsets.copy(), one.copy())
    count_members(one, counts)
    sum_lists(one, offsets, np.zeros(1, np.uint64), counts, sums)
    keep_largest(1, one, offsets, (counts, counts), sums, (one, one), np.zeros(1, np.uint64))
    page = np.array([2, 0, 2, 1, 0, 2], np.uint8)
    parquet_pages.page_header(page[1:], 0, np.empty(2 * parquet_pages.HEADER_FIELDS, np.int64))
    parquet_pages.row_starts(page, 0, 2, 1, 0, offsets, 0)
    parquet_pages.all_ones(page, 2, 4, 1)
    none, ends = np.empty(0, np.uint64), np.array([0, 2])
    hashes, before = np.zeros(1, np.uint64), np.zeros(1, np.int64)
    parquet_pages.sum_codes((none, page), (5, 0, 1, 0), (ends, -1), (one, hashes), before, counts, sums)
    parquet_pages.combine(sums, sums)
