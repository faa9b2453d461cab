"""The scheduler: a state machine that gets events and returns instructions. It uses no clock, no files and no cluster.

The scheduler knows work only as weights. A *source* is a sequence of nodes, each with an estimated weight: the
plan, or the left-over of a slice. A slice takes ranges of sources. The caller carries the instructions out,
commits what slices return, and tells the scheduler what came back.

- Left-overs are dealt before the plan, so that few of them are open at any time. The plan is in descending
  weight, so that heavy roots go first.
- A slice takes from one band only (`schemas.bands`), because each band has a graph of its own.
- A slice is bounded by weight and by seconds. Both are a fraction of what is outstanding, so slices get shorter
  towards the end, and all workers end at about the same time.
- Under ``max_results`` every running slice has a budget of rows. The budgets together never exceed the number
  of rows that is still wanted.

Every event costs O(log n) amortised, where n is the number of nodes.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from bicliques.schemas.facts import Outcome
from bicliques.schemas.manifest import Range


@dataclass(frozen=True)
class Policy:
    """How slices are cut.

    Parameters
    ----------
    max_seconds, min_seconds : float
        Longest and shortest time of a slice, in seconds.
    max_results : int or None
        Number of rows that are still wanted. None: all.
    max_nodes : int
        Largest number of nodes of a slice.
    event_seconds : float
        Seconds that the caller needs to commit a slice and to deal the next one. The more workers there are, the longer
        slices have to be.
    attempts : int
        How often a slice is tried before the run fails.
    """

    max_seconds: float = 10.0
    min_seconds: float = 0.25
    max_results: int | None = None
    max_nodes: int = 1 << 16
    event_seconds: float = 0.0
    attempts: int = 3

    def of_sharing(self) -> Policy:
        """The same for workers whose threads share slices. These are longer, because threads wait at the end of one."""
        return replace(self, min_seconds=min(_SHARED_S, self.max_seconds))


#: `Policy.min_seconds` of workers whose threads share slices (docs/lab/scaling.md).
_SHARED_S = 1.0


@dataclass(frozen=True)
class Start:
    """Instruction: run a slice.

    Parameters
    ----------
    slice : int
        Number of the slice.
    attempt : int
        Number of earlier attempts at the slice, which failed.
    took : tuple of Range
        The nodes to search.
    seconds : float
        Longest time of the slice.
    rows : int or None
        Largest number of bicliques that the slice may find. None: any number.
    """

    slice: int
    attempt: int
    took: tuple[Range, ...]
    seconds: float
    rows: int | None


@dataclass(frozen=True)
class Finish:
    """Instruction: the run is over.

    Parameters
    ----------
    reason : str
        One sentence if the run failed, else empty.
    """

    outcome: Outcome
    reason: str = ""


class Source:
    """The outstanding nodes of one source.

    Parameters
    ----------
    number : int
        Number of the source, as in the ledger.
    weights : ndarray, shape (n,), float64
        Estimated work of every node, whether it is outstanding or not.
    ranges : iterable of (int, int)
        The outstanding nodes, as disjoint ranges from start to stop - 1. Each is of one band.
    band_at : callable
        Node -> its band.
    """

    def __init__(
        self,
        number: int,
        weights: np.ndarray,
        ranges: Iterable[tuple[int, int]],
        band_at: Callable[[int], int] = lambda node: 0,
    ):
        self.number = number
        self._band_at = band_at
        self._until = np.concatenate([np.zeros(1), np.cumsum(weights, dtype=np.float64)])
        self._ranges = sorted(ranges, reverse=True)
        self.n_left = sum(stop - start for start, stop in self._ranges)
        self.weight_left = float(sum(self._weight(start, stop) for start, stop in self._ranges))

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The outstanding nodes, as ranges in order."""
        return self._ranges[::-1]

    @property
    def band(self) -> int:
        """The band of the next node."""
        return self._band_at(self._ranges[-1][0])

    def take(self, weight: float, nodes: int) -> tuple[int, int, float]:
        """Remove nodes from the front of the first outstanding range.

        Parameters
        ----------
        weight : float
            Take nodes until their weights add up to this. The last one may exceed it.
        nodes : int
            Take at most so many nodes, but at least one.

        Returns
        -------
        start, stop : int
            The nodes taken: start to stop - 1.
        weight : float
            Weight of the nodes taken.
        """
        start, end = self._ranges.pop()
        enough = int(np.searchsorted(self._until, self._until[start] + weight, side="left"))
        stop = min(max(enough, start + 1), start + max(nodes, 1), end)
        if stop < end:
            self._ranges.append((stop, end))
        taken = self._weight(start, stop)
        self.n_left -= stop - start
        self.weight_left = max(self.weight_left - taken, 0.0) if self.n_left else 0.0
        return start, stop, taken

    def _weight(self, start: int, stop: int) -> float:
        return float(self._until[stop] - self._until[start])


