"""Whether what a manifest says of a run still holds, by a look at its small files: no row is read."""

from __future__ import annotations

from pathlib import Path

from pipeline.run.ledger import Ledger
from pipeline.run.opened import Run
from schemas.errors import IncompleteError
from schemas.manifest import PLAN, Manifest

__all__ = ["check_cover", "why_not_whole"]


def why_not_whole(run: Run, manifest: Manifest, surveyed: tuple[Ledger, dict[Path, str]] | None = None) -> str | None:
    """Why a run that has a manifest is not complete any more, in words; None when it is.

    Parameters
    ----------
    run : Run
    manifest : Manifest
    surveyed : (Ledger, dict) or None
        `Ledger.survey`, of whoever has made one already.

    Raises
    ------
    IncompleteError
        If something is in the way of the run's files, or the ledger contradicts itself.

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
        name = "the plan" if source == PLAN else f"the left-over of slice {source}"
        nodes = sum(stop - start for start, stop in ranges)
        return f"no entry in {run.folder.ledger} accounts for {nodes} nodes of {name}"
    total = ledger.total
    if (total.count, total.fingerprint) != (manifest.count, manifest.fingerprint):
        return (
            f"{run.folder.ledger} counts {total.count} bicliques with fingerprint {total.fingerprint}, but the "
            f"manifest says {manifest.count} and {manifest.fingerprint}"
        )
    return None


def check_cover(ledger: Ledger) -> None:
    """Every node of every source taken, none twice (`Ledger.outstanding` refuses those)."""
    for entry in ledger.entries.values():
        reason = ledger.problem(entry)
        if reason:
            raise IncompleteError(f"slice {entry.result.slice} does not count: {reason}; resume the run")
    for source, ranges in ledger.outstanding().items():
        name = "the plan" if source == PLAN else f"the left-over of slice {source}"
        left = sum(stop - start for start, stop in ranges)
        raise IncompleteError(f"{left} nodes of {name} are not mined yet; resume the run")
