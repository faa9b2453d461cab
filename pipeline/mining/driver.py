"""The driver of the step ``mine``: it connects the scheduler, the workers and the ledger until the work is done."""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Iterable
from concurrent import futures
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from bicliques.pipeline.dealing.schedule import Finish, Policy, Scheduler, Start
from bicliques.pipeline.mining.incumbent import Incumbent
from bicliques.pipeline.mining.watch import Watch
from bicliques.pipeline.output.writers import WriteOn
from bicliques.pipeline.prepare.weights import weights_of
from bicliques.pipeline.process import startup
from bicliques.pipeline.process.interrupts import interruptible
from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.run.accounts import peak_rss
from bicliques.pipeline.run.files import disk_errors
from bicliques.pipeline.run.ledger import Ledger
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.plan import BandOf
from bicliques.pipeline.run.progress import OnProgress, Progress, number
from bicliques.pipeline.run.session import how_it_ended, remember
from bicliques.pipeline.slices.left_over import LeftOver, Packed, Roots
from bicliques.pipeline.slices.power import ProcessorEnergy
from bicliques.pipeline.slices.shared_slice import mine_slice
from bicliques.pipeline.slices.worker import SliceDone, SliceTask, warm_up
from bicliques.pipeline.workers.thread_pool import Pool, Result, WorkerLostError
from bicliques.schemas.errors import BicliqueError, ResourceError
from bicliques.schemas.facts import MiningSession, Outcome
from bicliques.schemas.manifest import PLAN, LedgerEntry, Part, SliceResult
from bicliques.schemas.options import RunLimits
from bicliques.schemas.search import Limits


class Beside(Protocol):
    """Work on the parts of committed slices. The driver of the step ``mine`` calls it from one thread.

    Its tasks have negative tags in the pool that mines, because the tags of slices are their numbers.
    """

    def begin(self, parts: Iterable[Part]) -> None:
        """Mining begins. These parts are committed already."""
        ...

    def committed(self, parts: Iterable[Part]) -> None:
        """These parts are committed, and will not change any more."""
        ...

    def go_on(self, pool: Pool, free: int) -> None:
        """Have at most `free` tasks in `pool`, those included that it has already. So many slots have no slice."""
        ...

    def take(self, result: Result) -> None:
        """The result of a task that `go_on` gave to the pool."""
        ...


logger = logging.getLogger(__name__)

#: A pool that can grow is asked to do so after `GROW_AFTER_S` seconds of mining, if more than `GROW_FOR_S` are left.
GROW_AFTER_S, GROW_FOR_S = 1.0, 4.0
#: Seconds between two checks of the number of workers, and while the pool expects some.
LOOK_S, LOOK_SOON_S = 1.0, 0.05
#: Seconds that this process needs to take one slice back and to deal the next one. Writing to disk is not included.
_EVENT_S = 0.003
#: Seconds that a run without workers waits for one.
NO_WORKERS_S = 60.0


