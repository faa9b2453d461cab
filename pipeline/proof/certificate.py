"""Makes and checks the certificate of a run that found the largest. See `schemas.bands`.

The certificate is made of the plan, the ledger, the bands and the largest degrees alone. So it can be made again from
the files of a run, and compared with what its manifest says.
"""

from __future__ import annotations

from collections import Counter

from bicliques.pipeline.prepare.bands import reach_of
from bicliques.pipeline.prepare.build import read_edges
from bicliques.pipeline.prepare.members import restricted
from bicliques.pipeline.run.ledger import Ledger
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.plan import BandOf
from bicliques.schemas.bands import Band, BandCertificate, Certificate, gap_in
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.manifest import PLAN
from bicliques.schemas.totals import Best


def certify(run: Run, ledger: Ledger) -> Certificate:
    """The certificate of a run, whose ledger leaves nothing outstanding (`pipeline.proof.wholeness.check_cover`).

    Raises
    ------
    IncompleteError
        If a band was not searched to the end, if the bands leave out sizes that could be among the largest, or if the
        search began with a bound that the rows do not reach. The error says which.

    Notes
    -----
    It reads the edges, and takes O(edges) time.
    """
    search, total, graph = run.options.search, ledger.total, run.built
    assert isinstance(total, Best)
    assert search.largest is not None
    told, first_bound = graph["bands"], graph["bound"]
    if first_bound > (total.least or 0):
        raise IncompleteError(
            f"the search began with the bound {first_bound}, which the rows do not reach; start the run again"
        )
    reach = reach_of(restricted(run, *read_edges(run.folder)))
    bands = [Band(one["first"], one["last"], one["min_right"]) for one in told]
    if (reason := gap_in(bands, search, total.least or 0, reach)) is not None:
        raise IncompleteError(f"the bands leave something out: {reason}; start the run again")
    by_band = _by_band(run, ledger)
    for band, one in zip(by_band, told, strict=True):
        if band["taken"] != band["n_roots"] or band["n_roots"] != one["n_roots"]:
            words = f"the band of {band['first']:,} to {band['last']:,} left members"
            raise IncompleteError(
                f"{words} has {one['n_roots']:,} roots, and slices took {band['taken']:,}; resume the run"
            )
    certificate = Certificate(
        measure=search.by,
        top=search.largest,
        rows=total.count,
        first_bound=first_bound,
        most_left=reach.left,
        most_right=reach.right,
        bands=by_band,
    )
    if total.least is not None:
        certificate["key"] = total.least
    return certificate


def _by_band(run: Run, ledger: Ledger) -> list[BandCertificate]:
    plan, band_of = run.plan, BandOf(run.plan, ledger.entries)
    taken, slices, left_over, seen = Counter[int](), Counter[int](), Counter[int](), Counter[int]()
    for entry in ledger.entries.values():
        source, node, _ = entry.took[0]
        band = band_of(source, node)
        slices[band] += 1
        seen[band] += entry.result.total.seen
        left_over[band] += entry.result.n_left_over
        for source, start, stop in entry.took:
            if source == PLAN:
                for first, end in plan.within_bands([(start, stop)]):
                    taken[plan.band_at(first)] += end - first
    found = []
    for band, one in enumerate(run.built["bands"]):
        start, stop = plan.stretch_of(band)
        found.append(
            BandCertificate(
                first=one["first"],
                last=one["last"],
                min_right=one["min_right"],
                root_side=one["root_side"],
                n_roots=stop - start,
                taken=taken[band],
                slices=slices[band],
                left_over=left_over[band],
                seen=seen[band],
            )
        )
    return found
