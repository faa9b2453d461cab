"""All cores of this machine for the proof: threads of this process at first, and processes if there are many rows."""

from __future__ import annotations

from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.slices import first_use
from bicliques.pipeline.workers.pool import Pool
from bicliques.pipeline.workers.thread_pool import InThreads
from bicliques.schemas.platform import CORES, Platform

#: On fewer cores threads are nearly as fast. Four processes read three times as many rows per second as four threads.
CORES_WORTH_PROCESSES = 4
#: Each process computes the hashes of all vertices for itself, which takes 8 bytes per vertex and some time.
MOST_VERTICES = 1 << 21


def are_faster(n_vertices: int, pool: Pool, platform: Platform, on_device: bool) -> bool:
    """Whether workers of their own read rows faster than `pool`, which mined them on this machine.

    Parameters
    ----------
    n_vertices : int
        Vertices of both sides of the graph whose rows are read.
    pool : Pool
    platform : Platform
        What the engine of the pool runs on.
    on_device : bool
        Whether a GPU reads.
    """
    if platform.leaves_cores:
        return pool.has_threads or not on_device
    return pool.has_threads and _are_worth_processes(n_vertices)


def _are_worth_processes(n_vertices: int) -> bool:
    return count_cores() >= CORES_WORTH_PROCESSES and n_vertices <= MOST_VERTICES


def on_all_cores(n_vertices: int) -> Pool:
    """A pool with a thread per core. After `grow` it has a process per core, if they are worth it.

    Parameters
    ----------
    n_vertices : int
        Vertices of both sides of the graph whose rows are read.
    """
    n = count_cores()
    if not _are_worth_processes(n_vertices):
        return InThreads(n)

    from bicliques.pipeline.workers.processes import Processes  # only where there may be many rows

    return Processes([None] * n, CORES, "meanwhile", at_once=False, get_ready=first_use.before_proving)