def mine_run(
    run: Run,
    pool: Pool,
    limits: RunLimits,
    on_progress: OnProgress,
    slice_seconds: float = 10.0,
    stop: threading.Event | None = None,
    write_on: WriteOn = "auto",
    beside: Beside | None = None,
) -> MiningSession:
    """Mine the work that is outstanding after what the ledger has.

    Raises `ResourceError` if the disk is full, no worker is left, or a slice fails again and again. The run can be
    resumed. Raises `IncompleteError` if the plan is not there, or a file is in the place of one of the run's. Raises
    `KeyboardInterrupt` after a second Ctrl-C.

    Parameters
    ----------
    run : Run
        A run whose step ``plan`` is done.
    on_progress : callable
        Called with a `Progress` after every slice and, unless slices run in this thread, several times per second.
    slice_seconds : float
        Longest time of a slice, in seconds.
    stop : Event or None
        When it is set, no slice is started any more, and running slices are finished and committed. The first Ctrl-C
        in the main thread does the same. A second Ctrl-C abandons the running slices.
    write_on : "auto", "cpu" or "gpu"
        See `pipeline.output.writers.open_writer`.
    beside : Beside or None
        What is done with the parts of committed slices while nothing else waits to be done.

    Returns
    -------
    MiningSession
        What this call did. It is also stored with the run.
    """
    folder = run.folder
    _ = run.planned  # raises if the step is not done
    folder.parts_there(), folder.entries_there()  # raise now what would otherwise stop the first slice
    for place in (folder.bicliques, folder.pending, folder.ledger):
        with disk_errors(place):
            place.mkdir(exist_ok=True)
    folder.store.keep_steps()  # workers of other machines take the graph from the store when they warm up
    with startup.getting_ready():  # without it the first slices would seem slow
        pool.everywhere(warm_up, (run.place, run.identity, write_on))
    startup.log_it()
    driver = _Driver(run, pool, limits, on_progress, slice_seconds, stop or threading.Event(), write_on, beside)
    remember(folder, driver.session("failed"))
    try:
        with interruptible(driver.stop) as ctrl_c:
            outcome = driver.run()
    except BaseException as error:
        with suppress(BicliqueError):  # the error that ended the session, such as a full disk, must not be hidden
            remember(folder, driver.session(*how_it_ended(error)))
        raise
    finally:
        driver.commits.close()
    session = replace(driver.session(outcome), ctrl_c=outcome == "interrupted" and ctrl_c.is_set())
    remember(folder, session)
    slices = number(session.slices, "slice")
    text = f"mining ended ({outcome}): {number(session.count, 'biclique')}, {slices} in {session.seconds:.2f} s"
    facts = {
        name: getattr(session, name) for name in ("outcome", "count", "seconds", "slices", "retries", "busy_ratio")
    }
    tell(logger, "mined", text, **facts)
    return session


