"""The runs in a folder, and which of them follow one another, as one per night."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bicliques.pipeline.run.address import here
from bicliques.pipeline.run.files import disk_errors, temporary_folder
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import OPTIONS_FILE, REFUSED_FILE, is_file, is_folder, without_days
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

    Raises
    ------
    ResourceError
        The folder cannot be read.
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

    Raises
    ------
    ResourceError
        If the store does not answer.
    """
    return next((place for place, _ in _complete(run.absolute(), series, lambda _: True)), None)


def run_before(run: Path) -> RunFolder | None:
    """The newest complete run that is older than this one, beside it, of its series, and with the same question.

    Runs that were refused, and those that cannot be read, are passed over. None if there is none. Beside a run that is
    kept in a store are those that a listing has; the folder of one is that of this process for reading it.

    Raises
    ------
    ResourceError
        If the store does not answer.
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
    """Whether `pipeline.series.marks.mark_refused` has marked a run. None in a store is marked."""
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
