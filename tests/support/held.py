"""Slices that workers of any process can be given instead of the real ones."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from pipeline.slices.ending import may_end
from pipeline.slices.worker import SliceDone, SliceTask, mine_slice


def held_slice(task: SliceTask) -> SliceDone:
    """Mine a slice when a file ``go`` is beside the folder of the run, or as soon as the process is told to end."""
    told, go = threading.Event(), Path(task.folder).parent / "go"
    with may_end(told.set):
        while not told.wait(0.02) and not go.exists():
            pass
    return mine_slice(task)


def short_slice(task: SliceTask) -> SliceDone:
    """Mine fifteen bicliques, however long that takes. Before it, wait a little, unless the process is told to end.

    So the number of slices does not depend on how busy the machine is, and a worker mostly has a slice in hand.
    """
    told = threading.Event()
    with may_end(told.set):
        told.wait(0.2)
    return mine_slice(replace(task, limits=replace(task.limits, seconds=None, rows=15)))
