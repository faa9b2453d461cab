"""The stored plan of a run: its first-level subtrees in dealing order. `pipeline.prepare.weights` makes the plan.

A run that is done in bands has those of one band behind those of another. `BandOf` says which band a node is of.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.manifest import PLAN, LedgerEntry
from bicliques.schemas.regular_files import map_array

#: Names of the files below ``plan/``.
ROOTS_FILE, WEIGHTS_FILE = "roots.npy", "weights.npy"


@dataclass(frozen=True, eq=False)
class Plan:
    """The roots in dealing order, and their weights.

    Parameters
    ----------
    roots : ndarray, shape (n_roots,), int32
        Ranks of the roots, by descending weight.
    weights : ndarray, shape (n_roots,), float64
        Estimated work of each root, in the same order. Only the ratios of weights have a meaning.
    bands : tuple of (int, int)
        The bands of the run in dealing order, and for each the node of the plan behind its last one.
    """

    roots: np.ndarray
    weights: np.ndarray
    bands: tuple[tuple[int, int], ...] = ((0, 1 << 62),)

    @classmethod
    def read(cls, folder: RunFolder, bands: list[tuple[int, int]] | None = None) -> Plan:
        """The plan in the folder of a run. `bands` is as the step ``plan`` wrote it down, None for a single band."""
        folder.store.local(folder.plan)
        try:
            roots = np.array(map_array(folder.plan / ROOTS_FILE, VERTEX))
            weights = np.array(map_array(folder.plan / WEIGHTS_FILE, np.dtype(np.float64)))
            if len(roots) != len(weights) or not (np.isfinite(weights) & (weights >= 0)).all():
                raise ValueError("not every root has a weight")
        except (OSError, ValueError) as error:
            remedy = f"mend it with: {how_to_resume(folder.path)}"
            raise IncompleteError(f"the plan in {folder.plan} cannot be read ({error}); {remedy}") from error
        return cls(roots, weights, *(() if bands is None else (tuple((band, stop) for band, stop in bands),)))

    def band_at(self, node: int) -> int:
        """The band of a node of the plan."""
        return self.bands[bisect_right(self._stops, node)][0]

    def stretch_of(self, band: int) -> tuple[int, int]:
        """The nodes of a band: the first, and the one behind the last."""
        place = [own for own, _ in self.bands].index(band)
        return (self._stops[place - 1] if place else 0), min(self._stops[place], len(self.roots))

    def within_bands(self, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """The same ranges of nodes, cut where one band ends and the next begins."""
        cut = []
        for start, stop in ranges:
            ends = [end for end in self._stops if start < end < stop]
            cut += list(pairwise((start, *ends, stop)))
        return cut

    @cached_property
    def _stops(self) -> list[int]:
        return [stop for _, stop in self.bands]


class BandOf:
    """The band of a node of a source. That of a left-over is the band of the slice that left it.

    Parameters
    ----------
    entries : mapping of int to LedgerEntry
        The ledger's, which may grow.
    """

    def __init__(self, plan: Plan, entries: Mapping[int, LedgerEntry]):
        self._plan, self._entries = plan, entries
        self._known: dict[int, int] = {}

    def __call__(self, source: int, node: int = 0) -> int:
        """The band of a node of the plan, or of any node of a left-over."""
        slices = []
        while source != PLAN and source not in self._known:
            slices.append(source)
            source, node, _ = self._entries[source].took[0]
        band = self._plan.band_at(node) if source == PLAN else self._known[source]
        self._known.update(dict.fromkeys(slices, band))
        return band
