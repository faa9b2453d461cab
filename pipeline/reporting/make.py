"""Make ``report.html`` of a run."""

from __future__ import annotations

from pathlib import Path

from pipeline.choices import PathLike
from pipeline.files import disk_errors, replace_file
from pipeline.folder import RunFolder
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
        If `folder` is not that of a run.
    IncompleteError
        If a file of it is damaged.
    ResourceError
        If the disk is full, or the like.
    """
    run = RunFolder(Path(folder))
    text = html_of(content_of(run.path))
    temporary = run.report.with_name(f".{run.report.name}.tmp")
    with disk_errors(run.report):
        try:
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")  # as a name that is no text
            replace_file(temporary, run.report)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    return run.report
