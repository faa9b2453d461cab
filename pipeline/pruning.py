"""Old runs: which of a folder's runs can go, and their removal. Whatever is not surely an old run stays."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pipeline.choices import PathLike
from pipeline.files import disk_errors
from pipeline.folder import RunFolder
from pipeline.lock import holder, locked
from schemas.errors import BicliqueError, InputError

__all__ = ["OldRun", "Pruning", "prune"]

Verdict = Literal["keep", "remove"]


@dataclass(frozen=True)
class OldRun:
    """One run below the folder.

    Parameters
    ----------
    path : Path
    verdict : "keep" or "remove"
    reason : str
        One clause.
    when : float
        When it was completed, or last worked on, in seconds since 1970 (UTC).
    bytes : int
        Of all its files.
    """

    path: Path
    verdict: Verdict
    reason: str
    when: float
    bytes: int


@dataclass(frozen=True)
class Pruning:
    """What was, or would be, removed.

    Parameters
    ----------
    folder : Path
    runs : tuple of OldRun
        The newest first.
    removed : bool
        False for a dry run.
    """

    folder: Path
    runs: tuple[OldRun, ...]
    removed: bool

    @property
    def bytes(self) -> int:
        """Of the runs to be removed."""
        return sum(run.bytes for run in self.runs if run.verdict == "remove")

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        runs = [asdict(run) | {"path": str(run.path)} for run in self.runs]
        return {"folder": str(self.folder), "removed": self.removed, "bytes": self.bytes, "runs": runs}


def prune(folder: PathLike, keep: int = 7, *, unfinished: bool = False, remove: bool = False) -> Pruning:
    """Remove old runs from a folder that holds one folder a run.

    Parameters
    ----------
    folder : path
        Only what lies directly in it and is a run is looked at; links are not followed.
    keep : int
        So many complete runs stay, the newest.
    unfinished : bool
        Also remove runs that are not complete, if they are older than every complete run that stays.
        A run that somebody works on is never removed.
    remove : bool
        False only says what would be removed.

    Raises
    ------
    InputError
        If `folder` is not a folder, is a run itself, or `keep` is less than 1.
    ResourceError
        If a file cannot be removed.

    Notes
    -----
    A run to be removed is first renamed to ``.NAME.removed``; what a killed `prune` left under such a name goes
    the next time.
    """
    place = Path(folder)
    if keep < 1:
        raise InputError(f"the number of runs to keep must be at least 1, not {keep}")
    if not place.is_dir():
        raise InputError(f"{place} is not a folder; name the one that holds the folders of the runs")
    if (place / "options.json").exists():
        raise InputError(f"{place} is a run itself; name the folder above it, {place.absolute().parent}")
    runs = _judge(_runs(place), keep, unfinished)
    if remove:
        for rest in place.glob(".*.removed"):
            _delete(rest)
        runs = [_remove(run) if run.verdict == "remove" else run for run in runs]
    return Pruning(place, tuple(runs), remove)


def _runs(place: Path) -> list[Path]:
    folders = [path for path in place.iterdir() if path.is_dir() and not path.is_symlink()]
    return [path for path in folders if not path.name.startswith(".") and (path / "options.json").is_file()]


def _judge(paths: list[Path], keep: int, unfinished: bool) -> list[OldRun]:
    found = sorted(((_when(path), path, _state(path)) for path in paths), reverse=True)
    complete = [when for when, _, state in found if state == "complete"]
    oldest = complete[:keep][-1] if complete else float("-inf")
    runs, rank = [], 0
    for when, path, state in found:
        verdict: Verdict = "keep"
        reason = state
        if state == "complete":
            rank += 1
            verdict, reason = ("remove" if rank > keep else "keep"), f"complete, number {rank} from the newest"
        elif state == "not complete" and unfinished and when < oldest:
            verdict, reason = "remove", "not complete, and older than the complete runs that stay"
        runs.append(OldRun(path, verdict, reason, when, _bytes(path)))
    return runs


def _when(path: Path) -> float:
    marks = [path / name for name in ("manifest.json", "ledger", "steps", "options.json")]
    return next(mark.stat().st_mtime for mark in marks if mark.exists())


def _state(path: Path) -> str:
    """Complete, not complete, or why it is not to be touched."""
    folder = RunFolder(path)
    try:
        folder.options()
        at_work = holder(folder.lock_file)
        if at_work is not None and at_work.alive:
            return f"running: {at_work.words}"
        return "complete" if folder.manifest() is not None else "not complete"
    except BicliqueError as error:
        return f"left alone: {error}"


def _bytes(path: Path) -> int:
    return sum(file.lstat().st_size for file in path.rglob("*") if file.is_file())


def _remove(run: OldRun) -> OldRun:
    """Under the lock of the run, so that nobody begins to work on it meanwhile; the run as it then is."""
    folder = RunFolder(run.path)
    try:
        with locked(folder.lock_file), disk_errors(run.path):
            if _when(run.path) != run.when:
                return replace(run, verdict="keep", reason="somebody has just worked on it")
            away = run.path.rename(run.path.with_name(f".{run.path.name}.removed"))
    except InputError as error:
        return replace(run, verdict="keep", reason=str(error))
    _delete(away)
    return run


def _delete(path: Path) -> None:
    with disk_errors(path):
        shutil.rmtree(path)
