"""Ledger entries written side by side: a commit is mostly waiting for the disk, and a thousand workers do not wait."""

from __future__ import annotations

from concurrent import futures
from typing import Any

from pipeline.run.ledger import Ledger
from schemas.manifest import LedgerEntry

__all__ = ["Commits"]

#: Entries written at a time; one takes two flushes to the disk, 6 to 12 ms as measured.
_THREADS = 8
#: Longest time to wait for one of them, in seconds.
_PATIENCE_S = 0.01


class Commits:
    """Entries on their way to the ledger of a run."""

    def __init__(self, ledger: Ledger):
        self._ledger = ledger
        self._threads = futures.ThreadPoolExecutor(_THREADS, thread_name_prefix="commit")
        self._written: dict[futures.Future[None], Any] = {}

    def __len__(self) -> int:
        return len(self._written)

    def begin(self, entry: LedgerEntry, left_over: bytes, context: Any) -> None:
        """Start to write an entry; `ended` gives `context` back once it counts."""
        self._written[self._threads.submit(self._ledger.commit, entry, left_over)] = context

    def ended(self) -> list[Any]:
        """Contexts of the entries that count by now; waits a moment if there are entries, but none has ended.

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
        """Wait for the entries that are being written: they count."""
        self._threads.shutdown()
