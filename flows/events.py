"""Events that tell other programs, through the Prefect server, that a run is complete and what changed in it.

An automation of the server can start whatever comes next. docs/operations.md has examples.
"""

from __future__ import annotations

from typing import Any

from prefect.events import emit_event

from pipeline.compare.difference import Difference
from pipeline.results.results import Results
from pipeline.run.folder import RunFolder

__all__ = ["CHANGED", "COMPLETE", "emit_complete"]

COMPLETE = "bicliques.run.complete"
CHANGED = "bicliques.run.changed"


def emit_complete(results: Results, series: str, found: Difference | None = None, above: float | None = None) -> None:
    """Send the event that a run has become complete, and after it that much has changed, if that is so.

    Parameters
    ----------
    results : Results
        Of a complete run.
    series : str
        The input, as a run records it, with placeholders in place of days.
    found : Difference or None
        What changed since the run before. None if nothing was compared.
    above : float or None
        The share from 0 to 1 above which much has changed. None: any change is told.

    Notes
    -----
    The events have the same resource, ``bicliques.run.`` with the identity of the run. Prefect adds the flow run and
    its deployment. If the server does not take an event, Prefect logs it, and the run goes on.
    """
    manifest, folder = results.manifest, str(results.path.absolute())
    resource = {
        "prefect.resource.id": f"bicliques.run.{RunFolder(results.path).run_id()}",
        "prefect.resource.name": folder,
        "bicliques.series": series,
    }
    facts = {
        "folder": folder,
        "series": series,
        "count": manifest.count,
        "fingerprint": None if manifest.fingerprint is None else str(manifest.fingerprint),
        "seconds": round(sum(manifest.seconds.values()), 3),
    }
    changes = {} if found is None else _changes(found)
    first = emit_event(COMPLETE, resource, payload=facts | changes)
    if found is not None and found.share > (above or 0.0):
        emit_event(CHANGED, resource, payload=facts | changes, follows=first)


def _changes(found: Difference) -> dict[str, Any]:
    return {
        "since": str(found.old_run.folder),
        "gone": len(found.gone),
        "new": len(found.new),
        "unchanged": found.unchanged,
        "share": round(found.share, 6),
    }
