"""What is published of a run, and in which order. A run that is not complete and whole is refused."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bicliques.pipeline.proof import summary, vertices
from bicliques.pipeline.proof.wholeness import why_not_whole
from bicliques.pipeline.run.names import (
    MANIFEST_FILE,
    REFUSED_FILE,
    REPORT_FILE,
    has_name_of_run,
    is_file,
    is_folder,
    refuse_links,
)
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.manifest import Manifest

_PARTS = "bicliques"
#: Folders beside the parts, all of which can be read without the rest of the run.
_BESIDE = ("edges", "labels", "summary", "vertices", "changes", "communities")
#: The folders of a run that are published.
PUBLISHED_FOLDERS = (_PARTS, *_BESIDE)


@dataclass(frozen=True, eq=False)
class Contents:
    """What is published.

    Parameters
    ----------
    phases : tuple of tuple of str
        Names of files below the folder of the run, with slashes. All files of a phase are written before any file of
        the next: the parts, what lies beside them, the manifest.
    """

    run: Run
    manifest: Manifest
    phases: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order of the phases."""
        return tuple(name for phase in self.phases for name in phase)

    @property
    def fingerprint(self) -> int:
        """The fingerprint of the manifest."""
        assert self.manifest.fingerprint is not None, "a run that lists has a fingerprint"
        return self.manifest.fingerprint

    @property
    def path(self) -> Path:
        """Folder of the run."""
        return self.run.path

    def size(self, name: str) -> int:
        """Bytes of a file."""
        return self._sizes[name] if name in self._sizes else (self.path / name).stat().st_size

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {f"{_PARTS}/{part.name}": part.bytes for part in self.manifest.parts}


def is_published(name: str) -> bool:
    """Whether a file of this name may be one that was published, and not one of somebody else."""
    folder, slash, rest = name.rpartition("/")
    if not slash:
        return name in (MANIFEST_FILE, REPORT_FILE)
    return folder in PUBLISHED_FOLDERS and has_name_of_run(folder, rest)


def sealed(path: Path) -> Contents:
    """What is published of the run in a folder.

    Raises
    ------
    InputError
        If it is not the folder of a run, a gate refused the run, or it holds no bicliques because it only counted.
    IncompleteError
        If the run is not complete and proven, or a file of it is missing or damaged.
    """
    run = Run.with_holes(path)
    if run.job.rows == "none":
        raise InputError(f"{path} was mined with --count-only and holds no bicliques to publish; mine it again without")
    refuse_links(run.path)
    if os.path.lexists(refused := run.path / REFUSED_FILE):
        raise InputError(
            f"{path} has not passed the gate of its schedule, so it is not published; look at its changes, and let it "
            f"pass: start the flow for its day without refuse_above, or remove {refused}"
        )
    manifest = run.folder.manifest()
    if manifest is None:
        outcome = next((session["outcome"] for session in reversed(run.sessions())), "")
        raise IncompleteError(
            f"{path} is not complete, and only a complete run is published; continue with: "
            f"{how_to_resume(path, outcome)}"
        )
    if (reason := _why_damaged(run, manifest)) is not None:
        raise IncompleteError(f"{reason}; mend it with: {how_to_resume(path)}")
    run.folder.check("ingest")
    parts = tuple(f"{_PARTS}/{part.name}" for part in manifest.parts)
    page = (REPORT_FILE,) if is_file(run.store.local(run.path / REPORT_FILE)) else ()
    return Contents(run, manifest, (parts, (*_beside(run), *page), (MANIFEST_FILE,)))


def _why_damaged(run: Run, manifest: Manifest) -> str | None:
    """The first thing that is wrong with a complete run, in words. Ledger, sizes of parts and summary are looked at."""
    if (reason := why_not_whole(run, manifest)) is not None:
        return reason
    if manifest.proven_rows != manifest.count:
        return f"{manifest.proven_rows:,} of {manifest.count:,} rows in {run.path} are proven"
    if run.options.search.per_vertex and (reason := vertices.why_damaged(run)) is not None:
        return reason
    return summary.why_damaged(run.folder, manifest)


def _beside(run: Run) -> list[str]:
    """Names of the files beside the parts. Files that are not finished do not count."""
    found = []
    for name in _BESIDE:
        folder = run.store.local(run.path / name)
        if is_folder(folder):
            found += [f"{name}/{file.name}" for file in run.folder.own_files(folder) if not file.name.startswith(".")]
    return found
