"""The comparison of a run with the one before it in its series, in the folder ``changes/`` of the run.

Their inputs are compared, too: what is doubtful about that of the run, and was not doubtful before.
"""

from __future__ import annotations

from pathlib import Path

from bicliques.pipeline.compare.difference import Difference, remove_difference
from bicliques.pipeline.compare.diffing import diff
from bicliques.pipeline.run.files import PathLike
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import CHANGES, refuse_links
from bicliques.pipeline.series.runs import run_before
from bicliques.schemas.errors import BicliqueError


def changes_since_the_run_before(run: PathLike) -> Difference | None:
    """What changed since `pipeline.series.runs.run_before` of a complete run.

    Raises `InputError`, `IncompleteError` or `ResourceError` as `bicliques.diff`.

    Parameters
    ----------
    run : path
        Folder of the run. The runs of its series are beside it, in its store if it is kept in one.

    Returns
    -------
    Difference or None
        Of ``changes/`` in the folder of the run, and in its store. If it is there already and is of the same two runs,
        it is not made again. None if there is no run before.
    """
    path = Path(run)
    before, folder = run_before(path), RunFolder(path)
    if before is None:
        return None
    folder.store.bring_changes()
    found = known_changes(before, folder)
    if found is None:
        refuse_links(path)
        remove_difference(folder.path / CHANGES)
        found = diff(before.path, path, folder.path / CHANGES, progress=False)
        folder.store.keep_changes()
    return found


def known_changes(before: RunFolder, folder: RunFolder) -> Difference | None:
    """The comparison that is in the folder of a run, if it is of these two runs as they are now."""
    try:
        found = Difference(folder.store.local(folder.path / CHANGES))
        for own, told in ((before, found.old_run), (folder, found.new_run)):
            manifest = own.manifest()
            if own.run_id() != told.run or manifest is None or told.found is None:
                return None
            if manifest.fingerprint != told.found.fingerprint:
                return None
    except BicliqueError:  # there is none, or it is damaged
        return None
    return found


def new_doubts(run: PathLike) -> list[str]:
    """Doubts about the input of a complete run, of kinds that the run before it had none of.

    There are none if there is no run before, or an earlier version has made it, which kept no kinds.
    """
    before = run_before(Path(run))
    manifests = (folder.manifest() for folder in (before, RunFolder(Path(run))) if folder is not None)
    readings = [manifest.input["reading"] for manifest in manifests if manifest and "reading" in manifest.input]
    if len(readings) < 2:
        return []
    known = {doubt["kind"] for doubt in readings[0]["doubts"]}
    return [doubt["text"] for doubt in readings[1]["doubts"] if doubt["kind"] not in known]
