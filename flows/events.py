"""Events that tell other programs, through the Prefect server, that a run is complete, changed, or was published.

An automation of the server can start whatever comes next. docs/operations.md has examples.
"""

from __future__ import annotations

from typing import Any

from prefect.events import emit_event

from bicliques.pipeline.compare.difference import Difference
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.store import store_at

COMPLETE = "bicliques.run.complete"
CHANGED = "bicliques.run.changed"
PUBLISHED = "bicliques.run.published"


def emit_complete(
    results: Results,
    series: str,
    found: Difference | None = None,
    above: float | None = None,
    url: str | None = None,
    is_new: bool = True,
) -> None:
    """Send the event that a run has become complete; after it that much has changed, and that the run was published.

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
    url : str or None
        Where the run was published. None if it was not.
    is_new : bool
        Whether the run has become complete. If not, only the event of its publication is sent.

    Notes
    -----
    The events have the same resource, ``bicliques.run.`` with the identity of the run. Prefect adds the flow run and
    its deployment. If the server does not take an event, Prefect logs it, and the run goes on.
    """
    manifest, folder = results.manifest, str(store_at(results.path.absolute()).address)
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
    facts |= {} if found is None else _changes(found)
    facts |= {} if url is None else {"published": url}
    first = emit_event(COMPLETE, resource, payload=facts) if is_new else None
    if is_new and found is not None and (found.share is None or found.share > (above or 0.0)):
        emit_event(CHANGED, resource, payload=facts, follows=first)
    if url is not None:
        emit_event(PUBLISHED, resource, payload=facts, follows=first)


def _changes(found: Difference) -> dict[str, Any]:
    return {
        "since": str(found.old_run.folder),
        "gone": len(found.gone),
        "new": len(found.new),
        "unchanged": found.unchanged,
        "share": None if found.share is None else round(found.share, 6),
    }
