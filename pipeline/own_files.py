"""The names that a run gives to the files in ``bicliques/`` and ``ledger/``: nothing else there is ever deleted."""

from __future__ import annotations

import re

__all__ = ["is_entry", "is_part"]

_PART = re.compile(r"part-\d{6,}-[0-9a-f]{12}-\d+\.parquet|\.part-\d{6,}-[0-9a-f]{12}-\d+\.tmp")
_ENTRY = re.compile(r"(?:0|[1-9]\d*)\.json")


def is_part(name: str) -> bool:
    """Whether a writer gives such names to its files, finished or not."""
    return _PART.fullmatch(name) is not None


def is_entry(name: str) -> bool:
    """Whether a ledger entry has such a name."""
    return _ENTRY.fullmatch(name) is not None
