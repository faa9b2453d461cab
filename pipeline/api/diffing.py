"""The call `diff`: what changed between two runs, or two edge lists, or one of each."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from bicliques.kernels import engines
from bicliques.pipeline.api import keywords, steps
from bicliques.pipeline.api.choices import Asked, with_engine
from bicliques.pipeline.api.table import entries_of, with_options
from bicliques.pipeline.compare import diffing
from bicliques.pipeline.compare.difference import RECORD_FILE, Difference, remove_difference
from bicliques.pipeline.compare.two_graphs import TwoGraphs, with_delta, write_changes
from bicliques.pipeline.ingest.from_run import is_run_folder
from bicliques.pipeline.ingest.sources.names import recorded
from bicliques.pipeline.prepare.members import find_members
from bicliques.pipeline.process import startup
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.run.files import PathLike, temporary_folder, write_json
from bicliques.pipeline.run.names import store_url
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.outside import fill_folder
from bicliques.pipeline.run.progress import OnProgress, Progress, pass_on, to_callback
from bicliques.pipeline.workers.opening import begun, check_workers
from bicliques.schemas.difference import ComparedRun, Counted, Record
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.options import IngestOptions, RunLimits
from bicliques.schemas.search import Search
from bicliques.schemas.values import as_path

#: Options that change no result, among those that do.
_OF_ALL = ("folder", "ingest_on")


@with_options("diff")
def diff(
    old: Any,
    new: Any,
    output: PathLike,
    *,
    progress: OnProgress | bool | None = None,
    **given: Unpack[keywords.Diff],
) -> Difference:
    """Find the maximal bicliques that are gone, and those that are new: of two runs, or of two edge lists.

    Two complete runs are compared row by row. If one of `old` and `new` is an edge list, or both are, only the
    bicliques that changed are searched for: docs/what-changed.md says when that is faster.

    Parameters
    ----------
    old, new : path, sequence of paths, or object
        Folders of runs, or edge lists as for `bicliques.mine`. `new` is None with `added` or `removed`. The thresholds
        and the given members of a run hold for both.
    output : path
        Folder for ``gone.parquet``, ``new.parquet``, ``vertices_left.parquet``, ``vertices_right.parquet`` and
        ``diff.json``. It is empty, or does not exist yet.
    {options}
    progress : callable, bool or None
        As for `bicliques.mine`.

    Returns
    -------
    Difference
        Rows are read only when they are asked for.

    Raises
    ------
    InputError
        If the two cannot be compared, an option is wrong, or the folder cannot be used. Nothing is written then.
    IncompleteError
        If a run is not complete, or a file of it is damaged, so that the proof fails. Nothing is left then.
    ResourceError
        If the engine cannot run, workers fail, or the disk or the temporary folder is full. Nothing is left then.

    Notes
    -----
    For two runs see `pipeline.compare.diffing.diff`. Otherwise the temporary folder holds both edge lists and the
    bicliques that have an edge of only one of them. Memory: some 40 bytes per edge of both beside that of the search.

    Examples
    --------
    >>> import bicliques
    >>> yesterday = [("ann", "up"), ("ann", "her"), ("bob", "up"), ("bob", "her")]
    >>> changes = bicliques.diff(yesterday, [*yesterday, ("bob", "jaws")], "OUT-today")
    >>> sorted((left, right) for left, right in changes.new)
    [(['bob'], ['her', 'jaws', 'up'])]
    """
    are_runs = is_run(old), is_run(new)
    if all(are_runs):
        _refuse_options(given, ("result", "thresholds", "reading"), f"{old} and {new} are runs")
        return diffing.diff(old, new, output, progress=progress)
    delta = given.get("added"), given.get("removed")
    if (new is None) == (delta == (None, None)):
        raise InputError(
            f"name either the new edge list, or the edges that come and go with {as_option('added')} and "
            f"{as_option('removed')}"
        )
    place = as_path(output, "the output folder")
    diffing.refuse_place(place)
    sides = Compared(old, are_runs[0]), Compared(new, are_runs[1])
    search = next((side.search(given) for side in sides if side.is_run), None)
    asked = Asked.of(old, given, mode="list", ids="dense")
    with fill_folder(place, remove_difference):
        record = Comparison(sides, delta, asked, search or asked.options.search, to_callback(progress)).into(place)
        write_json(place / RECORD_FILE, record.to_json())
    return Difference(place)


def is_run(source: Any) -> bool:
    """Whether it is the folder of a run, or the address of a store, where only runs are."""
    return isinstance(source, (str, os.PathLike)) and (is_run_folder(source) or store_url(source) is not None)


def _refuse_options(given: Mapping[str, Any], groups: tuple[str, ...], why: str) -> None:
    for entry in entries_of("diff"):
        usual = entry.default_on("diff")
        if entry.told.group in groups and entry.name not in _OF_ALL and given.get(entry.name, usual) != usual:
            raise InputError(f"{why}, whose options hold; leave {as_option(entry.name)} out")


@dataclass(frozen=True)
class Compared:
    """One of the two that are compared: the folder of a run, or an edge list."""

    source: Any
    is_run: bool

    @cached_property
    def run(self) -> Run:
        """The run."""
        run = Run.at(as_path(self.source, "the folder of a run"))
        if run.options.search.largest is not None:
            raise InputError(
                f"{self.source} holds only the largest bicliques, so others may be gone or new, too; compare runs of "
                "`mine`"
            )
        if run.store.url is not None:
            raise InputError(
                f"{self.source} is kept in a store, so only another run can be compared with it; mine the other edge "
                "list first"
            )
        return run

    def search(self, given: Mapping[str, Any]) -> Search:
        """What the run asks for. It holds for both, so that nothing else may be asked for."""
        _refuse_options(given, ("thresholds",), f"{self.source} is a run")
        return self.run.options.search

    @cached_property
    def manifest(self) -> Manifest | None:
        """What tells how many bicliques there are. None for an edge list, and for a run that does not list all."""
        return self.run.folder.manifest() if self.is_run and self.run.job.rows == "slices" else None

    def compared(self, run: Run, name: str) -> ComparedRun:
        """What the record says of it. `run` is the temporary run that has read it."""
        facts, found = run.input, None
        if self.manifest is not None and self.manifest.fingerprint is not None:
            found = Counted(self.manifest.count, self.manifest.fingerprint)
        origin = (self.run if self.is_run else run).origin
        return ComparedRun(name, origin.run, origin.created, facts["source"], facts["digest"], *run.names, found)


class Comparison:
    """The two temporary runs of a comparison of edge lists."""

    def __init__(
        self,
        sides: tuple[Compared, Compared],
        delta: tuple[Any, Any],
        asked: Asked,
        search: Search,
        on_progress: OnProgress,
    ) -> None:
        self._sides, self._delta, self._asked, self._search, self._on_progress = (
            sides,
            delta,
            asked,
            search,
            on_progress,
        )
        every = Search(mode="list", min_left=search.min_left, min_right=search.min_right, marked=True)
        self._notes: list[Progress] = []
        options = replace(asked.options, search=every)
        self._options = with_engine(options, asked.workers.scheduler, self._notes.append)

    def into(self, place: Path) -> Record:
        """Do all steps, and write the rows and vertices. Returns the record."""
        workers, platform = self._asked.workers, engines.kind(self._options.engine).platform
        check_workers(workers, platform)
        startup.over()  # from now on Ctrl-C must not end the process at once, because a folder has to be removed
        with workers.limited(), begun(workers, platform), self.read() as two:
            self.mine(two)
            told = [side.compared(run, name) for side, run, name in zip(self._sides, two.runs, two.where, strict=True)]
            known = [None if side.manifest is None else Summary.read(side.run.folder) for side in self._sides]
            return write_changes(place, two, (told[0], told[1]), (known[0], known[1]))

    @contextmanager
    def read(self) -> Iterator[TwoGraphs]:
        """The edge tables of both, in runs that go after the block."""
        with ExitStack() as stack:
            temporary = stack.enter_context(temporary_folder(self._asked.call.folder))
            pass_on(self._notes, self._on_progress)
            old = self._read(stack, self._sides[0], temporary / "old")
            new, names = self._new(stack, old, temporary)
            two = TwoGraphs((old, new), names, self._search)
            self._find_members(two)
            yield two

    def mine(self, two: TwoGraphs, until: float | None = None) -> bool:
        """Mine the bicliques with an edge that only their own graph has. Returns False if it is not done by `until`."""
        for k, run in enumerate(two.runs):
            if two.mark(k):
                left = None if until is None else max(until - time.monotonic(), 1e-3)
                session = steps.complete_run(run, self._asked.workers, RunLimits(time_limit_s=left), self._on_progress)
                if session is not None and session.ctrl_c:
                    raise KeyboardInterrupt
                if session is not None and session.outcome == "time_limit":
                    return False
        return True

    def _read(self, stack: ExitStack, side: Compared, path: Path) -> Run:
        """A temporary run that has read one of the two."""
        call, ingest = self._asked.call, self._asked.options.ingest
        if side.is_run:
            call, ingest = replace(call, ingest_on="auto"), IngestOptions()
        elif ingest == IngestOptions():  # nothing says how to read it, so it is read as the edge list of the run was
            other = next((each.run for each in self._sides if each.is_run), None)
            ingest = ingest if other is None else replace(other.options.ingest, format=None)
        options = replace(self._options, source=recorded(side.source), ingest=ingest)
        return stack.enter_context(
            steps.started(side.source, path, options, RunLimits(), self._on_progress, call, keep=False)
        )

    def _new(self, stack: ExitStack, old: Run, temporary: Path) -> tuple[Run, tuple[str, str]]:
        """The new one, which may be the old one with edges that come and go, and what a sentence calls both."""
        before = recorded(self._sides[0].source)
        if self._delta == (None, None):
            side = self._sides[1]
            return self._read(stack, side, temporary / "new"), (before, recorded(side.source))
        parts: list[Run | None] = []
        name = before
        for word, source in zip(("added", "removed"), self._delta, strict=True):
            run = None if source is None else self._read(stack, Compared(source, False), temporary / word)
            parts.append(run)
            name += "" if run is None else f", {word}: {recorded(source)}"
        table = with_delta(old, parts[0], parts[1])
        options = replace(self._options, source=name, ingest=IngestOptions())
        made = steps.started(table, temporary / "new", options, RunLimits(), self._on_progress, keep=False)
        return stack.enter_context(made), (before, name)

    def _find_members(self, two: TwoGraphs) -> None:
        """Find the members that every biclique has to contain. One of the two may lack them, but not both."""
        errors = []
        for k, run in enumerate(two.runs):
            try:
                two.given[k] = find_members(run, self._search)
            except InputError as error:
                errors.append(error)
        if len(errors) == len(two.runs):
            raise errors[1]
