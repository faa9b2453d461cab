"""Logs what happens to slices while the driver mines: how fast they are, which are late, and which failed."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from bicliques.pipeline.dealing.schedule import Start
from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.run.progress import OnProgress, Progress, number
from bicliques.pipeline.workers.thread_pool import Pool
from bicliques.schemas.manifest import SliceResult

logger = logging.getLogger(__name__)

#: A slice is late when it has taken `_FACTOR` times the seconds it was given, and `GRACE_S` seconds more. It needs some
#: extra time, because it may wait for its turn on a GPU, and writes after it has searched.
_FACTOR, GRACE_S = 4.0, 30.0


@dataclass
class _Running:
    since: float
    seconds: float
    attempt: int
    late_at: float


class Watch:
    """Follows the slices of one session.

    Parameters
    ----------
    on_progress : callable
        Called with a note of the address of the Dask dashboard, once there is one.
    """

    def __init__(self, pool: Pool, on_progress: OnProgress):
        self._pool, self._on_progress = pool, on_progress
        self._running: dict[int, _Running] = {}
        self._dashboard = ""

    def started(self, start: Start, seconds: float) -> None:
        """Note that a slice was given to the pool, for at most `seconds`."""
        now = time.monotonic()
        self._running[start.slice] = _Running(now, seconds, start.attempt, now + _FACTOR * seconds + GRACE_S)

    def returned(self, result: SliceResult, count: int, share: float) -> None:
        """Log that a slice is committed.

        Parameters
        ----------
        count : int
            Bicliques of the run so far.
        share : float
            Share of the estimated work that is done, 0 to 1.
        """
        self._running.pop(result.slice, None)
        rate = result.total.seen / max(result.seconds, 1e-3)
        text = (
            f"slice {result.slice}: {number(result.total.seen, 'biclique')} in {result.seconds:.2f} s ({rate:,.0f}/s)"
        )
        tell(
            logger,
            "slice",
            f"{text} by {result.worker}, {number(result.n_left_over, 'subtree')} left over",
            slice=result.slice,
            attempt=result.attempt,
            worker=result.worker,
            rows=result.total.seen,
            seconds=round(result.seconds, 6),
            rate=round(rate, 1),
            bytes=sum(part.bytes for part in result.parts),
            left_over=result.n_left_over,
            total_rows=count,
            share=round(share, 6),
        )

    def failed(self, number: int, reason: str) -> None:
        """Log that a slice was lost or ended in an error. The scheduler tries it again, or ends the run."""
        running = self._running.pop(number, None)
        attempt = running.attempt + 1 if running else 1
        text = f"slice {number} failed the {_ORDINALS.get(attempt, f'{attempt}th')} time: {reason}"
        tell(logger, "failed", text, logging.WARNING, slice=number, attempt=attempt, reason=reason)

    def look(self) -> None:
        """Log which slices are late, and which workers have them. Each is logged again when its time has doubled."""
        now = time.monotonic()
        for slice_number, running in self._running.items():
            if now < running.late_at:
                continue
            taken = now - running.since
            running.late_at = running.since + 2 * taken
            worker = self._pool.who(slice_number)
            where = f"is still with worker {worker}" if worker else "is with no worker yet"
            remedy = "; end that process if it is stuck: another one mines the slice again" if worker else ""
            text = f"slice {slice_number} was given {running.seconds:.1f} s and {where} after {taken:.0f} s{remedy}"
            tell(logger, "late", text, logging.WARNING, slice=slice_number, worker=worker, seconds=round(taken, 1))
        dashboard = self._pool.dashboard()
        if dashboard != self._dashboard:
            self._dashboard = dashboard
            tell(logger, "dashboard", f"Dask dashboard: {dashboard}", address=dashboard)
            self._on_progress(Progress("mine", note=f"Dask dashboard: {dashboard}"))


_ORDINALS = {1: "first", 2: "second", 3: "third"}
