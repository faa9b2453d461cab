"""Checks whether what a manifest says of a run still holds. Only the ledger and the sizes of the parts are read."""

from __future__ import annotations

from pathlib import Path

from bicliques.pipeline.run.ledger import Ledger, named
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import number
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.manifest import Manifest


def why_not_whole(run: Run, manifest: Manifest, surveyed: tuple[Ledger, dict[Path, str]] | None = None) -> str | None:
    """Why a run that has a manifest is not complete any more, in words. None if it is complete.

    Raises `IncompleteError` if something else is in the place of a file of the run, or the ledger contradicts itself.

    Parameters
    ----------
    surveyed : (Ledger, dict) or None
        What `Ledger.survey` returned, if the caller has called it already.

    Notes
    -----
    Reads the ledger, one small file per slice, and the sizes of the parts.
    """
    damage = run.folder.damage(manifest)
    if damage is not None:
        return damage
    ledger, problems = surveyed or run.survey()
    for problem in problems.values():
        return problem
    for source, ranges in ledger.outstanding().items():
        nodes = sum(stop - start for start, stop in ranges)
        return f"no entry in {run.folder.ledger} accounts for {number(nodes, 'node')} of {named(source)}"
    total = ledger.total
    if (total.count, total.fingerprint) != (manifest.count, manifest.fingerprint):
        return (
            f"{run.folder.ledger} counts {number(total.count, 'biclique')} with fingerprint {total.fingerprint}, but "
            f"the manifest says {manifest.count:,} and {manifest.fingerprint}"
        )
    return None


def check_cover(ledger: Ledger) -> None:
    """Check that every node of every source was taken, and none twice."""
    sizes = ledger.sizes(ledger.entries.values())
    for entry in ledger.entries.values():
        reason = ledger.problem(entry, sizes)
        if reason:
            raise IncompleteError(f"slice {entry.result.slice} does not count: {reason}; resume the run")
    for source, ranges in ledger.outstanding().items():
        left = sum(stop - start for start, stop in ranges)
        whose = named(source)
        raise IncompleteError(
            f"{number(left, f'node of {whose} is', f'nodes of {whose} are')} not mined yet; resume the run"
        )