class _Driver:
    def __init__(
        self,
        run: Run,
        pool: Pool,
        limits: RunLimits,
        on_progress: OnProgress,
        slice_seconds: float,
        stop: threading.Event,
        write_on: WriteOn,
        beside: Beside | None,
    ):
        self.startup = startup.take()
        self.began, self.started = time.time(), time.monotonic()
        self.of_run, self.pool, self.limits, self.on_progress, self.stop = run, pool, limits, on_progress, stop
        self.place, self.write_on, self.beside = run.place, write_on, beside
        self.plan, self.job, self.ledger = run.plan, run.job, run.repaired_ledger()
        self.weights = [weights_of(self.job, graph) for _, graph in run.bands]
        self.band_of = BandOf(self.plan, self.ledger.entries)
        self.seen_before = self.ledger.total.seen
        self.bytes = sum(part.bytes for part in self.ledger.parts)
        self.slices = 0
        self.busy_s = self.capacity_s = 0.0  # of all workers together
        self.finish: Finish | None = None
        self.deadline = math.inf
        self.told_of_stop = False
        wanted = None if limits.max_results is None else limits.max_results - self.ledger.total.count
        policy = Policy(
            max_seconds=slice_seconds,
            min_seconds=min(0.25, slice_seconds),
            max_results=wanted,
            event_seconds=_EVENT_S,
        )
        self.policies = {False: policy, True: policy.of_sharing()}  # by whether threads share slices
        self.machine = Scheduler(policy, max(self.ledger.entries, default=-1) + 1, float(self.plan.weights.sum()))
        self.left_overs: dict[int, LeftOver] = {}
        self.taking: dict[int, Start] = {}
        self.commits = Commits(self.ledger)
        self.incumbent = Incumbent(run, self.band_of)
        self.watch = Watch(pool, on_progress)
        self.energy = ProcessorEnergy()
        for source, ranges in self.ledger.outstanding().items():
            self._add(source, ranges)
        if beside is not None:
            beside.begin(self.ledger.parts)

    def run(self) -> Outcome:
        looked = now = self.with_workers = time.monotonic()
        if self.limits.time_limit_s is not None:
            self.deadline = time.monotonic() + self.limits.time_limit_s
        self._look_at_workers(now)
        while self.finish is None:
            for result in self.pool.wait(0 if self.commits else 0.2):
                self._receive(result)
            for committed in self.commits.ended():
                self._carry_out(self._returned(*committed))
            before, now = now, time.monotonic()
            self.capacity_s += self.workers * (now - before)
            if self.stop.is_set():
                self._interrupt()
            if now >= self.deadline:
                self._stop("time_limit")
            if now - self.started > GROW_AFTER_S and self.machine.seconds_left > GROW_FOR_S:
                self.pool.grow()
            if now - looked > (LOOK_S if self.pool.longest_task_s() is None else LOOK_SOON_S):
                looked = now
                self._look_at_workers(now)
            self._go_on_beside()
            self._tell()
        if self.finish.outcome == "failed":
            raise ResourceError(self.finish.reason)
        return self.finish.outcome

    def session(self, outcome: Outcome, reason: str = "") -> MiningSession:
        return MiningSession(
            outcome=outcome,
            count=self.ledger.total.count,
            began=self.began,
            seconds=time.monotonic() - self.started,
            slices=self.slices,
            retries=self.machine.retries,
            workers=self.pool.describe(),
            busy_seconds=self.busy_s,
            idle_seconds=max(self.capacity_s - self.busy_s, 0.0),
            reason=reason,
            processors=self.energy.facts(),
            startup=self.startup,
            peak_rss=peak_rss(),
        )

    def _add(self, source: int, ranges: list[tuple[int, int]]) -> None:
        self.incumbent.add(source, ranges)
        if source == PLAN:
            within = self.plan.within_bands(ranges)
            self.machine.add_source(source, self.plan.weights, within, is_plan=True, band_at=self.plan.band_at)
        else:
            band = self.band_of(source)
            left_over = LeftOver.of(self.ledger.left_over(source, self.of_run.job.numbers(self.of_run.bands[band][1])))
            self.left_overs[source] = left_over
            weights = self.weights[band].of_shapes(left_over.shapes)
            self.machine.add_source(source, weights, ranges, is_plan=False, band_at=lambda node: band)

    def _carry_out(self, instructions: list[Start | Finish]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Finish):
                self.finish = instruction
            else:
                self.taking[instruction.slice] = instruction
                task = self._task(instruction)
                self.watch.started(instruction, task.limits.seconds or 0.0)
                self.pool.submit(instruction.slice, mine_slice, task, on_all_threads=True)

    def _task(self, start: Start) -> SliceTask:
        seconds = min(start.seconds, self.pool.longest_task_s() or start.seconds)
        seconds = max(min(seconds, self.deadline - time.monotonic()), 0.01)
        return SliceTask(
            folder=self.place,
            run=self.of_run.identity,
            slice=start.slice,
            attempt=start.attempt,
            band=self._band(start),
            work=tuple(self._nodes(*took) for took in start.took),
            limits=Limits(seconds, start.rows, self._bound()),
            write_on=self.write_on,
        )

    def _nodes(self, source: int, first: int, last: int) -> Packed | Roots:
        if source == PLAN:
            return Roots.of(self.plan.roots[first:last])
        return self.left_overs[source].some(first, last)

    def _band(self, start: Start) -> int:
        source, first, _ = start.took[0]
        return self.band_of(source, first)

    def _bound(self) -> int | None:
        """That of the rows so far, or the first one of the run if that is higher."""
        bounds = (self.job.bound(self.ledger.total), self.of_run.built.get("bound"))
        return max((bound for bound in bounds if bound is not None), default=None)

    def _go_on_beside(self) -> None:
        """Use the slots that no slice wants. If the run stops before its end, nothing is begun any more."""
        if self.beside is not None and self.finish is None and not self.machine.is_stopping:
            self.beside.go_on(self.pool, self.pool.idle(self.slots - self.machine.running))

    def _receive(self, result: Result) -> None:
        if self.beside is not None and result.tag < 0:
            self.beside.take(result)
        elif isinstance(result.value, SliceDone):
            self._commit(result.value)
        elif isinstance(result.error, BicliqueError):
            raise result.error  # trying again would not help
        else:
            error = result.error
            reason = str(error) if isinstance(error, WorkerLostError) else f"{type(error).__name__}: {error}"
            self.watch.failed(result.tag, reason)
            self._carry_out(self.machine.failed(result.tag, reason))

    def _commit(self, done: SliceDone) -> None:
        """Begin to write the ledger entry of a slice."""
        result, start = done.result, self.taking[done.result.slice]
        left_over = done.left_over.spread(self.machine.pieces_wanted())
        weights = self.weights[self._band(start)].of_shapes(left_over.shapes)
        result = replace(result, n_left_over=len(left_over))
        entry = LedgerEntry(result, start.took, max(self.machine.weight(result.slice) - float(weights.sum()), 0.0))
        self.commits.begin(entry, left_over.packed, (result, left_over, weights))

    def _returned(self, result: SliceResult, left_over: LeftOver, weights: np.ndarray) -> list[Start | Finish]:
        start = self.taking.pop(result.slice)
        self.bytes += sum(part.bytes for part in result.parts)
        if self.beside is not None:
            self.beside.committed(result.parts)
        self.slices += 1
        self.busy_s += result.busy_seconds
        self.incumbent.done(start.took)
        if len(left_over):
            self.left_overs[result.slice] = left_over
            self.incumbent.add(result.slice, [(0, len(left_over))])
        band = self._band(start)
        instructions = self.machine.returned(result.slice, result.seconds, result.total.seen, weights, band)
        self.watch.returned(result, self.ledger.total.seen, self.machine.share)
        for source in {source for source, _, _ in start.took}:
            if not self.machine.is_open(source):
                self.left_overs.pop(source, None)
        return instructions

    def _interrupt(self) -> None:
        if not self.told_of_stop and self.machine.running:
            running = number(self.machine.running, "slice is", "slices are")
            them = "it" if self.machine.running == 1 else "them"
            note = f"stopping: {running} being finished; Ctrl-C again abandons {them}"
            self.on_progress(Progress("mine", note=note))
        self.told_of_stop = True
        self._stop("interrupted")

    def _stop(self, outcome: Outcome) -> None:
        self._carry_out(self.machine.stop(outcome))
        self.pool.end_slices()  # again and again, because a slice that is just beginning does not hear it

    def _look_at_workers(self, now: float) -> None:
        self.energy.facts()  # has to be read often, because its counters start again from 0 after some time
        self.watch.look()
        self.slots, self.workers, shared = self.pool.capacity()
        self.machine.policy = self.policies[shared is not None]
        if self.slots:
            self.with_workers = now
        elif now - self.with_workers > NO_WORKERS_S:
            raise ResourceError(f"no worker has been there for {NO_WORKERS_S:.0f} seconds; start some")
        self._carry_out(self.machine.set_slots(*(shared or (self.slots, self.workers))))

    def _tell(self) -> None:
        seconds = time.monotonic() - self.started
        self.on_progress(
            Progress(
                step="mine",
                share=1.0 if self.finish and self.finish.outcome == "complete" else min(self.machine.share, 0.999),
                bicliques=self.ledger.total.seen,
                rate=(self.ledger.total.seen - self.seen_before) / max(seconds, 1e-3),
                bytes=self.bytes,
                running=self.machine.running,
                workers=self.pool.describe(),
                seconds=seconds,
                gap=self.incumbent.gap(self.ledger.total),
            )
        )


