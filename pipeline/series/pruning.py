"""Finds and removes the old runs of a folder. Anything that may not be an old run stays.

A run is removed in steps between which the process may be killed. The folder is first renamed to
``.NAME.RUN.removed``, where RUN is the identity in its ``options.json``. That file is removed last. So the rest of an
interrupted removal can be recognised, and no folder of a user is taken for it.
"""

from __future__ import annotations

import logging
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from bicliques.pipeline.run.files import PathLike, flush, read_json
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import KEEP_FILE, OPTIONS_FILE, is_folder, remove_ours, stranger_in, url_of
from bicliques.pipeline.run.progress import number
from bicliques.pipeline.series.runs import FoundRun, entries_of, is_run, newest_complete, runs_in, series_of
from bicliques.schemas.errors import BicliqueError, IncompleteError, InputError, ResourceError
from bicliques.schemas.values import as_path, whole

logger = logging.getLogger(__name__)

Verdict = Literal["keep", "remove"]


@dataclass(frozen=True)
class OldRun:
    """One run below the folder.

    Parameters
    ----------
    verdict : "keep" or "remove"
    reason : str
        One clause.
    series : str or None
        See `pipeline.series.runs.series_of`.
    moment : str
        The key that orders runs of a series: the day that the run stands for, then when it was created (UTC).
    bytes : int
        Size of all its files.
    """

    path: Path
    verdict: Verdict
    reason: str
    series: str | None
    moment: str
    complete: bool
    bytes: int


