"""The process that started this one. Without it this one has nobody to work for."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing import connection

__all__ = ["end_with_parent"]


def end_with_parent() -> None:
    """End this process when its parent has ended, even if that was killed. Otherwise it would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)
