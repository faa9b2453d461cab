"""The runs in a folder, which of them follow one another, as one per night, and the marks of complete ones.

Marks show other programs that a run is complete: ``_SUCCESS`` in its folder, and the link ``latest`` beside it. Only
runs on a schedule make them (`flows.mine.mine`). ``_SUCCESS`` is written after everything else in the folder, and
exists only as long as the manifest. A run has ``_REFUSED`` in its place until its gate lets it pass: ``latest`` does
not lead to it, it is not published, and no run is compared with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bicliques.pipeline.run.files import disk_errors, flush, temporary_folder
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import OPTIONS_FILE, REFUSED_FILE, SUCCESS_FILE, is_file, is_folder, without_days
from bicliques.pipeline.run.opened import here
from bicliques.pipeline.run.store import store_at
from bicliques.schemas.errors import BicliqueError, IncompleteError, InputError, ResourceError
from bicliques.schemas.options import RunOrigin


@dataclass(frozen=True)
class FoundRun:
    """One run of a folder.

    Parameters
    ----------
    in_use : str
        Why it must not be changed, in one clause. Empty if it may be.
    series : str or None
        See `series_of`.
    moment : str
        See `schemas.options.RunOrigin`. Empty when the run does not say.
    refused : bool
        Whether it is complete, and no gate has let it pass. Such a run is neither published nor linked, no other one
        is compared with it, and `keep` does not count it.
    """

    path: Path
    complete: bool
    in_use: str
    series: str | None
    moment: str
    refused: bool = False

    @property
    def age(self) -> float:
        """Days since its folder was made; 0 if that is not known."""
        with suppress(ValueError, TypeError):  # written by hand, or without a time zone
            since = datetime.now(UTC) - datetime.fromisoformat(self.moment.partition(" ")[2])
            return max(0.0, since / timedelta(days=1))
        return 0.0


def runs_in(place: Path) -> list[FoundRun]:
    """The runs directly in a folder, with the newest first. Links and hidden folders are left out.

    Raises `ResourceError`: the folder cannot be read.
    """
    paths = [path for path in entries_of(place) if not path.name.startswith(".") and is_run(path)]
    return sorted(map(_look, paths), key=lambda run: (run.moment, run.path.name), reverse=True)


def series_of(origin: RunOrigin) -> str | None:
    """The name that a run shares with those before and after it. None when that is not known.

    ``in/2026-01-31.csv`` and ``in/2026-02-01.csv`` are of the series ``in/{date}.csv``, however the day was filled in.
    """
    return None if origin.series is None else without_days(origin.series)


def newest_complete(runs: list[FoundRun], series: str | None) -> FoundRun | None:
    """The first of `runs` that is complete, of this series, and not refused."""
    return next((run for run in runs if run.series == series and run.complete and not run.refused), None)


def newest_beside(run: Path, series: str) -> Path | None:
    """Where the newest complete run of a series is beside a path, in which there may be no run. It may be refused.

    Raises `ResourceError` if the store does not answer.
    """
    return next((place for place, _ in _complete(run.absolute(), series, lambda _: True)), None)


def run_before(run: Path) -> RunFolder | None:
    """The newest complete run that is older than this one, beside it, of its series, and with the same question.

    Runs that were refused, and those that cannot be read, are passed over. None if there is none. Beside a run that is
    kept in a store are those that a listing has; the folder of one is that of this process for reading it. Raises
    `ResourceError` if the store does not answer.
    """
    return next(_alike(run, newer=False), None)


def run_after(run: Path) -> RunFolder | None:
    """The newest complete run of all that are newer than this one; otherwise as `run_before`."""
    return next(_alike(run, newer=True), None)


def _alike(run: Path, newer: bool) -> Iterator[RunFolder]:
    """Complete runs beside this one that are newer, or older, of its series and with its question, the newest first."""
    own = RunFolder(run.absolute())
    origin, search = own.origin(), own.options().search

    def is_meant(header: RunFolder) -> bool:
        other = header.origin()
        is_on_that_side = other.moment > origin.moment if newer else other.moment < origin.moment
        return is_on_that_side and header.options().search == search and not _is_refused(header.path)

    if (series := series_of(origin)) is not None:
        yield from (found for _, found in _complete(own.path, series, is_meant))


def _complete(run: Path, series: str, is_meant: Callable[[RunFolder], bool]) -> Iterator[tuple[Path, RunFolder]]:
    """Complete runs of a series beside a path, with where they are, the newest first."""
    others = []
    with _beside(run) as there:
        for place, header in there.items():
            with suppress(BicliqueError):
                origin = header.origin()
                if series_of(origin) == series and is_meant(header):
                    others.append((origin.moment, place))
    for _, place in sorted(others, reverse=True):
        with suppress(InputError, IncompleteError):
            found = RunFolder(here(place))
            if found.manifest() is not None:
                yield place, found


@contextmanager
def _beside(run: Path) -> Iterator[dict[Path, RunFolder]]:
    """The runs beside one, by where they are, with a folder each that has their options during the block."""
    url = store_at(run).url
    if url is None:
        paths = [path for path in entries_of(run.parent) if not path.name.startswith(".") and path != run]
        yield {path: RunFolder(path) for path in filter(is_run, paths)}
        return
    from bicliques.pipeline.remote.objects import beside  # imported only here, because most runs are kept in folders

    with temporary_folder() as copies:
        found = {}
        for number, (address, options) in enumerate(beside(url, OPTIONS_FILE).items()):
            copy = copies / str(number)
            with disk_errors(copy):
                copy.mkdir()
                (copy / OPTIONS_FILE).write_bytes(options)
            found[Path(address)] = RunFolder(copy)
        yield found


def entries_of(place: Path) -> list[Path]:
    """Everything directly in a folder, by name."""
    try:
        return sorted(place.iterdir())
    except OSError as error:
        raise ResourceError(f"{place} cannot be read ({error.strerror}); ask its owner") from error


def _is_refused(run: Path) -> bool:
    """Whether `pipeline.series.runs.mark_refused` has marked a run. None in a store is marked."""
    return os.path.lexists(run / REFUSED_FILE)


def is_run(path: Path) -> bool:
    """Whether a path is the folder of a run, and not a link to one."""
    return is_folder(path) and is_file(path / OPTIONS_FILE)


def _look(path: Path) -> FoundRun:
    folder = RunFolder(path)
    try:
        origin, complete = folder.origin(), folder.manifest() is not None
        at_work = folder.store.holder()
    except BicliqueError as error:
        return FoundRun(path, False, f"left alone: {error}", None, "")
    in_use = f"running: {at_work.words}" if at_work is not None and at_work.alive else ""
    return FoundRun(path, complete, in_use, series_of(origin), origin.moment, complete and _is_refused(path))


LATEST = "latest"


def mark_complete(run: Path) -> bool:
    """Put an empty file ``_SUCCESS`` into the folder of a complete run, unless it is there.

    Raises `ResourceError`: it cannot be written.

    Returns
    -------
    bool
        Whether it was not there.
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

    Raises `ResourceError`: the folder cannot be changed.
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

    Raises `InputError`: ``latest`` is a file, a folder, or a link to anything but a run of this series. It is left
    alone. Raises `ResourceError`: the link cannot be made.

    Returns
    -------
    Path or None
        The run that it leads to now. None when no run of the series is complete.
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