@dataclass(frozen=True)
class Pruning:
    """The runs that were, or would be, removed.

    Parameters
    ----------
    folder : Path
        Where the runs are.
    runs : tuple of OldRun
        Runs series by series, with the newest first, then runs that an earlier prune left half removed.
    removed : bool
        False for a dry run.
    problems : tuple of str
        One sentence per run that could not be removed.
    """

    folder: Path
    runs: tuple[OldRun, ...]
    removed: bool = False
    problems: tuple[str, ...] = ()

    @property
    def chosen(self) -> list[OldRun]:
        """The runs that are removed."""
        return [run for run in self.runs if run.verdict == "remove"]

    @property
    def bytes(self) -> int:
        """Size of the runs that are removed."""
        return sum(run.bytes for run in self.chosen)

    def to_json(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        runs = [asdict(run) | {"path": str(run.path)} for run in self.runs]
        facts = {"folder": str(self.folder), "removed": self.removed, "bytes": self.bytes}
        return facts | {"problems": list(self.problems), "runs": runs}


def prune(
    folder: PathLike, keep: int = 7, *, keep_created: int = 0, unfinished: bool = False, remove: bool = False
) -> Pruning:
    """Remove old runs from a folder that holds one folder per run.

    Parameters
    ----------
    folder : path
        Only runs directly in it are candidates. Links are not followed.
    keep : int
        Number of complete runs of each series that stay. These are the newest. A series is the runs of one source, or
        of sources that differ only in a day, such as ``in/2026-01-31.csv`` and ``in/2026-02-01.csv``. Runs of an object
        in memory belong to no series, and stay.
    keep_created : int
        Runs that were created within so many days stay, too, whichever day they stand for.
    unfinished : bool
        Whether to remove runs that are not complete, too, if they are older than every complete run of their series
        that stays. A run that a process works on is never removed. Runs that a gate refused are not counted, and go
        without this option, too, once they are so old.
    remove : bool
        With False, nothing is removed, and the result says what would be.

    Returns
    -------
    Pruning
        A run that cannot be removed is in ``problems``. The others are removed anyway.

    Raises
    ------
    InputError
        `folder` is not a folder, is a run itself, `keep` is less than 1, or `keep_created` less than 0.
    ResourceError
        The folder cannot be read.

    Notes
    -----
    Runs are ordered by the day that they stand for, then by when they were created. Both are in ``options.json``; times
    of files do not matter. A run stays if its folder has anything that the run has not made, such as a file ``.keep``
    of yours. Its reason names that.

    Examples
    --------
    >>> import bicliques
    >>> source = "examples/debian12_package_tag.parquet"
    >>> nights = [bicliques.mine(source, f"OUT-nights/{day}", report=False).path.name for day in (1, 2, 3)]
    >>> [old.path.name for old in bicliques.prune("OUT-nights", keep=2).chosen]
    ['1']
    """
    found = survey(folder, keep, unfinished, keep_created)
    return carry_out(found) if remove else found


def prune_after(run: PathLike, keep: int, keep_created: int = 0) -> Pruning:
    """Remove older runs of the series of a run that has just become complete, if that run is the newest.

    Parameters
    ----------
    run : path
        Folder of the run. It stays, as do newer runs and runs of other series.
    keep, keep_created : int
        As for `prune`.

    Returns
    -------
    Pruning
        The runs of its series, and runs that an earlier prune left half removed.
    """
    path = Path(run).absolute()
    origin = RunFolder(path).origin()
    series, newest = series_of(origin), newest_complete(runs_in(path.parent), series_of(origin))
    found = survey(path.parent, keep, keep_created=keep_created)
    spared = None
    if newest is not None and newest.moment > origin.moment:
        spared = f"{newest.path.name} is newer than {path.name}, and only the newest run removes others"
        logger.info("no old run goes: %s", spared)
    runs = []
    for each in found.runs:
        if each.series == series and (spared or each.path.name == path.name):
            each = replace(each, verdict="keep", reason=spared or "it has just become complete")
        if each.series == series or is_half_removed(each.path):
            runs.append(each)
    return carry_out(replace(found, runs=tuple(runs)))


def refuse_short_lived(
    run: Path, series: str, day: str, keep: int, keep_created: int, others: Iterable[str] = ()
) -> None:
    """Refuse to begin a run of an old day that the next night would remove.

    Parameters
    ----------
    run : Path
        The folder that the run is to have.
    series, day : str
        As the run will record them.
    keep, keep_created : int
        As for `prune`.
    others : iterable of str
        Days of which runs are made together with this one.
    """
    keep, keep_created = _checked(keep, keep_created)
    there = runs_in(run.parent) if os.path.isdir(run.parent) else []  # noqa: PTH112 - as in `survey`
    days = [each.moment[:10] for each in there if each.series == series and each.complete and not each.refused]
    newer = sum(each > day for each in (*days, *{*others}.difference(days)))
    age = next((each.age for each in there if each.path.name == run.name), 0.0)  # of a run that goes on
    if not newer or newer + 1 < keep or age < keep_created or os.path.lexists(run / KEEP_FILE):
        return
    those = number(newer, "run of its series is", "runs of its series are")
    raise InputError(
        f"the run of {day} would be removed by the next night, because {those} newer and keep is "
        f"{keep}; say for how many days it is to stay with keep_created, or make the file {run / KEEP_FILE}"
    )


def survey(folder: PathLike, keep: int = 7, unfinished: bool = False, keep_created: int = 0) -> Pruning:
    """Find the runs that `prune` would remove. Nothing is changed."""
    place = as_path(folder, "the folder of the runs")
    if (url := url_of(folder)) is not None:
        from bicliques.pipeline.remote.urls import place_of  # imported only here, because most runs are in folders

        raise InputError(
            f"{place_of(url)} is a URL, and only runs in folders of this machine are looked at; remove those in a "
            "store with its own tools"
        )
    keep, keep_created = _checked(keep, keep_created)
    if not os.path.isdir(place):  # noqa: PTH112 - Path.is_dir raises where looking is not allowed
        raise InputError(f"{place} is not a folder; name the one that holds the folders of the runs")
    if os.path.exists(place / OPTIONS_FILE):  # noqa: PTH110 - so does Path.exists
        raise InputError(f"{place} is a run itself; name the folder above it, {place.absolute().parent}")
    by_series: dict[str | None, list[FoundRun]] = defaultdict(list)
    for run in runs_in(place):
        by_series[run.series].append(run)
    policy = (keep, unfinished, keep_created)
    runs = [old for series in sorted(by_series, key=str) for old in _judge(by_series[series], *policy)]
    reason = "an earlier prune was stopped while it removed this run"
    left = [path for path in entries_of(place) if is_half_removed(path)]
    runs += [OldRun(path, "remove", reason, None, "", False, _bytes(path)) for path in left]
    return Pruning(place, tuple(runs))


def carry_out(found: Pruning) -> Pruning:
    """Remove the runs that a survey chose, after the log says which these are.

    Returns
    -------
    Pruning
        The runs as they are now. A run that a process has begun to work on stays. A run that cannot be removed is in
        ``problems``.
    """
    for run in found.chosen:
        logger.info("%s goes: %s", run.path, run.reason)
    runs, problems = [], []
    for run in found.runs:
        try:
            runs.append(_remove(run) if run.verdict == "remove" else run)
        except BicliqueError as error:
            runs.append(replace(run, verdict="keep", reason="it could not be removed"))
            problems.append(str(error))
    return Pruning(found.folder, tuple(runs), True, tuple(problems))


def _checked(keep: int, keep_created: int) -> tuple[int, int]:
    keep = whole(keep, "the number of runs to keep", 1)
    return keep, whole(keep_created, "the number of days for which runs stay after they were created", 0)


def _judge(found: list[FoundRun], keep: int, unfinished: bool, keep_created: int) -> list[OldRun]:
    """Verdicts on the sorted runs of one series."""
    moments = [run.moment for run in found if run.complete and not run.refused]
    oldest = moments[:keep][-1] if moments else ""
    runs, rank = [], 0
    for run in found:
        rank += run.complete and not run.refused
        verdict: Verdict = "keep"
        reason = f"complete, number {rank} from the newest" if run.complete else "not complete"
        if run.in_use:
            reason = run.in_use
        elif run.series is None:
            reason = "nobody knows which runs it follows: its input was an object in memory, or its version did not say"
        elif run.refused:
            verdict, reason = "remove" if run.moment < oldest else "keep", "complete, but a gate refused it"
        elif run.complete and rank > keep:
            verdict = "remove"
        elif unfinished and not run.complete and run.moment < oldest:
            verdict, reason = "remove", "not complete, and older than the complete runs that stay"
        if verdict == "remove" and (objection := _objection(run, keep_created)):
            verdict, reason = "keep", objection
        runs.append(OldRun(run.path, verdict, reason, run.series, run.moment, run.complete, _bytes(run.path)))
    return runs


def _objection(run: FoundRun, keep_created: int) -> str:
    """Why a run is not to be removed as it is. Empty if it is."""
    path = run.path
    if os.path.lexists(path / KEEP_FILE):
        return f"somebody has put a file {KEEP_FILE} into it"
    if run.age < keep_created:
        return f"created within the last {keep_created} days"
    try:
        refuse_strangers(path)
    except InputError as error:
        return str(error)
    except OSError as error:
        return f"{error.filename or path} cannot be looked at ({error.strerror})"
    return ""


def _remove(run: OldRun) -> OldRun:
    """Remove a run. Returns the run as it is then."""
    if is_half_removed(run.path):
        finish_removal(run.path)
        logger.info("removed %s", run.path)
        return run
    before = (run.complete, run.moment)
    try:
        if not remove_run(run.path, lambda now: (now.manifest() is not None, now.origin().moment) == before):
            return replace(run, verdict="keep", reason="somebody has just worked on it")
    except InputError as error:
        return replace(run, verdict="keep", reason=str(error))
    logger.info("removed %s", run.path)
    return run


def _bytes(path: Path) -> int:
    """Size of all files below a folder. A process may work there meanwhile."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 - faster for many files
    return total


_HALF_REMOVED = re.compile(r"\..+\.(?P<run>[0-9a-f]{32})\.removed", re.DOTALL)


def remove_run(path: Path, is_as_before: Callable[[RunFolder], bool]) -> bool:
    """Remove a run, unless its folder has anything that the run has not made.

    Raises `InputError`: a process works on the run, or its folder has something that the run has not made, as a link in
    the place of a folder. Raises `IncompleteError`: it cannot be found out whether the run is as before. Raises
    `ResourceError`: a file cannot be removed.

    Parameters
    ----------
    is_as_before : callable
        It is called when no process can begin to work on the run any more. If it returns False, the run stays.

    Returns
    -------
    bool
        Whether the run does not exist any more.
    """
    try:
        away = set_aside(path, is_as_before)
    except ResourceError:
        if is_folder(path):
            raise
        return True  # another prune was faster
    if away is None:
        return False
    finish_removal(away)
    return True


def set_aside(path: Path, is_as_before: Callable[[RunFolder], bool] = lambda _: True) -> Path | None:
    """Do the first step of `remove_run`, with its errors. Returns the new path, or None if the run stays."""
    folder = RunFolder(path)
    with _removing(path), folder.store.locked():
        if not is_as_before(folder):
            return None
        refuse_strangers(path)
        away = path.with_name(f".{path.name}.{folder.run_id()}.removed")
        path.rename(away)
    return away


def put_back(away: Path, path: Path) -> None:
    """Undo `set_aside`, unless something else is in `path` now.

    Raises `ResourceError`: it cannot be done.
    """
    with _removing(away):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        if not path.exists():
            away.rename(path)


def refuse_strangers(path: Path) -> None:
    """Refuse to remove a run whose folder has something that the run has not made."""
    stranger = stranger_in(path)
    if stranger is not None:
        kind = "a link" if stranger.is_symlink() else "not of the run"
        raise InputError(f"{stranger} is {kind}, so the run stays; move it away")


def is_half_removed(path: Path) -> bool:
    """Whether a folder is a run that `remove_run` began to remove. If it is empty, only the last step is missing."""
    name = _HALF_REMOVED.fullmatch(path.name)
    if name is None or not is_folder(path):
        return False
    try:
        if not is_run(path):
            return not any(path.iterdir())
        return bool(read_json(path / OPTIONS_FILE)["origin"]["run"] == name["run"])
    except (IncompleteError, LookupError, TypeError, OSError):
        return False


def finish_removal(away: Path) -> None:
    """Remove the rest of a half-removed run.

    Raises `InputError`: it has something that the run has not made. Raises `ResourceError`: a file cannot be removed.
    """
    with _removing(away), suppress(FileNotFoundError):  # another prune may be faster
        remove_ours(away, keep=(OPTIONS_FILE,))
        refuse_strangers(away)  # later nothing would show that they were in a run
        flush(away)  # otherwise a power loss might remove the last file before the others
        (away / OPTIONS_FILE).unlink(missing_ok=True)
        away.rmdir()


@contextmanager
def _removing(path: Path) -> Iterator[None]:
    """Turn an error of the file system into one sentence."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        raise ResourceError(f"{where} cannot be removed ({error.strerror}); see that it may be") from error
