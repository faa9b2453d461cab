"""Slices that workers of any process can be given instead of the real ones."""

import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

from bicliques.pipeline.slices.ending import may_end
from bicliques.pipeline.slices.shared_slice import mine_slice
from bicliques.pipeline.slices.slice_search import SliceSearch
from bicliques.pipeline.slices.worker import SliceDone, SliceTask
from bicliques.schemas.work import Subtrees

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
    As soon as a file ``go`` is beside the folder of the run, slices are as they would be without this.
    """
    return mine_slice(_after_a_while(task))


def _after_a_while(task: SliceTask) -> SliceTask:
    if (Path(task.folder).parent / "go").exists():
        return task
    told = threading.Event()
    with may_end(told.set):
        told.wait(0.2)
    return replace(task, limits=replace(task.limits, seconds=None, rows=15))


def held_together(task: SliceTask) -> SliceDone:
    """Mine a slice on all threads. Each notes that it has mined a piece, and waits for ``go``, or to be told to end.

    A note is a file ``mined-PROCESS-THREAD`` beside the folder of the run.
    """
    beside, all_of = Path(task.folder).parent, SliceSearch.all_of

    def held(self: SliceSearch, work: Subtrees, n_probes: int) -> None:
        all_of(self, work, n_probes)
        (beside / f"mined-{os.getpid()}-{threading.get_ident()}").touch()
        while not (beside / "go").exists() and not self._is_asked_to_stop:
            time.sleep(0.02)

    with mock.patch.object(SliceSearch, "all_of", held):
        return mine_slice(task)
