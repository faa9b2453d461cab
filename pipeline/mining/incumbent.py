"""How large the largest biclique so far is while a run goes on, and how large one may be that is not found yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bicliques.pipeline.run.ledger import Ledger
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.plan import BandOf
from bicliques.pipeline.run.progress import Gap
from bicliques.schemas.manifest import PLAN, Range
from bicliques.schemas.totals import Best, Total


class Incumbent:
    """Follows the bands of a run that wants the largest. For other runs it has nothing to say."""

    def __init__(self, run: Run, band_of: BandOf):
        self._plan, self._band_of = run.plan, band_of
        self._ceilings = [band["ceiling"] for band in run.built["bands"]] if run.is_in_bands else []
        # so large is one that was found before the search began, which will be found again, or else a larger one
        self._first = run.built["bound"] if run.is_in_bands else 0
        self._open: Counter[int] = Counter()  # by band: nodes that are not done

    def add(self, source: int, ranges: Iterable[tuple[int, int]]) -> None:
        """There are nodes to search."""
        self._count(source, ranges, 1)

    def done(self, took: Iterable[Range]) -> None:
        """A slice that took these nodes is committed. What it left over is added by `add`."""
        for source, start, stop in took:
            self._count(source, [(start, stop)], -1)

    def gap(self, total: Total) -> Gap | None:
        """The measure of the largest biclique, and a bound of those that are not found yet. None for other runs."""
        if not isinstance(total, Best) or not self._ceilings:
            return None
        best = max(total.most or 0, self._first)
        rest = [self._ceilings[band] for band, nodes in self._open.items() if nodes > 0]
        return Gap(best, max([best, *rest]))

    def _count(self, source: int, ranges: Iterable[tuple[int, int]], sign: int) -> None:
        if not self._ceilings:
            return  # nobody asks
        within = self._plan.within_bands(ranges) if source == PLAN else ranges
        for start, stop in within:
            self._open[self._band_of(source, start)] += sign * (stop - start)


def gap_of(run: Run, ledger: Ledger) -> Gap | None:
    """The same of a run that has a plan, from what its ledger says."""
    incumbent = Incumbent(run, BandOf(run.plan, ledger.entries))
    for source, ranges in ledger.outstanding().items():
        incumbent.add(source, ranges)
    return incumbent.gap(ledger.total)
