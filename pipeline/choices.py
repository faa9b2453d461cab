"""From the words a user says to validated options."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from pipeline import engines
from pipeline.progress import Progress, Report, reporter
from schemas.errors import InputError
from schemas.options import BuildOptions, IngestOptions, RunOptions
from schemas.work import Search

__all__ = ["AS_BEFORE", "PathLike", "choose_engine", "how_to_read", "run_options"]

logger = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]

#: For resuming: the limit the run was last started with.
AS_BEFORE: Literal["as before"] = "as before"


def how_to_read(options: dict[str, Any]) -> tuple[BuildOptions, IngestOptions]:
    """Keyword arguments as options of building and of reading; an unknown one is an `InputError`."""
    build = {key: options[key] for key in ("root_side", "order") if key in options}
    ingest = {key: value for key, value in options.items() if key not in build}
    unknown = sorted(set(ingest) - {field.name for field in fields(IngestOptions)})
    if unknown:
        raise InputError(f"there is no option {', '.join(unknown)}")
    return BuildOptions(**build), IngestOptions(**ingest)


def run_options(
    source: Any,
    search: Search,
    build: BuildOptions,
    ingest: IngestOptions,
    engine: str,
    ids: Literal["labels", "dense"],
    report: Report | bool | None = None,
    scheduler: str | None = None,
) -> RunOptions:
    """Validated options, the engine chosen; `report` is told why it is not a faster one.

    The engine has to run where the workers are: here, or where those of a `scheduler` are.
    """
    if source is None:
        raise InputError("there is no source; give a path, a table or a graph")
    name = str(Path(source).absolute()) if isinstance(source, (str, os.PathLike)) else f"<{type(source).__name__}>"
    choice = choose_engine(engine, search, scheduler)
    logger.info("engine %s: %s", choice.name, choice.reason)
    if choice.is_fallback:
        reporter(report)(Progress("read", note=f"engine {choice.name}: {choice.reason}"))
    return RunOptions(name, search, build, ingest, choice.name, ids)


def choose_engine(engine: str, search: Search, scheduler: str | None = None) -> engines.Choice:
    """The engine for a search, and why: one that can run here, or where the workers of a `scheduler` are."""
    why_not: Callable[[engines.EngineKind], str | None] = engines.here
    if scheduler is not None:
        from pipeline.workers import ask_workers  # not before it is needed: workers import compilers

        why_not = ask_workers(scheduler)
    return engines.choose(engine, lambda kind: why_not(kind) or kind.lacks(search))
