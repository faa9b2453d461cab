"""Slices that workers of any process can be given instead of the real ones."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

from pipeline.slices.ending import may_end
from pipeline.slices.worker import SliceDone, SliceTask, mine_slice

#: Seconds that a held slice needs to hand itself back, as one of a GPU does whose kernel has to come to a safe point.
HANDING_BACK_S = 3.0


def held_slice(task: SliceTask) -> SliceDone:
    """Mine a slice when a file ``go`` is beside the folder of the run, or a while after the process is told to end."""
    told, go = threading.Event(), Path(task.folder).parent / "go"
    with may_end(told.set):
        while not told.wait(0.02) and not go.exists():
            pass
    if told.is_set():
        time.sleep(HANDING_BACK_S)
    return mine_slice(task)


def short_slice(task: SliceTask) -> SliceDone:
    """Mine fifteen bicliques, however long that takes. Before it, wait a little, unless the process is told to end.

    So the number of slices does not depend on how busy the machine is, and a worker mostly has a slice in hand.
    """
    told = threading.Event()
    with may_end(told.set):
        told.wait(0.2)
    return mine_slice(replace(task, limits=replace(task.limits, seconds=None, rows=15)))
