"""Make ``report.html`` of a run."""

from __future__ import annotations

from pathlib import Path

from pipeline.choices import PathLike
from pipeline.files import whole_file
from pipeline.folder import RunFolder
from pipeline.names import refuse_links
from pipeline.reporting.content import content_of
from pipeline.reporting.page import html_of

__all__ = ["report"]


def report(folder: PathLike) -> Path:
    """Write the page of a run, complete or not, into its folder; an older one is replaced.

    Returns
    -------
    Path
        ``report.html``: one file that needs no network.

    Raises
    ------
    InputError
        If `folder` is not that of a run, or a folder in it is a link.
    IncompleteError
        If a file of it is damaged.
    ResourceError
        If the disk is full, or the like.
    """
    run = RunFolder(Path(folder))
    refuse_links(run.path)
    text = html_of(content_of(run.path))
    with whole_file(run.report) as file:
        file.write(text.encode("utf-8", "backslashreplace"))  # as a name that is no text
    return run.report
