"""Reads all parts of a run back, each once: while the run is mined, where workers are free, and the rest afterwards.

What was read is kept in memory only. It counts as long as the part is the same file: before a part is read its inode,
its size and its times are noted, and they are compared when all is read. If they have changed, nothing that was read
counts, and all parts are read again.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bicliques.pipeline.proof.read_back import PartProof, ProofTask, proof_tasks, prove_part, warm_up_device
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import OnProgress, Progress
from bicliques.pipeline.workers.thread_pool import Pool, Result, WorkerLostError
from bicliques.schemas.errors import IncompleteError, ResourceError
from bicliques.schemas.manifest import Part

logger = logging.getLogger(__name__)

#: If there are more rows, their hashes are not compared here. `verify` compares them, because it keeps them on disk.
COMPARED_ROWS = 1 << 23
#: If there are more rows, the pool is asked to grow. One process has read fewer rows back before others have started.
ROWS_WORTH_WORKERS = 10_000_000
#: How many workers may die with the same task before the task is given up.
_ATTEMPTS = 3
#: How often all parts are read because some of them have changed meanwhile.
_PASSES = 3

#: What identifies the content of a file as long as nobody wants to deceive: inode, size, and times of the last changes.
_Stamp = tuple[int, ...] | None


@dataclass
class PartRead:
    """A part, and what was read of it so far.

    Parameters
    ----------
    number : int
        Its number among the parts that were given to the reading.
    stamp : tuple of int or None
        Inode, size, and times of the last changes, before it was read.
    unread : int
        Tasks that are not done yet. 0 also before it is known how many there are.
    fingerprint : int
        Of the rows that were read, modulo 2**64.
    """

    part: Part
    number: int
    stamp: _Stamp
    unread: int = 0
    rows: int = 0
    fingerprint: int = 0


class _Running(NamedTuple):
    task: ProofTask
    pool: Pool


class Reading:
    """The parts of a run that are read back, and the sums of what was read.

    It is the `pipeline.mining.driver.Beside` of a run that is going to be proven.

    Parameters
    ----------
    on_device : bool
        Whether the GPU of each worker reads and hashes the rows; see `pipeline.proof.on_device.why_not`.
    readers : Pool or None
        Workers that only read, beside those that mine. None: parts are read where the pool that mines has free slots.
    """

    def __init__(self, run: Run, on_device: bool = False, readers: Pool | None = None):
        self._run, self._on_device, self._readers = run, on_device, readers
        self._tags = itertools.count(-1, -1)
        self._forget()

    def _forget(self) -> None:
        self._parts: dict[str, PartRead] = {}
        self._unopened: deque[ProofTask] = deque()  # whole parts, which may be divided
        self._waiting: deque[ProofTask] = deque()
        self._running: dict[int, _Running] = {}  # by tag
        self._failed: list[ProofTask] = []
        self._unreadable: list[ProofTask] = []  # whole parts
        self._lost: Counter[ProofTask] = Counter()
        self._sum = Summary(self._run.input["n_left"], self._run.input["n_right"])
        self._hashes: list[np.ndarray] | None = []  # None: there are too many rows to compare them
        self._rows = self._rows_read = 0

    def begin(self, parts: Iterable[Part]) -> None:
        """Have these parts read. Workers that only read use their device now, because its first use takes long."""
        if self._readers is not None and self._on_device:
            self._readers.submit(next(self._tags), warm_up_device, (self._run.place, self._run.identity))
        self.committed(parts)

    def committed(self, parts: Iterable[Part]) -> None:
        """Have these parts read, unless they are known already."""
        for part in parts:
            self._add(part)

    def go_on(self, pool: Pool, free: int) -> None:
        """Read with the workers that only read, if there are any; otherwise with at most `free` slots of `pool`."""
        if self._readers is not None:
            for result in self._readers.wait(0):
                self.take(result)
            while self._is_more_beside():
                self._submit(self._readers)
        while self._running_in(pool) < free and self._is_more_beside():
            self._submit(pool)

    def take(self, result: Result) -> None:
        """Add up what a task has read. If it failed, `finish` does it again."""
        running = self._running.pop(result.tag, None)
        if running is None:
            return  # it belongs to what was forgotten
        if result.error is not None:
            logger.debug("not read beside mining: %s", result.error)
            self._failed.append(running.task)
        else:
            self._add_up(running.task, *result.value)

    def finish(
        self, parts: tuple[Part, ...], pool: Pool, on_progress: OnProgress
    ) -> tuple[dict[str, PartRead], np.ndarray | None, Summary]:
        """Read what is not read yet, and return what was found.

        Raises `ResourceError` if workers die three times with the same task.

        Parameters
        ----------
        parts : tuple of Part
            All parts of the run, as its ledger has them now.
        pool : Pool
            The workers that read.
        on_progress : callable
            Called with a `Progress` after every task.

        Returns
        -------
        (dict of str to PartRead, ndarray or None, Summary)
            What was read of each part, by its name; the hashes of all rows (uint64) unless there are too many; and the
            summary, in which the numbers of parts are their positions in `parts`.
        """
        for _ in range(_PASSES):
            self._settle(parts)
            self._read_all(pool, on_progress)
            if (reason := self._what_changed(parts)) is None:
                break
        else:
            raise IncompleteError(f"{reason} again and again while the run was proven; resume the run")
        positions = np.empty(len(parts), np.int64)
        for position, part in enumerate(parts):
            positions[self._parts[part.name].number] = position
        hashes = None if self._hashes is None else np.concatenate([np.empty(0, np.uint64), *self._hashes])
        self._sum.renumber(positions)
        return self._parts, hashes, self._sum

    def _add(self, part: Part) -> None:
        if part.name in self._parts:
            return
        if self._rows + part.rows > COMPARED_ROWS:
            self._hashes = None
        number = len(self._parts)
        self._parts[part.name] = PartRead(part, number, self._stamp(part))
        self._rows += part.rows
        self._unopened.append(
            ProofTask(
                self._run.place,
                self._run.identity,
                part,
                number,
                keep_hashes=self._hashes is not None,
                on_device=self._on_device,
            )
        )

    def _is_more(self) -> bool:
        """Whether there is a task that nobody has. Parts are divided when they are next, because that opens them."""
        while not self._waiting and self._unopened:
            tasks = proof_tasks(self._unopened[0])
            self._parts[self._unopened.popleft().part.name].unread += len(tasks)
            self._waiting.extend(tasks)
        return bool(self._waiting)

    def _is_more_beside(self) -> bool:
        """The same. A part that cannot be opened is left for `finish`."""
        while True:
            try:
                return self._is_more()
            except IncompleteError as error:
                logger.debug("not read beside mining: %s", error)
                self._unreadable.append(self._unopened.popleft())

    def _add_up(self, task: ProofTask, proof: PartProof, summary: Summary) -> None:
        known = self._parts[task.part.name]
        known.unread -= 1
        known.rows += proof.rows
        self._rows_read += proof.rows
        known.fingerprint = (known.fingerprint + proof.fingerprint) % 2**64
        if self._hashes is not None and proof.hashes is not None:
            self._hashes.append(proof.hashes)
        self._sum += summary

    def _settle(self, parts: tuple[Part, ...]) -> None:
        """Agree with the ledger about the parts. Forget everything if what was read is not what is there now."""
        if (reason := self._what_changed(parts)) is not None:
            logger.warning("%s since it was read; all parts are read again", reason)
            self._forget()
        for part in parts:
            self._add(part)
        self._waiting.extend(self._failed)
        self._unopened.extend(self._unreadable)
        self._failed.clear()
        self._unreadable.clear()

    def _what_changed(self, parts: tuple[Part, ...]) -> str | None:
        """Which of the known parts is not the same any more, in words."""
        there = {part.name: part for part in parts}
        for name, known in self._parts.items():
            if there.get(name) != known.part or self._stamp(known.part) != known.stamp:
                return f"{self._run.folder.bicliques / name} has changed"
        return None

    def _stamp(self, part: Part) -> _Stamp:
        try:
            found = (self._run.folder.bicliques / part.name).stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _read_all(self, pool: Pool, on_progress: OnProgress) -> None:
        started = time.monotonic()
        total, before = sum(known.part.rows for known in self._parts.values()), self._rows_read
        if before:
            logger.info("%d of %d rows were read back while the run was mined", before, total)
        if total - before > ROWS_WORTH_WORKERS:
            pool.grow()
        while self._is_more() or self._running:
            while self._running_in(pool) < pool.capacity().slots + 1 and self._is_more():
                self._submit(pool)
            for result in self._results(pool):
                self._take_or_raise(result)
                rows, seconds = self._rows_read, time.monotonic() - started
                rate = (rows - before) / max(seconds, 1e-3)
                on_progress(
                    Progress("prove", rows / max(total, 1), rows, rate, workers=pool.describe(), seconds=seconds)
                )

    def _results(self, pool: Pool) -> list[Result]:
        """Results of `pool`, and of other pools whose tasks have not ended yet."""
        others = {id(running.pool): running.pool for running in self._running.values() if running.pool is not pool}
        found = [result for other in others.values() for result in other.wait(0)]
        if not found and (not others or self._running_in(pool)):
            return pool.wait(0.02 if others else 0.2)
        return found or next(iter(others.values())).wait(0.02)

    def _take_or_raise(self, result: Result) -> None:
        running = self._running.get(result.tag)
        if running is not None and isinstance(result.error, WorkerLostError):
            self._lost[running.task] += 1
            if self._lost[running.task] == _ATTEMPTS:
                raise ResourceError(f"a task failed {_ATTEMPTS} times: {result.error}") from result.error
        elif running is not None and result.error is not None:
            raise result.error
        self.take(result)
        self._waiting.extend(self._failed)
        self._failed.clear()

    def _submit(self, pool: Pool) -> None:
        tag, task = next(self._tags), self._waiting.popleft()
        self._running[tag] = _Running(task, pool)
        pool.submit(tag, prove_part, task)

    def _running_in(self, pool: Pool) -> int:
        return sum(running.pool is pool for running in self._running.values())
