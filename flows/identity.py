"""Which folder a flow run works in: the one that holds the run it is asked for, or a new one."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from prefect.logging import get_run_logger
from prefect.runtime import flow_run

from kernels import engines
from pipeline.ingest.readers.digests import file_digest
from pipeline.proof.wholeness import why_not_whole
from pipeline.run.folder import RunFolder, how_to_resume
from pipeline.run.opened import Run
from pipeline.series.runs import entries_of, is_run
from schemas.errors import BicliqueError, IncompleteError, InputError
from schemas.options import RunOptions

__all__ = ["complete_since", "depends_on_moment", "fill_in", "folder_for", "moment_of"]


def moment_of(day: date | None) -> datetime:
    """When this flow run was meant to start, in UTC, on that day if there is one.

    A schedule means the night even if the worker comes to it after midnight, and so does a retry.
    """
    meant = datetime.fromtimestamp(flow_run.scheduled_start_time.timestamp(), UTC)
    return meant if day is None else meant.replace(year=day.year, month=day.month, day=day.day)


def fill_in(template: str, moment: datetime) -> str:
    """A path by its template.

    Parameters
    ----------
    template : str
        ``{date}`` becomes the day (2026-01-31) and ``{time}`` the time of day (235959).
    moment : datetime
    """
    try:
        return template.format(date=f"{moment:%Y-%m-%d}", time=f"{moment:%H%M%S}")
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        raise InputError(
            f"{template!r} has a placeholder other than {{date}} and {{time}}; write other braces twice"
        ) from error


def depends_on_moment(template: str) -> bool:
    """Whether the text has a placeholder."""
    return fill_in(template, datetime.min) != fill_in(template, datetime.max)


def folder_for(named: Path, asked: RunOptions, may_be_numbered: bool) -> Path:
    """Where to go on with the run that is asked for, or to begin it.

    Parameters
    ----------
    named : Path
        The folder by its template.
    asked : RunOptions
        Its engine may be ``engines.AUTO``, which is whatever a run there has.
    may_be_numbered : bool
        Whether a folder that holds another run makes way: ``2026-01-31.2`` for the second run of a day, and so on.

    Raises
    ------
    InputError
        If the folder holds another run, and there is to be no other folder.
    """
    numbered = _numbered(named) if may_be_numbered else {}
    runs = {number: path for number, path in ({1: named} | numbered).items() if is_run(path)}
    if not runs:
        return named
    last = runs[max(runs)]
    reason = _why_another(RunFolder(last), asked)
    if reason is None:
        return last
    if not may_be_numbered:
        raise InputError(
            f"{reason}; name another output folder, or finish that run as it is with: {how_to_resume(last)}"
        )
    new = named.with_name(f"{named.name}.{max([1, *numbered]) + 1}")
    get_run_logger().info("%s, so a new run begins in %s", reason, new)
    return new


def complete_since(path: Path) -> str | None:
    """When the run in a folder was proven, in words; None if it is not complete, or its files are not as they were."""
    run = Run.at(path)
    try:
        manifest = run.folder.manifest()
        if manifest is None or why_not_whole(run, manifest) is not None:
            return None
    except IncompleteError:  # which resuming mends, or says
        return None
    return f"{datetime.fromisoformat(manifest.created).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _numbered(named: Path) -> dict[int, Path]:
    """What is called like `named` with a number, whether a run or not."""
    if not named.parent.is_dir():
        return {}
    pattern = re.compile(rf"{re.escape(named.name)}\.([1-9]\d*)")
    found = {path: pattern.fullmatch(path.name) for path in entries_of(named.parent)}
    return {int(match[1]): path for path, match in found.items() if match}


def _why_another(folder: RunFolder, asked: RunOptions) -> str | None:
    """In one clause why the run in `folder` is not the one asked for; None when it is."""
    try:
        there, facts = _flat(folder.options().to_json()), folder.facts("ingest")
    except BicliqueError as error:
        return f"the run in {folder.path} cannot be gone on with ({error})"
    for name, value in _flat(asked.to_json()).items():
        if there[name] != value and (name, value) != ("engine", engines.AUTO):
            return f"{folder.path} holds a run with {name} {there[name]}, not {value}"
    source = Path(asked.source)
    if facts is None or not source.is_file():
        return None
    try:
        digest = file_digest(source)
    except OSError as error:
        raise InputError(f"{source} cannot be read ({error.strerror}); ask its owner") from error
    return None if digest == facts["digest"] else f"{source} has changed since {folder.path} read it"


def _flat(options: dict[str, Any]) -> dict[str, Any]:
    """Nested options under their last names, which are all different."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat
