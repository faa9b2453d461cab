"""Writes ledger entries in several threads, because a commit mostly waits for the disk, and workers must not wait."""

from __future__ import annotations

import queue
from concurrent import futures
from contextlib import suppress
from typing import Any

from bicliques.pipeline.run.ledger import Ledger
from bicliques.schemas.manifest import LedgerEntry

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

        Raises
        ------
        ResourceError
            If the disk is full.
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
