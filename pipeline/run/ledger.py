"""The ledger says which work is done, what the work gave, and therefore what is still to be done.

Work comes from *sources*: the plan, and the left-over of every committed slice. An entry says which
ranges of which sources its slice took. So the outstanding work of a run is not stored: it is all nodes of
all sources minus the ranges taken. If the source of an entry, or one of its parts, is missing, the entry
does not count. It is dropped, and so is every entry that took from its left-over.

Only the driver that holds the lock of the run writes to the ledger.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bicliques.pipeline.run.files import SharedFlush, disk_errors, flush, read_json
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import is_entry, refuse_links
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.jobs import Job
from bicliques.schemas.manifest import PLAN, LedgerEntry, Part
from bicliques.schemas.records import one_line
from bicliques.schemas.totals import Total
from bicliques.schemas.work import Subtrees

logger = logging.getLogger(__name__)

#: What helps against a damaged entry.
_REMEDY = "delete it and resume the run"


class Ledger:
    """All valid entries of a run.

    Parameters
    ----------
    job : Job
        The job of the run.
    n_plan : int
        Number of nodes of the plan.
    entries : dict of int to LedgerEntry
        Entries by the number of their slice. Of each total only the outline is kept, to save memory.
    """

    def __init__(self, folder: RunFolder, job: Job, n_plan: int, entries: dict[int, LedgerEntry]):
        self.folder = folder
        self.job = job
        self.n_plan = n_plan
        self.entries = entries
        self._total: Total | None = None
        self._adding = threading.Lock()  # several threads write entries at the same time
        self._flush_names = SharedFlush(folder.ledger)

    @property
    def total(self) -> Total:
        """The total of all entries together."""
        return self.job.zero if self._total is None else self._total

    def _add(self, entry: LedgerEntry) -> None:
        self._total = self.total + entry.result.total
        outline = replace(entry.result, total=entry.result.total.outline())
        self.entries[entry.result.slice] = replace(entry, result=outline)

    @classmethod
    def load(cls, folder: RunFolder, job: Job, n_plan: int) -> Ledger:
        """Read the ledger as it is.

        Raises `IncompleteError` if an entry is damaged.
        """
        ledger = cls(folder, job, n_plan, {})
        for entry in sorted(
            (ledger._read(file) for file in folder.entries_there()), key=lambda entry: entry.result.slice
        ):
            ledger._add(entry)
        return ledger

    @classmethod
    def survey(cls, folder: RunFolder, job: Job, n_plan: int) -> tuple[Ledger, dict[Path, str]]:
        """A ledger of the entries that count, and the files of the others with the reason. No file is changed."""
        ledger, found, problems = cls(folder, job, n_plan, {}), {}, {}
        for file in folder.entries_there():
            try:
                entry = ledger._read(file)
                found[entry.result.slice] = entry
            except IncompleteError as error:
                problems[file] = f"{error.marked}; its slice is mined again"
        sizes = ledger.sizes(found.values())
        for entry in (found[k] for k in sorted(found)):
            reason = ledger.problem(entry, sizes)
            if reason is None:
                ledger._add(entry)
            else:
                number = entry.result.slice
                problems[ledger.file(number)] = f"slice {number} is mined again: {reason}"
        return ledger, problems

    @classmethod
    def repair(cls, folder: RunFolder, job: Job, n_plan: int) -> Ledger:
        """Read the ledger, and make the folder agree with it, so that the run can go on. In a bucket a session begins.

        Deletes parts that no entry that counts names, damaged entries, entries whose parts are missing or have another
        size, entries whose source is missing, and unfinished files of entries. Files that do not have the name of an
        entry or a part stay. Parts that count are moved out of ``pending/``. Raises `InputError` if a folder of the run
        is a link, and `ResourceError` if a file cannot be deleted.
        """
        refuse_links(folder.path)
        folder.store.take_over()
        ledger, problems = cls.survey(folder, job, n_plan)
        folder.store.begin(ledger.entries, ledger.parts)
        ledger.tidy()  # first, because a part may not outlive its entry in the sight of readers
        with disk_errors(folder.ledger):
            for file, problem in problems.items():
                logger.warning("%s", problem)
                file.unlink()
            for file in folder.own_files(folder.ledger):
                if not is_entry(file.name):  # a driver was killed while it wrote this entry
                    file.unlink()
        return ledger

    def tidy(self) -> None:
        """Delete the parts that no entry names, and move the others into ``bicliques/``.

        Raises `ResourceError` if a file cannot be deleted or moved.
        """
        with disk_errors(self.folder.bicliques):
            for orphan in self.orphans():
                logger.info("%s belongs to no committed slice and is deleted", orphan)
                orphan.unlink()
            waiting = {path.name for path in self.folder.pending_there()}
            if waiting:
                self.folder.bicliques.mkdir(exist_ok=True)
                self.folder.store.admit(part for part in self.parts if part.name in waiting)
            if self.folder.bicliques.exists():
                flush(self.folder.bicliques)

    def file(self, number: int) -> Path:
        """The file of the entry of a slice."""
        return self.folder.ledger / f"{number}.json"

    def left_over(self, number: int, n_roots: int) -> Subtrees:
        """The left-over of a slice, read from the file of its entry. Its graph has `n_roots` roots.

        Raises `IncompleteError` if the entry is damaged.
        """
        file = self.file(number)
        with _named_in_errors(file):
            packed = LedgerEntry.from_json(read_json(file), self.job)[1]
            return Subtrees.from_bytes(packed).check(n_roots) if packed else Subtrees.empty()

    def commit(self, entry: LedgerEntry, left_over: bytes) -> None:
        """Write the entry of a slice, and let its parts be seen; see `Store.commit`.

        From the entry on its work counts, also after a loss of power. Raises `ResourceError` if the disk is full. The
        slice does not count then, unless its entry is there already.

        Parameters
        ----------
        left_over : bytes
            Packed by `Subtrees.to_bytes`. Empty if nothing is left over.
        """
        number, record = entry.result.slice, one_line(entry.to_json(left_over))
        self.folder.store.commit(number, record, entry.result.parts, self._flush_names)
        with self._adding:
            self._add(entry)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of all entries."""
        return tuple(part for entry in self.entries.values() for part in entry.result.parts)

    def source_size(self, source: int) -> int:
        """Number of nodes of a source."""
        return self.n_plan if source == PLAN else self.entries[source].result.n_left_over

    def outstanding(self) -> dict[int, list[tuple[int, int]]]:
        """The ranges of nodes that no slice has taken, by source. Sources without such a range are left out.

        Raises `IncompleteError` if two slices took the same node.
        """
        taken: dict[int, list[tuple[int, int, int]]] = {k: [] for k in (PLAN, *self.entries)}
        for entry in self.entries.values():
            for source, start, stop in entry.took:
                taken[source].append((start, stop, entry.result.slice))
        gaps: dict[int, list[tuple[int, int]]] = {}
        for source, ranges in taken.items():
            free = _gaps(source, sorted(ranges), self.source_size(source))
            if free:
                gaps[source] = free
        return gaps

    def _read(self, file: Path) -> LedgerEntry:
        with _named_in_errors(file):
            entry, _ = LedgerEntry.from_json(read_json(file), self.job)
        if file.name != f"{entry.result.slice}.json":
            raise IncompleteError(f"ledger entry {file} says that it is slice {entry.result.slice}; {_REMEDY}")
        return entry

    def sizes(self, entries: Iterable[LedgerEntry]) -> dict[str, int]:
        """Bytes of each part of these entries that is there, by its name."""
        return self.folder.store.sizes([part for entry in entries for part in entry.result.parts])

    def problem(self, entry: LedgerEntry, sizes: dict[str, int] | None = None) -> str | None:
        """Why an entry cannot count, given the entries before it. None if it can. `sizes` are those of parts."""
        sizes = self.sizes([entry]) if sizes is None else sizes
        for source, start, stop in entry.took:
            if source != PLAN and source not in self.entries:
                return f"the ledger entry of slice {source}, whose left-over it took, is missing"
            if not 0 <= start < stop <= self.source_size(source):
                return f"it took nodes {start} to {stop} of source {source}, which has {self.source_size(source)}"
        for part in entry.result.parts:
            size = sizes.get(part.name)
            if size != part.bytes:
                path = self.folder.store.place_of(part)
                return f"{path} has {size if size is not None else 'no'} bytes instead of {part.bytes}"
        return None

    def orphans(self) -> Iterator[Path]:
        """Parts that no entry names. In ``pending/`` they may be unfinished.

        Raises `IncompleteError` where `RunFolder.parts_there` and `RunFolder.pending_there` raise it.
        """
        named = {part.name for part in self.parts}
        there = [*(self.folder.bicliques / name for name in self.folder.parts_there()), *self.folder.pending_there()]
        return (path for path in there if path.name not in named)


@contextmanager
def _named_in_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except IncompleteError as error:
        raise IncompleteError(f"ledger entry {file} cannot be used ({error}); {_REMEDY}") from error


def named(source: int) -> str:
    """What a source is called in sentences."""
    return "the plan" if source == PLAN else f"the left-over of slice {source}"


def _gaps(source: int, taken: list[tuple[int, int, int]], size: int) -> list[tuple[int, int]]:
    """Maximal ranges of ``0..size - 1`` outside the sorted ranges `taken`."""
    free, end, last = [], 0, -1
    for start, stop, number in taken:
        if start < end:
            raise IncompleteError(
                f"slices {last} and {number} both took node {start} of {named(source)}; start the run again"
            )
        if start > end:
            free.append((end, start))
        end, last = stop, number
    if end < size:
        free.append((end, size))
    return free
