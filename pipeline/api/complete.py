"""Whether a run is complete: as it is, so that nothing is written and no lock is needed, or else under its lock."""

from __future__ import annotations

import logging

from bicliques.pipeline.proof import summary, vertices
from bicliques.pipeline.proof.wholeness import why_not_whole
from bicliques.pipeline.run.files import disk_errors
from bicliques.pipeline.run.names import is_staging, refuse_links
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.session import sessions
from bicliques.pipeline.series.marks import withdraw_mark
from bicliques.schemas.errors import BicliqueError, IncompleteError
from bicliques.schemas.facts import BEFORE_MINING
from bicliques.schemas.manifest import Manifest

logger = logging.getLogger(__name__)


def is_complete_as_it_is(run: Run) -> bool:
    """Whether a run is complete, undamaged, and nobody works on it. It is only read.

    A complete run may be in a folder that this process must not write to, where it cannot take the lock. Nothing
    changes such a run but a process that mends or removes it, and that one holds the lock. If it takes the lock while
    the files are read here, either they are all there, and the run was complete when this call began, or one is
    missing, and the answer is False.

    Returns
    -------
    bool
        False if that cannot be found out, too. Whoever then takes the lock finds out why, and says so. False of every
        run that is kept in a store, because its working folder may have what the store still lacks.

    Notes
    -----
    `pipeline.api.steps.complete_run` asks the same step by step under the lock, because it mends what is not so. A file
    that a complete run has to have is looked at in both.
    """
    if run.store.url is not None:
        return False
    try:
        return _is_free(run) and _has_all(run)
    except (BicliqueError, OSError):
        return False


def _is_free(run: Run) -> bool:
    """Whether no process works on the run, or has left input there that it was reading."""
    refuse_links(run.path)
    at_work = run.store.holder()
    return (at_work is None or not at_work.alive) and not any(map(is_staging, run.path.iterdir()))


def _has_all(run: Run) -> bool:
    manifest = run.folder.manifest()
    if manifest is None:  # most often, so it is looked at before all that takes longer
        return False
    return (
        all(run.has(step) and run.folder.broken(step) is None for step in BEFORE_MINING)
        and why_not_whole(run, manifest) is None
        and bool(sessions(run.folder))
        and not (run.options.search.per_vertex and vertices.why_damaged(run))
        and (run.job.rows == "none" or summary.why_damaged(run.folder, manifest) is None)
    )


def proven_manifest(run: Run) -> Manifest | None:
    """The manifest of a run, if it still agrees with the files. Otherwise it is deleted, and None is returned."""
    folder = run.folder
    try:
        manifest = folder.manifest()
    except IncompleteError as error:
        reason: str | None = str(error.__cause__ or error)
    else:
        if manifest is None:
            return None
        reason = why_not_whole(run, manifest)
        if reason is None:
            return manifest
    logger.warning("%s; the manifest is withdrawn, and what is missing is mined again", reason)
    withdraw_mark(folder.path)
    with disk_errors(folder.manifest_file):
        folder.manifest_file.unlink()
    return None
