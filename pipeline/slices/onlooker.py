"""Looks at all bicliques that an engine lists, and adds up what is known of every vertex."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.lists import count_members, keep_largest
from bicliques.kernels.compiled.measures import MEASURES
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.emit import Emit
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.vertices import SideTotals


class Onlooker:
    """An `Emit` that hands bicliques on, and knows of every vertex their number and the largest of them.

    Parameters
    ----------
    emit : Emit or None
        None: the bicliques are not wanted.

    Attributes
    ----------
    left, right : SideTotals
    """

    on_device = False

    def __init__(self, graph: MiningGraph, emit: Emit | None) -> None:
        self._emit = emit
        self.left, self.right = SideTotals.none(graph.n_left), SideTotals.none(graph.n_right)

    def __call__(self, batch: Bicliques) -> None:
        """Look at a batch."""
        sides = (batch.left, batch.left_indptr, self.left), (batch.right, batch.right_indptr, self.right)
        for ids, _, totals in sides:
            if count_members(ids, totals.count) >= 0:
                raise ValueError("an engine has listed a vertex that the graph does not have")
        sizes = np.diff(batch.left_indptr), np.diff(batch.right_indptr)
        for ids, indptr, totals in sides:
            for by, kept in totals.largest.items():
                code = MEASURES[by, False]
                keep_largest(
                    code, ids, indptr, sizes, batch.ids.view(np.uint64), (kept.n_left, kept.n_right), kept.hash
                )
        if self._emit is not None:
            self._emit(batch)
