"""Mines one slice on all threads of a worker process.

What the driver does for workers is done here for threads: a `Scheduler` deals the nodes of the slice, and what threads
leave over, until the time of the slice is up. The result is that of any slice: one total, one left-over, and the parts
of all threads. So the driver has one event where it would have one for each thread and each piece
(docs/lab/scaling.md).

Nothing is sent between threads. So a thread that has nothing to do can have the longest piece that runs given back, and
gets a share of it.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from bicliques.kernels import engines
from bicliques.pipeline.dealing.schedule import Finish, Policy, Scheduler, Start
from bicliques.pipeline.output.writers import Writer
from bicliques.pipeline.prepare.weights import RootWeights
from bicliques.pipeline.process.children import identity
from bicliques.pipeline.run.accounts import peak_rss
from bicliques.pipeline.slices.ending import may_end
from bicliques.pipeline.slices.engine_turns import turn
from bicliques.pipeline.slices.left_over import LeftOver, unpacked
from bicliques.pipeline.slices.slice_search import SliceSearch
from bicliques.pipeline.slices.thread_team import Team, team_of, threads_here
from bicliques.pipeline.slices.worker import SliceDone, SliceTask, hand_in, mine_alone, open_in_worker, writer_of
from bicliques.schemas.manifest import PLAN, Part, Range, SliceResult
from bicliques.schemas.platform import EngineKind
from bicliques.schemas.search import Limits
from bicliques.schemas.stats import EngineStats, SliceStats
from bicliques.schemas.totals import Total
from bicliques.schemas.work import Engine, Subtrees

#: Seconds that it takes to take one piece back and to deal the next one, as measured in docs/lab/scaling.md.
EVENT_S = 0.0005
#: Shortest piece, in seconds, and how long one has to run before it is given back for a thread that is idle.
SHORTEST_S, LEAST_S = 0.1, 0.02
#: Seconds between two looks of a thread that has nothing to do.
PULSE_S = 0.005
#: Seconds of the first piece, even if all of the time has passed before it began. A slice has to do something.
_FIRST_S = 0.005


def mine_slice(task: SliceTask) -> SliceDone:
    """Mine one slice, on as many threads as there are here (`pipeline.slices.thread_team`).

    One thread, or one with an engine that all share, does it alone; see `pipeline.slices.worker.mine_alone`. Raises
    `ResourceError`: a resource is missing, as when the disk is full. No files of the slice are left, and no thread
    works on it.
    """
    run = open_in_worker(task.folder, task.run)
    kind = engines.kind(run.options.engine)
    if threads_here() == 1 or kind.platform.shares_engine:
        return mine_alone(task)
    work = unpacked(task.work)
    with team_of(run, threads_here()) as team:
        shared = _Shared(task, kind, team, work)
        try:
            with may_end(shared.stop):
                team.all_do(shared.take_part)
        except BaseException:
            shared.discard()
            raise
    return shared.done()


@dataclass
class _Seat:
    """What one thread finds and writes."""

    session: SliceSearch
    writer: Writer
    busy: float = 0.0  # seconds
    closing: float = 0.0
    piece_began: float | None = None  # None: it has none
    is_recalled: bool = False


class _Shared:
    """A slice that is dealt among threads."""

    def __init__(self, task: SliceTask, kind: EngineKind, team: Team, work: Subtrees):
        self.task, self.kind, self.run, self.threads = task, kind, team.run, team.threads
        self.search, self.graph = team.run.bands[task.band]
        self.weights: RootWeights = team.weights(task.band)
        shares = self.weights.of(work)
        self.began, self.started, self.until = time.time(), time.perf_counter(), math.inf
        policy = Policy(
            max_seconds=max(task.limits.seconds or math.inf, SHORTEST_S),
            min_seconds=SHORTEST_S,
            max_results=task.limits.rows,
            event_seconds=EVENT_S,
        )
        self._changed = threading.Condition()
        self._machine = Scheduler(policy, 0, float(shares.sum()))
        self._sources = {PLAN: work}
        self._waiting: deque[Start] = deque()
        self._has_begun = self._is_over = self._is_told_to_stop = False
        self._seats: list[_Seat] = []
        self.parts: list[Part] = []
        self.pieces = 0
        self._machine.add_source(PLAN, shares, [(0, len(work))], is_plan=True)
        with self._changed:
            self._carry_out(self._machine.set_slots(self.threads))

    def take_part(self) -> None:
        """Mine pieces until there are none. Each thread calls this once."""
        try:
            with turn(self.kind, self.run.identity) as server:
                seat = self._sit_down(server.engine)
                while (start := self._next()) is not None:
                    self._mine(seat, start)
            began = time.perf_counter()
            parts = seat.writer.close()
            seat.closing = time.perf_counter() - began
            with self._changed:
                self.parts += parts
        except BaseException:
            with self._changed:
                self._is_over = True  # nothing of the slice counts, so the others may leave what they have
                self._changed.notify_all()
            self.stop()
            raise

    def stop(self) -> None:
        """End the slice as if its time were over. Another thread calls this."""
        with self._changed:
            self._is_told_to_stop = True
            for seat in self._seats:
                seat.session.stop()

    def discard(self) -> None:
        """Remove all that was written, after an error. No thread works any more."""
        for seat in self._seats:
            seat.writer.discard()

    def done(self) -> SliceDone:
        """The answer of the worker. No thread works any more."""
        total: Total = self.run.job.zero
        stats = EngineStats()
        for seat in self._seats:
            total, stats = total + seat.session.total, stats + seat.session.stats
        hand_in(self.run, self.task, self.parts, total)
        left_over = self._nodes(self._machine.outstanding)
        seconds = time.perf_counter() - self.started
        result = SliceResult(
            slice=self.task.slice,
            attempt=self.task.attempt,
            parts=tuple(self.parts),
            total=total,
            n_left_over=len(left_over),
            began=self.began,
            seconds=seconds,
            worker=identity(),
            stats=SliceStats(
                engine=stats,
                writing_seconds=sum(seat.session.writing + seat.closing for seat in self._seats) / self.threads,
                peak_rss=peak_rss(),
                threads=self.threads,
                pieces=self.pieces,
                idle_seconds=max(seconds * self.threads - sum(seat.busy + seat.closing for seat in self._seats), 0.0),
            ),
            timed=tuple(timed for seat in self._seats for timed in seat.session.timed),
        )
        return SliceDone(result, LeftOver.of(left_over))

    def _sit_down(self, engine: Engine) -> _Seat:
        writer = writer_of(self.run, self.kind, self.task.slice, self.task.write_on)
        seat = _Seat(SliceSearch(engine, self.graph, self.search, self.task.limits, writer), writer)
        with self._changed:
            if not self._has_begun:
                self._begin()
            self._seats.append(seat)
            if self._is_told_to_stop:
                seat.session.stop()
        return seat

    def _begin(self) -> None:
        """The time of the slice begins with its first thread. Until then all threads had the slice before it."""
        self._has_begun = True
        self.began, self.started = time.time(), time.perf_counter()
        if self.task.limits.seconds is not None:
            self.until = self.started + self.task.limits.seconds

    def _next(self) -> Start | None:
        """The next piece for a thread, which waits for it. None if there will be none."""
        with self._changed:
            while not self._waiting and not self._is_over:
                if not self._changed.wait(PULSE_S):
                    self._recall()
            return None if self._is_over else self._waiting.popleft()

    def _mine(self, seat: _Seat, start: Start) -> None:
        work, is_first = self._nodes(start.took), start.slice == 0
        began = time.perf_counter()
        left_s = max(self.until - began, _FIRST_S if is_first else 0.0)
        seat.session.again(Limits(min(start.seconds, left_s), start.rows, self._bound()))
        seat.piece_began, seat.is_recalled = began, False
        seat.session.all_of(work, self.kind.platform.timed_roots if is_first else 0)
        seat.piece_began = None
        seconds = time.perf_counter() - began
        seat.busy += seconds
        self._returned(start, seconds, seat.session.seen, Subtrees.concat(seat.session.left_over))

    def _nodes(self, took: Iterable[Range]) -> Subtrees:
        return Subtrees.concat([self._sources[source].take(first, last) for source, first, last in took])

    def _bound(self) -> int | None:
        """The highest of those of the threads. That of all their rows together may be higher, and is never lower."""
        bounds = [self.task.limits.bound, *(seat.session.bound for seat in list(self._seats))]
        return max((bound for bound in bounds if bound is not None), default=None)

    def _returned(self, start: Start, seconds: float, seen: int, left_over: Subtrees) -> None:
        left_over = left_over.spread(self._machine.pieces_wanted())  # before its turn, because this takes as long
        weights = self.weights.of(left_over)
        with self._changed:
            self.pieces += 1
            if len(left_over):
                self._sources[start.slice] = left_over
            if self._is_told_to_stop:
                self._machine.stop("interrupted")
            elif time.perf_counter() >= self.until:
                self._machine.stop("time_limit")
            self._carry_out(self._machine.returned(start.slice, seconds, seen, weights))
            for source in {source for source, _, _ in start.took}:
                if not self._machine.is_open(source):
                    self._sources.pop(source, None)

    def _carry_out(self, instructions: list[Start | Finish]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Finish):
                self._is_over = True
            else:
                self._waiting.append(instruction)
        self._changed.notify_all()

    def _recall(self) -> None:
        """Have the piece that has run for longest given back, because a thread has nothing to do.

        Of four idle threads one asks for that, because what comes back is enough for several.
        """
        if self._is_told_to_stop or self._machine.is_stopping or self._machine.is_outstanding:
            return
        idle = self.threads - self._machine.running
        asked = sum(seat.is_recalled and seat.piece_began is not None for seat in self._seats)
        before = time.perf_counter() - LEAST_S
        long = [s for s in self._seats if not s.is_recalled and s.piece_began is not None and s.piece_began < before]
        if long and 4 * asked < idle:
            longest = min(long, key=lambda seat: seat.piece_began or math.inf)
            longest.is_recalled = True
            longest.session.engine.stop()
