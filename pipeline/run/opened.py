"""`Run`, the one object through which the steps read what a run has, and the folder of a run by its path or URL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.labels import Tables, hashes_of, open_labels
from bicliques.pipeline.run.ledger import Ledger
from bicliques.pipeline.run.names import store_url
from bicliques.pipeline.run.plan import Plan
from bicliques.pipeline.run.session import sessions
from bicliques.pipeline.run.store import Store, places_here, real, store_at
from bicliques.pipeline.run.tables import check_ids
from bicliques.schemas.bands import Band
from bicliques.schemas.bicliques import Provenance
from bicliques.schemas.errors import IncompleteError, InputError, as_option
from bicliques.schemas.facts import GraphFacts, InputFacts, MiningSession, Outcome, PlanFacts, side_names
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.hashes import VertexHashes
from bicliques.schemas.jobs import Job, job_of
from bicliques.schemas.options import RunOptions, RunOrigin
from bicliques.schemas.search import Search


def here(path: Path) -> Path:
    """A path, or the folder of this process for reading the run at a URL of a bucket, as the bucket has the run now.

    Raises `InputError`, `IncompleteError` or `ResourceError`: see `pipeline.run.bucket.reader_folder`.
    """
    url = store_url(path)
    if url is None:
        return _no_place(path)
    from bicliques.pipeline.run.bucket import reader_folder  # imported only here, because most runs are in folders

    return reader_folder(url)


def driven(path: Path, anew: bool = False) -> Path:
    """A path, or the folder of this process for mining the run at a URL of a bucket, or with `anew` another one there.

    Raises `InputError`, `IncompleteError` or `ResourceError`: see `pipeline.run.bucket.driver_folder`.
    """
    url = store_url(path)
    if url is None:
        return _no_place(path)
    from bicliques.pipeline.run.bucket import driver_folder  # imported only here, because most runs are in folders

    return driver_folder(url, anew)


def _no_place(path: Path) -> Path:
    """Refuse the working folder of a run that no URL has named: as a folder it would go on apart from its bucket."""
    if store_at(path).url is None and Path(real(places_here())) in Path(real(path)).parents:
        raise InputError(f"{path} is a copy of a run that is kept in a store; name the address of the run")
    return path


class Run:
    """What a run has: options, facts of its steps, graph, labels, plan, ledger and sessions.

    Raises `InputError` if the folder is not that of a run. Raises `IncompleteError` if what is asked for is not there
    yet, or damaged. Resuming the run mends it.

    Notes
    -----
    What a run writes only once is read when it is first asked for, and kept: options, facts of steps, plan, graph,
    labels. What changes while a run goes on is read by a method at each call: its ledger, its sessions. Code that
    finishes a step calls `finish`, which forgets what was read before the step was done.
    """

    def __init__(self, folder: RunFolder):
        self.folder = folder
        self.options: RunOptions = folder.options()
        self._facts: dict[str, dict[str, Any]] = {}
        self._made: set[str] = set()
        self._hashes: VertexHashes | None = None
        self._hashing = Lock()
        self._edges: Any = None
        self._marks: Any = None

    @classmethod
    def at(cls, path: Path) -> Run:
        """The run in the folder `path`, or that at a URL of a store, as it is there now, to read it.

        Raises `InputError`: pairs of its rows may be no edges, or it has each pair of sides once. Who knows of these
        calls `with_holes`.
        """
        return cls.with_holes(path).exact()

    @classmethod
    def with_holes(cls, path: Path) -> Run:
        """As `at`, for what is right for rows with missing pairs, too (docs/holes.md)."""
        return cls(RunFolder(here(path)))

    @classmethod
    def to_go_on(cls, path: Path) -> Run:
        """The same, to go on with it."""
        return cls(RunFolder(driven(path)))

    def exact(self, why: str = "this does not know of missing pairs yet") -> Run:
        """The run itself, for what takes every pair of a row for an edge; `why` says what for."""
        self.refuse_one_kind()
        if self.options.search.near is None:
            return self
        raise InputError(
            f"{self.store.shown()} holds near-bicliques, of which a few pairs are no edges, and {why}; mine without "
            f"{as_option('missing_pairs')} and {as_option('missing_each')} for it"
        )

    def refuse_one_kind(self) -> None:
        """Refuse a graph of one kind of vertices, for what needs both directions of a biclique."""
        if self.options.search.mirrored is not None:
            raise InputError(
                f"{self.store.shown()} holds bicliques of one kind of vertices, each in one direction, and this does "
                f"not know of them yet; mine without {as_option('undirected')} for it"
            )

    @property
    def store(self) -> Store:
        """Where the run is kept."""
        return self.folder.store

    @property
    def path(self) -> Path:
        """Path of the folder."""
        return self.folder.path

    @property
    def place(self) -> str:
        """Where workers find the run: its folder, or the URL that it is kept at."""
        return self.store.url or str(self.path.resolve())

    @cached_property
    def job(self) -> Job:
        """What the run asks of the graph; see `schemas.jobs`."""
        return job_of(self.options.search)

    @cached_property
    def origin(self) -> RunOrigin:
        """Which run this is among those that follow one another."""
        return self.folder.origin()

    @property
    def identity(self) -> str:
        """The name that no other run has. It stays the same when the folder is moved."""
        return self.origin.run

    @property
    def input(self) -> InputFacts:
        """What the step ``ingest`` wrote down."""
        return self.facts("ingest")

    @property
    def built(self) -> GraphFacts:
        """What the step ``build`` wrote down."""
        return self.facts("build")

    @property
    def planned(self) -> PlanFacts:
        """What the step ``plan`` wrote down."""
        return self.facts("plan")

    @cached_property
    def names(self) -> tuple[str, str]:
        """What the input calls the left and the right side. "left" and "right" where it does not say."""
        return side_names(self.input if self.has("ingest") else None)

    @cached_property
    def provenance(self) -> Provenance:
        """What the metadata of every part says of the run."""
        return Provenance(*self.names, self.identity, self.input["digest"] if self.has("ingest") else "")

    @cached_property
    def graph(self) -> MiningGraph:
        """The reduced graph, memory-mapped."""
        return MiningGraph.open(self.store.local(self.folder.graph))

    @property
    def is_in_bands(self) -> bool:
        """Whether the graph was built in bands. No run of an earlier version was."""
        return self.job.in_bands and "bands" in self.built

    @cached_property
    def bands(self) -> list[tuple[Search, MiningGraph]]:
        """What is searched: by band, its search and its graph. A job that is not done in bands has one."""
        search = self.options.search
        if not self.is_in_bands:
            return [(search, self.graph)]
        told = [Band(one["first"], one["last"], one["min_right"]) for one in self.built["bands"]]
        searches = [band.of(search) for band in told]
        return list(zip(searches, MiningGraph.open_all(self.store.local(self.folder.graph)), strict=True))

    @cached_property
    def labels(self) -> tuple[Any, Any]:
        """Labels of the left and of the right side, by dense id: two memory-mapped Arrow arrays."""
        return open_labels(self.folder, "left"), open_labels(self.folder, "right")

    @property
    def tables(self) -> Tables:
        """The labels, if the rows of the run hold labels. None if they hold dense ids."""
        return self.labels if self.options.ids == "labels" else None

    @property
    def hashes(self) -> VertexHashes:
        """`schemas.hashes.vertex_hashes` of the labels, left and right, 8 bytes per vertex."""
        with self._hashing:  # threads that prove parts at the same time all ask for the hashes
            if self._hashes is None:
                left, right = self.labels
                self._hashes = hashes_of(left, "left"), hashes_of(right, "right")
            return self._hashes

    @cached_property
    def plan(self) -> Plan:
        """The roots in dealing order."""
        return Plan.read(self.folder, self.planned.get("bands"))

    def check_graph(self) -> None:
        """Refuse a graph or labels that no step makes. Checksums tell nothing of files that somebody has sent.

        Compiled code would read and write outside of its arrays.
        """
        sizes = (self.input["n_left"], self.input["n_right"])
        try:
            for graph in [self.graph, *(own for _, own in self.bands if own is not self.graph)]:
                graph.validate(count_cores())
                graph.validate_directions(count_cores())
                if (graph.n_left, graph.n_right) != sizes or tuple(map(len, self.labels)) != sizes:
                    raise IncompleteError(f"it is not of {sizes[0]} and {sizes[1]} vertices")
        except IncompleteError as error:
            self._forget()
            raise IncompleteError(f"{self.folder.graph} cannot be searched ({error.__cause__ or error})") from None

    def check_plan(self) -> None:
        """The same of the plan, whose graph was checked."""
        try:
            plan, bands = self.plan, self.bands
            numbers, stops = zip((-1, 0), *plan.bands, strict=True)
            if sorted(numbers[1:]) != list(range(len(bands))) or list(stops) != sorted(stops):
                raise ValueError(f"its bands are {plan.bands}")
            if stops[-1] < len(plan.roots):
                raise ValueError(f"it has {len(plan.roots)} roots, and its bands {stops[-1]}")
            for band, (_, graph) in enumerate(bands):
                check_ids(plan.roots[slice(*plan.stretch_of(band))], graph.n_roots)
        except (IncompleteError, ValueError) as error:
            self._forget(with_graph=False)
            raise IncompleteError(f"{self.folder.plan} cannot be used ({error.__cause__ or error})") from None

    def facts(self, step: str) -> Any:
        """What the step of this name wrote down. `input`, `built` and `planned` give the same with their types."""
        if step not in self._facts:
            self._facts[step] = self.folder.need(step)
        return self._facts[step]

    def has(self, step: str) -> bool:
        """Whether a step is done."""
        if step not in self._facts and (facts := self.folder.facts(step)) is not None:
            self._facts[step] = facts
        return step in self._facts

    def has_made(self, step: str) -> bool:
        """Whether the step was finished through this object, so that its files need not be checked again."""
        return step in self._made

    def finish(self, step: str, facts: Mapping[str, Any], files: Iterable[Path] | Mapping[Path, int] = ()) -> None:
        """Mark a step as done; see `RunFolder.finish`. The plan changes nothing of what earlier steps have made."""
        self.folder.finish(step, facts, files)
        self._facts.pop(step, None)
        self._forget(with_graph=step != "plan")
        self._made.add(step)

    def _forget(self, with_graph: bool = True) -> None:
        """Forget what was read of the files of steps: the plan, and all else unless only the plan is made anew."""
        for kept in ("plan", *(("names", "provenance", "graph", "bands", "labels") if with_graph else ())):
            self.__dict__.pop(kept, None)
        self._hashes = None if with_graph else self._hashes

    def keep_edges(self, words: Any) -> None:
        """Keep the sorted edges that ingest left on a device, 64-bit words with the left id first."""
        self._edges = words

    def take_edges(self) -> Any:
        """The edges that ingest left on a device, or None. Whoever takes them decides when they go."""
        words, self._edges = self._edges, None
        return words

    def mark(self, left: Any, right: Any) -> None:
        """Mark edges by the dense ids of their ends, for the step ``build`` of the job `schemas.jobs.Marked`."""
        self._marks = left, right

    @property
    def marks(self) -> tuple[Any, Any]:
        """The marked edges. They are only known to the caller that has marked them."""
        if self._marks is None:
            raise IncompleteError(f"{self.path} was made to find what changed, and its graph is lost; compare again")
        return self._marks

    def sessions(self) -> list[MiningSession]:
        """The record of each call of mining, oldest first. The record of a killed call says only how the call began."""
        return sessions(self.folder)

    def ended(self) -> Outcome | Literal[""]:
        """How the last call of mining ended. Empty if there was none."""
        mined = self.sessions()
        return mined[-1].outcome if mined else ""

    def ledger(self) -> Ledger:
        """The ledger as it is on disk; see `Ledger.load`."""
        self.store.local(self.folder.ledger)
        return Ledger.load(self.folder, self.job, len(self.plan.roots))

    def survey(self) -> tuple[Ledger, dict[Path, str]]:
        """What counts of the ledger, and why the rest does not; see `Ledger.survey`. Empty before there is a plan."""
        if not self.has("plan"):
            return Ledger(self.folder, self.job, 0, {}), {}
        self.store.local(self.folder.ledger)
        return Ledger.survey(self.folder, self.job, len(self.plan.roots))

    def repaired_ledger(self) -> Ledger:
        """The ledger, after the folder was made to agree with it; see `Ledger.repair`."""
        return Ledger.repair(self.folder, self.job, len(self.plan.roots))
