"""Finds the folder that a flow run works in: the folder that holds the run it is asked for, or a new one."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from prefect.runtime import flow_run

from bicliques.flows.progress import say
from bicliques.pipeline import __version__
from bicliques.pipeline.api.same_run import digest_by_name, why_another
from bicliques.pipeline.proof.verification import verify_run
from bicliques.pipeline.proof.wholeness import why_not_whole
from bicliques.pipeline.remote.urls import place_of
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import url_of, without_days
from bicliques.pipeline.run.opened import Run, driven
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.store import store_at
from bicliques.pipeline.series.runs import entries_of, is_run, newest_beside
from bicliques.schemas.errors import BicliqueError, IncompleteError, InputError, spoken
from bicliques.schemas.options import RunOptions


def moment_of(day: date | None) -> datetime:
    """The time for which this flow run was scheduled, in UTC, moved to `day` if that is given.

    The scheduled time is taken, because a worker may begin the run, or try it again, only after midnight.
    """
    meant = datetime.fromtimestamp(flow_run.scheduled_start_time.timestamp(), UTC)
    return meant if day is None else meant.replace(year=day.year, month=day.month, day=day.day)


def fill_in(template: str, moment: datetime) -> str:
    """Fill in the placeholders of the template of a path.

    Parameters
    ----------
    template : str
        ``{date}`` becomes the day (2026-01-31) and ``{time}`` the time of day (235959).
    """
    try:
        return template.format(date=f"{moment:%Y-%m-%d}", time=f"{moment:%H%M%S}")
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        raise InputError(
            f"{template!r} has a placeholder other than {{date}} and {{time}}; write other braces twice"
        ) from error


def days_of(first: date | None, last: date, output: str) -> list[date]:
    """The days of a range, both ends with it."""
    if first is None:
        raise InputError(f"last_date ({last}) is the end of a range of days; say with date where it begins")
    if last < first:
        raise InputError(f"the range of days ends on {last} and begins on {first}; exchange date and last_date")
    days = [first + timedelta(days=k) for k in range((last - first).days + 1)]
    if len(days) > 1 and fill_in(output, moment_of(first)) == fill_in(output, moment_of(last)):
        raise InputError(f"{output} is one folder for {len(days)} days; write {{date}} where output has the day")
    if fill_in(output, datetime.min) != fill_in(output, datetime.min + timedelta(hours=1)):
        raise InputError(f"{output} has {{time}}, by which a range that is started again finds no day; leave it out")
    return days


def depends_on_moment(template: str) -> bool:
    """Whether the template has a placeholder."""
    return fill_in(template, datetime.min) != fill_in(template, datetime.max)


def nightly(output: str) -> str:
    """The folder that the template of a path gives, with ``{date}`` in place of every day: the same every night."""
    url = url_of(output)
    return without_days(str(Path(output).absolute()) if url is None else place_of(url))


def folder_for(named: Path, asked: RunOptions, may_be_numbered: bool) -> Path:
    """The folder in which to go on with the run that is asked for, or to begin it.

    Raises `IncompleteError` if the options of the run are damaged, and the folder may not get a number. The error names
    the remedy.

    Parameters
    ----------
    named : Path
        The folder that the template gives.
    asked : RunOptions
        The options of the run. An engine ``engines.AUTO`` agrees with every engine of a run that is there.
    may_be_numbered : bool
        Whether the folder may get a number if it holds another run: ``2026-01-31.2`` for the second run of a day, and
        so on.
    """
    numbered = _numbered(named) if may_be_numbered else {}
    runs = {number: path for number, path in ({1: named} | numbered).items() if is_run(path)}
    if not runs:
        return named
    last = runs[max(runs)]
    reason: str | None
    try:
        RunFolder(last).options()
    except BicliqueError as error:
        if not may_be_numbered:
            raise
        reason = f"the run in {last} cannot be gone on with ({error})"
    else:
        reason = why_another(RunFolder(last), asked, lambda: digest_by_name(asked))
        if reason is None:
            return last
        if not may_be_numbered:
            raise InputError(
                f"{reason}; name another output folder, or finish that run as it is with: {how_to_resume(last)}"
            )
    new = named.with_name(f"{named.name}.{max([1, *numbered]) + 1}")
    say(f"{spoken(reason)}, so a new run begins in {new}")
    return new


def unchanged_in(named: Path, asked: RunOptions, series: str, day: str) -> tuple[Path, int] | None:
    """The newest complete run of a series, if a run of this day would give the same again. The log says why not.

    Parameters
    ----------
    named : Path
        The folder that the new run would have.
    series, day : str
        As the new run would record them.

    Returns
    -------
    (Path, int) or None
        Its folder, and for how many days it is the newest. None for a day before its own: such a night is made up for.
    """
    place = newest_beside(named, without_days(series)) if named.parent.is_dir() else None
    if place is None:
        return None
    try:
        newest = RunFolder(driven(place))
        days = (date.fromisoformat(day) - date.fromisoformat(newest.origin().moment[:10])).days
        if days < 0:
            return None
        reason = _why_not_again(newest, place, asked)
    except (BicliqueError, ValueError) as error:
        reason = str(error)
    if reason is None:
        return newest.path, days
    say(f"this night is mined: {spoken(reason)}")
    return None


def _why_not_again(newest: RunFolder, place: Path, asked: RunOptions) -> str | None:
    """Why a complete run is not what mining now would give, in words. None if it is, bit for bit.

    Raises `InputError` or `IncompleteError` if the source or a file of the run cannot be read, or the run is damaged.
    """
    newest.need("ingest")  # has the digest; `why_another` goes on without it, because there the step is done again
    wish = replace(asked, source=newest.options().source)  # sources of a series may differ in their days
    reason = why_another(newest, wish, lambda: digest_by_name(asked) or "not known")
    if reason is not None:
        return reason
    manifest, where = newest.manifest(), store_at(newest.path).shown()
    if manifest is None or complete_since(newest.path) is None:
        return f"{where} is damaged"
    if manifest.version != __version__:
        return f"version {manifest.version} of this package made {where}, and this is version {__version__}"
    if Run.with_holes(newest.path).job.rows != "none":
        verify_run(place, sample=0, bound_time=0.0)  # sizes alone would not show a changed bit
    return None


def complete_since(path: Path) -> str | None:
    """When the run in a folder was proven, in words. None if it is not complete, or its files have changed.

    Raises `InputError` or `IncompleteError` if the options of the run cannot be read. Damage that going on mends is no
    error.
    """
    run = Run.with_holes(path)
    try:
        manifest = run.folder.manifest()
        if manifest is None or why_not_whole(run, manifest) is not None:
            return None
    except IncompleteError:  # the flow goes on with the run, which mends the damage or raises the error
        return None
    return f"{datetime.fromisoformat(manifest.created).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _numbered(named: Path) -> dict[int, Path]:
    """The paths beside `named` that have its name and a number, by that number, whether they are runs or not."""
    if not named.parent.is_dir():
        return {}
    pattern = re.compile(rf"{re.escape(named.name)}\.([1-9]\d*)")
    found = {path: pattern.fullmatch(path.name) for path in entries_of(named.parent)}
    return {int(match[1]): path for path, match in found.items() if match}
