"""Turns what a user asks for into validated options, reads members from files, and chooses the engine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bicliques.kernels import engines
from bicliques.pipeline.api.table import record
from bicliques.pipeline.ingest.sources.names import recorded
from bicliques.pipeline.run.progress import OnProgress, Progress, to_callback
from bicliques.pipeline.workers.options import Scheduler, WorkerOptions
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.leaves import CLIQUES
from bicliques.schemas.options import BuildOptions, CallOptions, IngestOptions, LabelFiles, RunLimits, RunOptions
from bicliques.schemas.platform import EngineKind
from bicliques.schemas.regular_files import read_regular
from bicliques.schemas.search import Mode, Search, as_labels
from bicliques.schemas.values import as_path

logger = logging.getLogger(__name__)

#: Options that say where something is done.
_ON = ("ingest_on", "write_on")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a user asks for, as validated options.

    Parameters
    ----------
    options : RunOptions
        Its engine may be ``engines.AUTO``; see `with_engine`.
    """

    options: RunOptions
    limits: RunLimits
    workers: WorkerOptions
    call: CallOptions

    @classmethod
    def of(cls, source: Any, given: Mapping[str, Any], mode: Mode, **fixed: Any) -> Asked:
        """Make and validate the options of a call.

        Parameters
        ----------
        source : path or object
            The input; see `bicliques.mine`.
        given : mapping
            Values by the names of `pipeline.api.table.TABLE`. Options that it lacks have their default. Other names in
            it are ignored.
        mode : Mode
            What the search gives. Each call derives it from parameters of its own.
        **fixed
            Options that the call does not let the user choose.
        """
        if source is None:
            raise InputError("there is no source; give a path, a table or a graph")
        given = {**given, **fixed}
        given |= labels_asked(given)
        if given.get("top") is not None and given.get("max_results") is not None:
            raise InputError(
                f"the largest are known once the search is over: leave {as_option('max_results')} or "
                f"{as_option('top')} out"
            )
        if given.get("per_vertex") and given.get("write_on") == "gpu":
            raise InputError(
                f"{as_option('per_vertex')} looks at the bicliques in main memory, so the GPU cannot write them: "
                "leave one out"
            )
        options = record(
            RunOptions,
            given,
            source=recorded(source),
            search=record(Search, given, mode=mode),
            build=record(BuildOptions, given),
            ingest=record(IngestOptions, given | ({"undirected": True} if given.get("pq") == CLIQUES else {})),
        )
        if options.search.near is not None and given.get("write_on") == "gpu":
            raise InputError(
                f"the GPU cannot write how many pairs are missing: leave {as_option('write_on', 'gpu')} out"
            )
        if options.ingest.undirected and (on := [name for name in _ON if given.get(name) == "gpu"]):
            raise InputError(f"a GPU does not know of one kind of vertices: leave {as_option(on[0], 'gpu')} out")
        return cls(
            options=options,
            limits=record(RunLimits, given),
            workers=record(WorkerOptions, given),
            call=record(CallOptions, given),
        )


def with_engine(
    options: RunOptions, scheduler: Scheduler | None = None, progress: OnProgress | bool | None = None
) -> RunOptions:
    """The options with the chosen engine in place of ``engines.AUTO``.

    The engine has to run where the workers are: on this machine, or where the workers of a `scheduler` are. If a faster
    engine cannot run although there is a GPU, `progress` gets a note that says why. Raises `ResourceError` if the
    engine that the options name cannot run there.
    """
    choice = choose_engine(options.engine, options.search, scheduler)
    logger.info("engine %s: %s", choice.name, choice.reason)
    if choice.is_fallback and (scheduler is not None or has_gpu()):
        to_callback(progress)(Progress("ingest", note=f"engine {choice.name}: {choice.reason}"))
    return replace(options, engine=choice.name)


def has_gpu() -> bool:
    """Whether this machine shows a GPU of NVIDIA. Who has none is not told that it cannot be used."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()


def choose_engine(engine: str, search: Search, scheduler: Scheduler | None = None) -> engines.Choice:
    """The engine for a search, and why. It can run on this machine, or where the workers of a `scheduler` are."""
    if search.near is not None and engine != engines.AUTO and engines.kind(engine).lacks(search):
        raise InputError(f"engine {engine} does not know of missing pairs; choose cpu or auto")
    why_not: Callable[[EngineKind], str | None] = engines.here
    if scheduler is not None:
        # only where needed, because workers import compilers
        from bicliques.pipeline.workers.opening import ask_workers

        why_not = ask_workers(scheduler)
    return engines.choose(engine, lambda kind: why_not(kind) or kind.lacks(search))


def labels_asked(given: Mapping[str, Any]) -> dict[str, Any]:
    """The labels of both sides that a call names itself and in files, by the names of the fields of `Search`.

    Raises `InputError` if something is no label, or a file cannot be read or holds none.

    Parameters
    ----------
    given : mapping
        Values by the names of `pipeline.api.table.TABLE`.
    """
    files = record(LabelFiles, given)
    found = {}
    for name, file in (
        ("containing_left", files.containing_left_from),
        ("containing_right", files.containing_right_from),
    ):
        option, from_file = as_option(name), as_option(f"{name}_from")
        found[name] = as_labels(option, given.get(name, ()))
        if file is not None:
            found[name] = as_labels(option, (*found[name], *_lines(as_path(file, from_file), from_file)))
    return found


def _lines(file: Path, option: str) -> list[str]:
    """The lines of a file without the ends of lines. Empty lines are left out, because no label is empty."""
    try:
        text = read_regular(file).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); correct {option}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"line {line} of {file} is not UTF-8; convert the file, or correct {option}") from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    labels = [line for line in lines if line]
    if not labels:
        raise InputError(f"{file} holds no label; correct {option}")
    return labels
