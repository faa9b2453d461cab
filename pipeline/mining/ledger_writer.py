"""Writes ledger entries in several threads, because a commit mostly waits for the disk, and workers must not wait."""

from __future__ import annotations

from concurrent import futures
from typing import Any

from pipeline.run.ledger import Ledger
from schemas.manifest import LedgerEntry

__all__ = ["Commits"]

#: Entries that are written at a time. One entry takes two flushes to the disk, which took 6 to 12 ms when measured.
_THREADS = 8
#: Seconds that `Commits.ended` waits for an entry.
_PATIENCE_S = 0.01


class Commits:
    """The entries of a run's ledger that are being written."""

    def __init__(self, ledger: Ledger):
        self._ledger = ledger
        self._threads = futures.ThreadPoolExecutor(_THREADS, thread_name_prefix="commit")
        self._written: dict[futures.Future[None], Any] = {}

    def __len__(self) -> int:
        return len(self._written)

    def begin(self, entry: LedgerEntry, left_over: bytes, context: Any) -> None:
        """Start to write an entry. Once it is written, `ended` returns `context`."""
        self._written[self._threads.submit(self._ledger.commit, entry, left_over)] = context

    def ended(self) -> list[Any]:
        """Contexts of the entries that were written since the last call. Waits up to 10 ms for the first of them.

        Raises
        ------
        ResourceError
            If the disk is full.
        """
        if not self._written:
            return []
        done, _ = futures.wait(self._written, _PATIENCE_S, futures.FIRST_COMPLETED)
        ended = [self._written.pop(written) for written in done]
        for written in done:
            written.result()
        return ended

    def close(self) -> None:
        """Wait for the entries that are being written. They count, too."""
        self._threads.shutdown()