#: A slice that took fewer seconds and left work over was ended by its worker, and says nothing of how fast workers are.
_TOO_SHORT_S = 0.01


@dataclass
class _Dealt:
    """A slice that is running, or that waits for another attempt."""

    took: tuple[Range, ...]
    weight: float
    attempt: int = 0
    rows: int | None = None


@dataclass
class _Rate:
    """Weight that one worker does per second: a mean over slices, in logarithms.

    The last slice counts for a half, the slice before it for a quarter, and so on.
    """

    value: float | None = None

    def add(self, weight: float, seconds: float) -> None:
        new = weight / max(seconds, 1e-4)
        self.value = new if self.value is None else (self.value * new) ** 0.5


@dataclass
class Scheduler:
    """Deals slices to a number of equal workers, each of which may have more than one in hand.

    Parameters
    ----------
    first_slice : int
        Number of the next slice.
    total_weight : float
        Weight of the whole plan, which `share` refers to.
    """

    policy: Policy = field(default_factory=Policy)
    first_slice: int = 0
    total_weight: float = 0.0

    def __post_init__(self) -> None:
        self._next = self.first_slice
        self._slots = self._workers = 0
        self._sources: dict[int, Source] = {}
        self._heap: list[tuple[bool, float, int]] = []  # left-overs before the plan, heavy ones first
        self._users: dict[int, int] = {}  # by source: number of slices that took from it and are not committed
        self._running: dict[int, _Dealt] = {}
        self._retry: deque[tuple[int, _Dealt]] = deque()
        self._rate = _Rate()
        self._busy_s = 0.0
        self._found = 0
        self._promised = 0  # rows in the budgets of running slices
        self._left = 0.0  # weight that is not done, whether it is running or not
        self._weight = 0.0  # weight that is not dealt
        self._nodes = 0  # number of nodes that are not dealt
        self._stop: Finish | None = None
        self.retries = 0

    def add_source(
        self,
        number: int,
        weights: np.ndarray,
        ranges: Iterable[tuple[int, int]],
        is_plan: bool,
        band_at: Callable[[int], int] = lambda node: 0,
    ) -> None:
        """Event: there are nodes to deal.

        Parameters
        ----------
        number : int
            Number of the source, as in the ledger.
        weights : ndarray, shape (n,), float64
            Estimated work of all nodes of the source.
        ranges : iterable of (int, int)
            The outstanding nodes, as disjoint ranges from start to stop - 1.
        is_plan : bool
            Whether the source is the plan, which is dealt after all left-overs.
        band_at : callable
            Node of the source -> its band. A slice takes nodes of one band, and so does a range.
        """
        source = Source(number, weights, ranges, band_at)
        if source.n_left:
            self._sources[number] = source
            self._left += source.weight_left
            self._weight += source.weight_left
            self._nodes += source.n_left
            self._push(source, is_plan)

    def set_slots(self, slots: int, workers: int | None = None) -> list[Start | Finish]:
        """Event: `slots` slices may be dealt at a time. It may be fewer than are running now.

        Of these, `workers` slices are searched at a time. The others wait at a worker, so that the worker has its next
        slice at hand. None: all `slots` slices are searched at a time.
        """
        self._slots, self._workers = slots, slots if workers is None else workers
        return self.deal()

    def returned(
        self, number: int, seconds: float, count: int, left_weights: np.ndarray, band: int = 0
    ) -> list[Start | Finish]:
        """Event: a slice came back and is committed.

        Parameters
        ----------
        number : int
            Number of the slice.
        seconds : float
            Time that the slice took.
        count : int
            Number of bicliques that the slice found.
        left_weights : ndarray, shape (n_left_over,), float64
            Estimated work of the nodes that it left over.
        band : int
            Band of the slice, and so of what it left over.
        """
        dealt = self._end(number)
        for source in {source for source, _, _ in dealt.took}:
            self._users[source] -= 1
            if self._users[source] == 0:
                del self._users[source]
        self._found += count
        self._left = max(self._left - dealt.weight, 0.0)
        self._busy_s += seconds
        left_weights = left_weights * min(1.0, dealt.weight / max(float(left_weights.sum()), 1e-300))
        ended_early = len(left_weights) > 0 and seconds < _TOO_SHORT_S
        if dealt.weight > 0 and not ended_early:
            self._rate.add(max(dealt.weight - float(left_weights.sum()), 1e-3 * dealt.weight), seconds)
        self.add_source(number, left_weights, [(0, len(left_weights))], is_plan=False, band_at=lambda node: band)
        return self.deal()

    def failed(self, number: int, reason: str) -> list[Start | Finish]:
        """Event: a slice failed, or its worker died. None of its results count."""
        dealt = self._end(number)
        dealt.attempt += 1
        self._retry.append((number, dealt))
        if dealt.attempt >= self.policy.attempts:
            text = f"slice {number} failed {dealt.attempt} times, the last time because: {reason}"
            return self.stop("failed", text)
        self.retries += 1
        return self.deal()

    def stop(self, outcome: Outcome, reason: str = "") -> list[Start | Finish]:
        """Event: deal no more slices. The run is over when the running slices have returned."""
        if self._stop is None or outcome == "failed":
            self._stop = Finish(outcome, reason)
        return self.deal()

    def deal(self) -> list[Start | Finish]:
        """Start slices while slots are free. Finish if no slice is running and none can be started."""
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
        """Whether there is work that is not done and not running."""
        return bool(self._retry or self._sources)

    @property
    def outstanding(self) -> list[Range]:
        """The nodes that are not done and not running."""
        waiting = [took for _, dealt in self._retry for took in dealt.took]
        return waiting + [(k, *nodes) for k, source in self._sources.items() for nodes in source.ranges]

    @property
    def is_stopping(self) -> bool:
        """Whether no more slices are dealt, whatever is outstanding."""
        return self._stop is not None

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
        """Seconds that all workers together need for the work that is not dealt: a guess, infinite at first."""
        return self._weight / (self._rate.value * max(self._workers, 1)) if self._rate.value else math.inf

    def weight(self, number: int) -> float:
        """Estimated work of a running slice."""
        return self._running[number].weight

    def is_open(self, source: int) -> bool:
        """Whether nodes of a source are still to be dealt, or are in a slice that is not committed."""
        return source in self._sources or source in self._users

    def pieces_wanted(self) -> int:
        """Into how many nodes the next left-over should be split, so that no slot stays idle. 0: any number."""
        return min(2 * self._slots, 256) if self._nodes < self._slots and self._slots > 1 else 0

    def _ended(self) -> Finish | None:
        is_late = self._stop is not None and self._stop.outcome == "time_limit"
        if not self.is_outstanding and (self._stop is None or is_late):
            return Finish("complete")  # also if the time limit came while the last slices were running
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
        """Number of rows that the next slice may find. None: any number.

        With several workers it is half of an equal share, because what a slice does not use is dealt again.
        """
        if self.policy.max_results is None:
            return None
        free = max(self.policy.max_results - self._found - self._promised, 0)
        return min(free, max(1024, free // self._shares()))

    def _seconds(self) -> float:
        """Seconds for the next slice: a share of the outstanding work, within the policy.

        Weights may be wrong by any factor, so the time that the run has taken so far bounds a slice, too:

        - With several workers a slice takes at most a twenty-fifth of that time. Otherwise one heavy slice could keep
          the last worker busy alone.
        - A single worker may take a tenth of that time, because somebody may wait to see progress.
        - A slice takes at least a hundredth of that time. Otherwise all slices would be tiny.
        - A slice takes at least as long as the caller needs to serve all workers once.

        Before the first slice has come back, several workers get short slices, from which the rate is learned. A single
        worker gets a long slice, because it has all work in hand and would only wait for the next one.
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
        """Number of slices into which the outstanding work is to be divided: two per worker.

        A single worker gets one slice for each free slot. Work that is not dealt would wait until a slice is written,
        and a GPU would wait with it.
        """
        return 2 * self._workers if self._workers > 1 else max(self._slots - len(self._running), 1)

    def _cut(self, seconds: float) -> _Dealt:
        """Take nodes from the sources, heaviest left-over first, that are estimated to take `seconds` at least.

        While there is much to deal, nodes for up to four times as long are taken. If that is too much, the slice ends
        after its time, and the rest comes back. If it were too little, because weights are too high, the slice would
        end early and cost the caller an event.
        """
        rate, share = self._rate.value, self._weight / self._shares()
        target = share if rate is None else max(min(4 * rate * seconds, share), rate * seconds)
        took: list[Range] = []
        weight, nodes, band = 0.0, 0, None
        while self._heap and (not took or (weight < target and nodes < self.policy.max_nodes)):
            source = self._sources[self._heap[0][-1]]
            if band not in (None, source.band):
                break
            band = source.band
            is_plan, _, number = heapq.heappop(self._heap)
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
