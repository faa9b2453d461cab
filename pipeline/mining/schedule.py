"""The scheduler: a pure state machine. Events in, instructions out; no clock, no files, no cluster.

It knows work only as weights: a *source* is a sequence of nodes with an estimated weight each (the plan,
or the left-over of a slice), and a slice takes ranges of sources. The caller carries the instructions
out, commits what slices return, and tells it what came back.

- Left-overs are dealt before the plan, so that few of them are open at any time; the plan is in
  descending weight, so heavy roots go first.
- A slice is bounded by weight and by seconds, both a fraction of what is outstanding: slices get
  shorter towards the end, which therefore comes for all workers at about the same time.
- Under ``max_results`` every running slice has a budget of rows, and the budgets together never exceed
  what is still wanted.

Every event costs O(log n) amortised, whatever the number of roots.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pipeline.mining.instructions import Finish, Policy, Start
from pipeline.mining.work_source import Source
from schemas.manifest import Outcome, Range

__all__ = ["Scheduler"]


@dataclass
class _Dealt:
    """A slice that is running, or waits to be tried again."""

    took: tuple[Range, ...]
    weight: float
    attempt: int = 0
    rows: int | None = None


@dataclass
class _Rate:
    """Weight done a second by one worker: half of it is the last slice's, a quarter the one's before, in logarithms."""

    value: float | None = None

    def add(self, weight: float, seconds: float) -> None:
        new = weight / max(seconds, 1e-4)
        self.value = new if self.value is None else (self.value * new) ** 0.5


@dataclass
class Scheduler:
    """Deals slices to a number of equal workers, each of which may have more than one in hand.

    Parameters
    ----------
    policy : Policy
    first_slice : int
        Number of the next slice.
    total_weight : float
        Of the whole plan, for `share`.
    """

    policy: Policy = field(default_factory=Policy)
    first_slice: int = 0
    total_weight: float = 0.0

    def __post_init__(self) -> None:
        self._next = self.first_slice
        self._slots = self._workers = 0
        self._sources: dict[int, Source] = {}
        self._heap: list[tuple[bool, float, int]] = []  # left-overs before the plan, heavy ones first
        self._users: dict[int, int] = {}  # by source: slices that took from it and are not committed
        self._running: dict[int, _Dealt] = {}
        self._retry: deque[tuple[int, _Dealt]] = deque()
        self._rate = _Rate()
        self._busy_s = 0.0
        self._found = 0
        self._promised = 0  # rows of the budgets of running slices
        self._left = 0.0  # weight not done, running or not
        self._weight = 0.0  # weight not dealt
        self._nodes = 0  # nodes not dealt
        self._stop: Finish | None = None
        self.retries = 0

    def add_source(self, number: int, weights: np.ndarray, ranges: Iterable[tuple[int, int]], is_plan: bool) -> None:
        """Event: nodes to deal. `weights` are those of all nodes of the source, `ranges` the outstanding ones."""
        source = Source(number, weights, ranges)
        if source.n_left:
            self._sources[number] = source
            self._left += source.weight_left
            self._weight += source.weight_left
            self._nodes += source.n_left
            self._push(source, is_plan)

    def set_slots(self, slots: int, workers: int | None = None) -> list[Start | Finish]:
        """Event: so many slices may be dealt at a time; fewer than are running now is no harm.

        `workers` of them are worked for at a time, the others wait in the hands of a worker; None: all are.
        """
        self._slots, self._workers = slots, slots if workers is None else workers
        return self.deal()

    def returned(self, number: int, seconds: float, count: int, left_weights: np.ndarray) -> list[Start | Finish]:
        """Event: a slice came back and is committed; `left_weights` are those of its left-over nodes."""
        dealt = self._end(number)
        for source in {source for source, _, _ in dealt.took}:
            self._users[source] -= 1
            if self._users[source] == 0:
                del self._users[source]
        self._found += count
        self._left = max(self._left - dealt.weight, 0.0)
        self._busy_s += seconds
        left_weights = left_weights * min(1.0, dealt.weight / max(float(left_weights.sum()), 1e-300))
        if dealt.weight > 0:
            self._rate.add(max(dealt.weight - float(left_weights.sum()), 1e-3 * dealt.weight), seconds)
        self.add_source(number, left_weights, [(0, len(left_weights))], is_plan=False)
        return self.deal()

    def failed(self, number: int, reason: str) -> list[Start | Finish]:
        """Event: a slice failed, or its worker died; nothing of it counts."""
        dealt = self._end(number)
        dealt.attempt += 1
        self._retry.append((number, dealt))
        if dealt.attempt >= self.policy.attempts:
            text = f"slice {number} failed {dealt.attempt} times, the last time because: {reason}"
            return self.stop("failed", text)
        self.retries += 1
        return self.deal()

    def stop(self, outcome: Outcome, reason: str = "") -> list[Start | Finish]:
        """Event: deal no more; the run is over when what is running has returned."""
        if self._stop is None or outcome == "failed":
            self._stop = Finish(outcome, reason)
        return self.deal()

    def deal(self) -> list[Start | Finish]:
        """Start slices while slots are free; finish when nothing is running and nothing can be started."""
        instructions: list[Start | Finish] = []
        while self._stop is None and len(self._running) < self._slots and self.is_outstanding:
            rows = self._budget()
            if rows == 0:
                break
            instructions.append(self._start(rows))
        if not self._running and (ended := self._ended()):
            instructions.append(ended)
        return instructions

    @property
    def is_outstanding(self) -> bool:
        """Whether there is work that is not running."""
        return bool(self._retry or self._sources)

    @property
    def running(self) -> int:
        """Number of running slices."""
        return len(self._running)

    @property
    def share(self) -> float:
        """Share of the estimated work that is done, 0 to 1."""
        return 1.0 - min(self._left / self.total_weight, 1.0) if self.total_weight > 0 else 1.0

    @property
    def seconds_left(self) -> float:
        """How long what is not running will take all workers together; a guess, infinite before the first slice."""
        return self._weight / (self._rate.value * max(self._workers, 1)) if self._rate.value else math.inf

    def weight(self, number: int) -> float:
        """Estimated work of a running slice."""
        return self._running[number].weight

    def is_open(self, source: int) -> bool:
        """Whether nodes of a source are still to be dealt, or belong to a slice that is not committed."""
        return source in self._sources or source in self._users

    def pieces_wanted(self) -> int:
        """In how many nodes the next left-over should come, so that no slot stays idle; 0 for any."""
        return min(2 * self._slots, 256) if self._nodes < self._slots and self._slots > 1 else 0

    def _ended(self) -> Finish | None:
        is_late = self._stop is not None and self._stop.outcome == "time_limit"
        if not self.is_outstanding and (self._stop is None or is_late):
            return Finish("complete")  # also when the last slices were running as the time ended
        if self._stop is not None:
            return self._stop
        return Finish("max_results") if self._budget() == 0 else None

    def _end(self, number: int) -> _Dealt:
        dealt = self._running.pop(number)
        self._promised -= dealt.rows or 0
        return dealt

    def _start(self, rows: int | None) -> Start:
        seconds = self._seconds()
        if self._retry:
            number, dealt = self._retry.popleft()
        else:
            number, dealt = self._next, self._cut(seconds)
            self._next += 1
        dealt.rows = rows
        self._promised += rows or 0
        self._running[number] = dealt
        return Start(number, dealt.attempt, dealt.took, seconds, rows)

    def _budget(self) -> int | None:
        """Rows the next slice may list: half of an equal share, as what a slice does not use is dealt again."""
        if self.policy.max_results is None:
            return None
        free = max(self.policy.max_results - self._found - self._promised, 0)
        return min(free, max(1024, free // self._shares()))

    def _seconds(self) -> float:
        """Time for the next slice: a share of the outstanding work, within the policy.

        Weights may be wrong by any factor, so the run so far bounds it, too: never more than a twenty-fifth of it,
        or one heavy slice would keep the last of several workers busy alone (a single one may take a tenth, after
        which somebody looks for progress); never less than a hundredth, or all would be tiny. And never so little
        that the caller could not serve all workers in that time. Before the first slice has come back, many workers
        get short ones, to learn from; a single one has everything in hand, and would wait for what comes back.
        """
        policy, elapsed = self.policy, self._busy_s / max(self._workers, 1)
        pace = 2 * policy.event_seconds * self._workers
        fair = elapsed / (25 if self._workers > 1 else 10)
        longest = max(min(policy.max_seconds, max(4 * policy.min_seconds, fair)), pace)
        shortest = min(max(policy.min_seconds, elapsed / 100, pace), longest)
        if self._rate.value is None:
            return shortest if self._workers > 1 else longest
        return min(max(self._weight / self._rate.value / self._shares(), shortest), longest)

    def _shares(self) -> int:
        """In how many parts what is outstanding is thought to be dealt: two a worker.

        A single one gets all at once: what nobody has in hand waits until a slice is written, and a GPU with it.
        """
        return 2 * self._workers if self._workers > 1 else max(self._slots - len(self._running), 1)

    def _cut(self, seconds: float) -> _Dealt:
        """Take nodes from the sources, heaviest left-over first, for `seconds` at least.

        While there is much to deal, for four times as long: the slice's time bounds it, and what it does not reach
        comes back, whereas one whose nodes weigh too much ends early and costs an event.
        """
        rate, share = self._rate.value, self._weight / self._shares()
        target = share if rate is None else max(min(4 * rate * seconds, share), rate * seconds)
        took: list[Range] = []
        weight, nodes = 0.0, 0
        while self._heap and (not took or (weight < target and nodes < self.policy.max_nodes)):
            is_plan, _, number = heapq.heappop(self._heap)
            source = self._sources[number]
            start, stop, taken = source.take(target - weight, self.policy.max_nodes - nodes)
            took.append((number, start, stop))
            weight += taken
            nodes += stop - start
            if source.n_left:
                self._push(source, is_plan)
            else:
                del self._sources[number]
        for number in {number for number, _, _ in took}:
            self._users[number] = self._users.get(number, 0) + 1
        self._weight = max(self._weight - weight, 0.0) if self._sources else 0.0
        self._nodes -= nodes
        return _Dealt(tuple(took), weight)

    def _push(self, source: Source, is_plan: bool) -> None:
        heapq.heappush(self._heap, (is_plan, -source.weight_left, source.number))
