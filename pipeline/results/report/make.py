"""Makes the page ``report.html`` of a run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from bicliques.pipeline.results.report.content import content_of
from bicliques.pipeline.run.files import PathLike, whole_file
from bicliques.pipeline.run.names import refuse_links
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.values import as_path

if TYPE_CHECKING:
    from bicliques.pipeline.results.report.page import Page


def report(folder: PathLike) -> Path:
    """Write the page of a run, complete or not, into its folder. An older page is replaced.

    Parameters
    ----------
    folder : path
        Folder of the run.

    Returns
    -------
    Path
        ``report.html``, one file that needs no network.

    Raises
    ------
    InputError
        If `folder` is not that of a run, or a folder in it is a link.
    IncompleteError
        If a file of the run is damaged.
    ResourceError
        If the disk is full, or the page cannot be written for another reason.

    Examples
    --------
    >>> import bicliques
    >>> results = bicliques.mine("examples/debian12_package_tag.parquet", "OUT-report", report=False)
    >>> bicliques.report("OUT-report").name
    'report.html'
    """
    run = Run.with_holes(as_path(folder, "the folder of a run"))
    refuse_links(run.path)
    with ThreadPoolExecutor(1) as beside:
        page = beside.submit(_page)
        content = content_of(run)  # most of its time it waits for rows
        text = page.result().html_of(content)
    with whole_file(run.folder.report) as file:
        file.write(text.encode("utf-8", "backslashreplace"))  # because a name of a file may hold bytes that are no text
    run.store.keep(run.folder.report.name)
    return run.folder.report


def _page() -> Page:
    # here, because its libraries are imported beside other work
    from bicliques.pipeline.results.report.page import Page

    return Page()