#: Entries that are written at a time. One entry takes two flushes to the disk, which took 6 to 12 ms when measured.
_THREADS = 8
#: Seconds that `Commits.ended` waits for an entry.
_PATIENCE_S = 0.01


class Commits:
    """The entries of a run's ledger that are being written."""

    def __init__(self, ledger: Ledger):
        self._ledger = ledger
        self._threads = futures.ThreadPoolExecutor(_THREADS, thread_name_prefix="commit")
        self._written: queue.SimpleQueue[tuple[futures.Future[None], Any]] = queue.SimpleQueue()
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def begin(self, entry: LedgerEntry, left_over: bytes, context: Any) -> None:
        """Start to write an entry. Once it is written, `ended` returns `context`."""
        self._n += 1
        future = self._threads.submit(self._ledger.commit, entry, left_over)
        future.add_done_callback(lambda written: self._written.put((written, context)))

    def ended(self) -> list[Any]:
        """Contexts of the entries that were written since the last call. Waits up to 10 ms for the first of them.

        Raises `ResourceError` if the disk is full.
        """
        ended: list[Any] = []
        with suppress(queue.Empty):
            while self._n:
                written, context = self._written.get(timeout=0 if ended else _PATIENCE_S)
                self._n -= 1
                written.result()
                ended.append(context)
        return ended

    def close(self) -> None:
        """Wait for the entries that are being written. They count, too."""
        self._threads.shutdown()
