"""The timeline of the page: what every worker did when, from the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bicliques.schemas.facts import MiningSession
from bicliques.schemas.manifest import LedgerEntry

#: If there are more blocks, those are joined that have the smallest gaps.
_MOST_BLOCKS = 600


@dataclass(frozen=True)
class Block:
    """A slice, or several slices of one worker with hardly any time between them.

    Parameters
    ----------
    start, stop : float
        Begin and end on the axis, in seconds.
    busy, writing : float
        Seconds in slices, and the part of them in which the search waited for output.
    slices, rows : int
        Number of slices, and of the bicliques that they found.
    first, last : int
        Numbers of the first and the last slice.
    """

    start: float
    stop: float
    busy: float
    writing: float
    slices: int
    rows: int
    first: int
    last: int


@dataclass(frozen=True)
class Lane:
    """The blocks of one worker, and the share of its time in which it was busy.

    Parameters
    ----------
    busy_share : float
        0 to 1. In each session the worker's time goes from the beginning of its first slice to the end of the session.
    """

    worker: str
    blocks: tuple[Block, ...]
    busy_share: float


@dataclass(frozen=True)
class Stretch:
    """A session of mining: its begin and end on the axis, in seconds, and how it ended."""

    start: float
    stop: float
    outcome: str


@dataclass(frozen=True)
class Timeline:
    """All sessions one after the other on one axis. The time between them is left out."""

    sessions: tuple[Stretch, ...]
    lanes: tuple[Lane, ...]

    @property
    def seconds(self) -> float:
        """Length of the axis, in seconds."""
        return self.sessions[-1].stop if self.sessions else 0.0


def timeline(entries: Sequence[LedgerEntry], sessions: Sequence[MiningSession], most_lanes: int = 64) -> Timeline:
    """The timeline of a run. Times of slices are by the clocks of the workers.

    Parameters
    ----------
    sessions : sequence of MiningSession
        A slice belongs to the last session that began before it.
    most_lanes : int
        Largest number of lanes. The busiest workers get one.
    """
    if not entries:
        return Timeline((), ())
    begins = sorted(session.began for session in sessions) or [min(entry.result.began for entry in entries)]
    of_session: list[list[LedgerEntry]] = [[] for _ in begins]
    for entry in entries:
        k = max((k for k, began in enumerate(begins) if began <= entry.result.began + 1.0), default=0)
        of_session[k].append(entry)
    stretches: list[Stretch] = []
    blocks: dict[str, list[Block]] = {}
    present: dict[str, float] = {}
    offset = 0.0
    for k, own in enumerate(of_session):
        seconds, outcome = (sessions[k].seconds, sessions[k].outcome) if k < len(sessions) else (0.0, "failed")
        begin = min([begins[k], *(entry.result.began for entry in own)])
        length = max([seconds, *(entry.result.began + entry.result.seconds - begin for entry in own)])
        if length <= 0:
            continue
        stretches.append(Stretch(offset, offset + length, outcome))
        for entry in own:
            blocks.setdefault(entry.result.worker, []).append(_block(entry, offset - begin))
        for worker in {entry.result.worker for entry in own}:
            first = min(
                entry.result.began for entry in own if entry.result.worker == worker
            )  # before that the worker was being started
            present[worker] = present.get(worker, 0.0) + length - (first - begin)
        offset += length
    busy = {worker: sum(block.busy for block in own) for worker, own in blocks.items()}
    shown = sorted(blocks, key=lambda worker: -busy[worker])[:most_lanes]
    joined, width = {worker: _joined(blocks[worker], 0.0) for worker in shown}, offset / 1000
    while sum(map(len, joined.values())) > max(_MOST_BLOCKS, len(shown)) and width < 2 * offset:
        joined, width = {worker: _joined(blocks[worker], width) for worker in shown}, 2 * width
    lanes = [Lane(worker, joined[worker], min(busy[worker] / max(present[worker], 1e-9), 1.0)) for worker in shown]
    return Timeline(tuple(stretches), tuple(lanes))


def _block(entry: LedgerEntry, shift: float) -> Block:
    start, writing = entry.result.began + shift, entry.result.stats.writing_seconds
    stop = start + entry.result.seconds
    return Block(
        start, stop, entry.result.seconds, writing, 1, entry.result.total.seen, entry.result.slice, entry.result.slice
    )


def _joined(blocks: list[Block], width: float) -> tuple[Block, ...]:
    joined: list[Block] = []
    for block in sorted(blocks, key=lambda block: block.start):
        last = joined[-1] if joined else None
        if last is not None and width > 0 and block.start - last.stop < width and block.stop - last.start < 8 * width:
            joined[-1] = replace(
                last,
                stop=max(last.stop, block.stop),
                busy=last.busy + block.busy,
                writing=last.writing + block.writing,
                slices=last.slices + block.slices,
                rows=last.rows + block.rows,
                last=block.last,
            )
        else:
            joined.append(block)
    return tuple(joined)
