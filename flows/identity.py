"""Whether a folder holds the run that a flow is asked for, so that the same call starts it and goes on with it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.digests import file_digest
from pipeline.folder import RunFolder, how_to_resume
from schemas.errors import InputError
from schemas.options import RunOptions

__all__ = ["fill_in", "is_run", "refuse_another"]


def fill_in(template: str, started: datetime) -> Path:
    """The folder of a run by its template.

    Parameters
    ----------
    template : str
        ``{date}`` becomes the day (2026-01-31) and ``{time}`` the time of day (235959), both UTC.
    started : datetime
        When the flow run was started first; a retry finds the same folder.
    """
    try:
        return Path(template.format(date=f"{started:%Y-%m-%d}", time=f"{started:%H%M%S}"))
    except (LookupError, ValueError) as error:
        raise InputError(
            f"the output folder {template!r} has a placeholder other than {{date}} and {{time}}; "
            "write other braces twice"
        ) from error


def is_run(path: Path) -> bool:
    """Whether a run was started in this folder."""
    return (path / "options.json").exists()


def refuse_another(folder: RunFolder, asked: RunOptions) -> None:
    """See that the run in `folder` is the one asked for.

    Raises
    ------
    InputError
        If an option differs, or the input has changed since it was read.
    """
    there, wanted = _flat(folder.options().to_json()), _flat(asked.to_json())
    for name, value in wanted.items():
        if there[name] != value:
            raise InputError(
                f"{folder.path} holds a run with {name} {there[name]}, not {value}; name another output folder, or "
                f"finish that run with: {how_to_resume(folder.path)}"
            )
    facts = folder.facts("ingest")
    source = Path(asked.source)
    if facts is not None and source.is_file() and file_digest(source) != facts["digest"]:
        raise InputError(
            f"{source} has changed since {folder.path} read it; name another output folder, or finish that run "
            f"as it is with: {how_to_resume(folder.path)}"
        )


def _flat(options: dict[str, Any]) -> dict[str, Any]:
    """Nested options under their last names, which are all different."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat
