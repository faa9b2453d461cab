"""Marks that show other programs that a run is complete: ``_SUCCESS`` in its folder, and the link ``latest`` beside it.

Only runs on a schedule make them (`flows.mine.mine`). ``_SUCCESS`` is written after everything else in the folder, and
exists only as long as the manifest. A run has ``_REFUSED`` in its place until its gate lets it pass: ``latest`` does
not lead to it, it is not published, and no run is compared with it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from bicliques.pipeline.run.files import disk_errors, flush
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import REFUSED_FILE, SUCCESS_FILE
from bicliques.pipeline.run.store import store_at
from bicliques.pipeline.series.runs import is_run, newest_complete, runs_in, series_of
from bicliques.schemas.errors import BicliqueError, InputError

LATEST = "latest"


def mark_complete(run: Path) -> bool:
    """Put an empty file ``_SUCCESS`` into the folder of a complete run, unless it is there.

    Returns
    -------
    bool
        Whether it was not there.

    Raises
    ------
    ResourceError
        It cannot be written.
    """
    with disk_errors(run / SUCCESS_FILE):
        try:
            descriptor = os.open(run / SUCCESS_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return False
        os.close(descriptor)
        flush(run)
    return True


def mark_refused(run: Path, refused: bool) -> None:
    """Have an empty file ``_REFUSED`` in the folder of a run, and no ``_SUCCESS``; or with False no ``_REFUSED``.

    Raises
    ------
    ResourceError
        The folder cannot be changed.
    """
    with disk_errors(run / REFUSED_FILE):
        if refused:
            with suppress(FileExistsError):
                (run / REFUSED_FILE).touch(exist_ok=False)  # no link in its place is followed
            (run / SUCCESS_FILE).unlink(missing_ok=True)
        else:
            (run / REFUSED_FILE).unlink(missing_ok=True)
        flush(run)


def withdraw_mark(run: Path) -> None:
    """Remove ``_SUCCESS``, because the run is not complete any more. In a store the manifest goes with it.

    ``_REFUSED`` stays, because the run will have the same bicliques.
    """
    store_at(run).withdraw_result()
    with disk_errors(run / SUCCESS_FILE):
        (run / SUCCESS_FILE).unlink(missing_ok=True)


def point_to_newest(run: Path) -> Path | None:
    """Let the link ``latest`` beside a run lead to the newest complete run of its series, which may be another one.

    Returns
    -------
    Path or None
        The run that it leads to now. None when no run of the series is complete.

    Raises
    ------
    InputError
        ``latest`` is a file, a folder, or a link to anything but a run of this series. It is left alone.
    ResourceError
        The link cannot be made.
    """
    place = run.absolute().parent
    newest = newest_complete(runs_in(place), series_of(RunFolder(run).origin()))
    if newest is None:
        return None
    link = place / LATEST
    led_to = _led_to(link, newest.series)
    if led_to == newest.path.name:
        return newest.path
    new = place / f".{LATEST}.{RunFolder(run).run_id()}.tmp"
    with disk_errors(link):
        if new.is_symlink():  # left by a process that was killed
            new.unlink()
        new.symlink_to(newest.path.name)
        new.replace(link)  # atomic: a reader finds either the old or the new run
        flush(place)
    return newest.path


def _led_to(link: Path, series: str | None) -> str | None:
    """The name of the run that our link leads to. None while there is no such link."""
    if not os.path.lexists(link):
        return None
    if not link.is_symlink():
        raise InputError(f"{link} is no link, so it is left alone and does not lead to the newest run; rename it")
    name = os.readlink(link)  # noqa: PTH115 - as text: a Path would forget a slash at its end
    target = link.parent / name
    is_beside = name not in (".", "..") and "/" not in name
    if not is_beside or (os.path.lexists(target) and not (is_run(target) and _is_of(target, series))):
        raise InputError(f"{link} leads to {name}, which is no run of {series}, so it is left alone; rename it")
    return name


def _is_of(run: Path, series: str | None) -> bool:
    try:
        return series_of(RunFolder(run).origin()) == series
    except BicliqueError:
        return False
