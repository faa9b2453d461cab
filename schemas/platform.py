"""Engines before they are made, and the platforms that they run on. `CORES` is here, and CUDA is in `kernels.gpu.cuda`.

Each engine has its `EngineKind` in its room, in ``kind.py``. Such a module imports no compiler and no GPU library,
because listing engines must not load them. Its functions import the engine when they are called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bicliques.schemas.search import JobName, Search

if TYPE_CHECKING:
    from bicliques.schemas.graph import MiningGraph
    from bicliques.schemas.work import Engine, Subtrees


@dataclass(frozen=True, kw_only=True)
class Platform:
    """What an engine runs on, and what follows from that. The pipeline reads these fields, and never asks for the name.

    Parameters
    ----------
    name : str
        One word, by which `pipeline.workers.opening` finds how its workers start.
    devices : str
        Name of its devices where the manifest and the page give their energy, as ``gpus``.
    why_absent : callable
        () -> one clause that says why this process has no such device, or None when it has one.
    release : callable
        () -> None. It returns memory that engines no longer use to the device.
    free_bytes : callable
        () -> bytes of a device of this process that can still be allocated. None where memory is no question.
    wake : callable
        (only_first) -> None. If it takes time until a device answers, that time begins to run, and the caller does not
        wait. `only_first`: this process will use no other device than the first.
    shares_engine : bool
        Whether all threads of a process take turns on one engine, because the memory of a device holds only one.
        Otherwise each thread has its own.
    slices_in_hand : int
        Slices that an engine has at a time. The second of two is searched while the first is written, so the time for
        closing the last parts does not count for a slice.
    most_halvings : int
        How often an engine that ran out of device memory is replaced by one with half of it. 0 if it uses no device
        memory.
    timed_roots : int
        Roots of a slice that are mined alone and timed. None where one root at a time would leave a device nearly idle.
    leaves_cores : bool
        Whether the processor cores are free while engines search and afterwards. Then they encode results on many
        threads, and read them back.
    is_used_by_driver : bool
        Whether the driver mines an edge before workers start, so that they find machine code on disk. On a device it
        would take memory from the workers.
    works_with_cudf : bool
        Whether cuDF can encode the arrays of its engines.
    energy_counter : str or None
        Counter of the energy of a device, a name of `pipeline.slices.power.COUNTERS`. None if there is none.
    fatal_errors : frozenset of str
        Names of the exceptions after which a process cannot use its device any more.
    """

    name: str
    devices: str
    why_absent: Callable[[], str | None]
    release: Callable[[], None]
    shares_engine: bool
    slices_in_hand: int
    most_halvings: int
    timed_roots: int
    leaves_cores: bool
    is_used_by_driver: bool
    works_with_cudf: bool = False
    energy_counter: str | None = None
    free_bytes: Callable[[], int | None] = lambda: None
    wake: Callable[[bool], None] = lambda only_first: None
    fatal_errors: frozenset[str] = frozenset()


def _never_absent() -> str | None:  # by name: workers of Dask get it, whose Python may be another
    return None


#: Processor cores with one engine each. Their energy is that of the machine, which the driver reads.
CORES = Platform(
    name="cores",
    devices="cores",
    why_absent=_never_absent,
    release=lambda: None,
    shares_engine=False,
    slices_in_hand=1,
    most_halvings=0,
    timed_roots=8,
    leaves_cores=False,
    is_used_by_driver=True,
)


@dataclass(frozen=True)
class EngineKind:
    """The description of an engine, which the pipeline reads before it makes one.

    Parameters
    ----------
    description : str
        One line for ``bicliques formats``.
    platform : Platform
        The platform that it runs on.
    make : callable
        (halvings) -> an engine with its device memory halved so many times. It serves one thread at a time.
    why_not : callable
        () -> one clause that says why it cannot run in this process, or None when it can.
    workspace_bytes : callable
        (graph, search) -> main memory of one engine besides the graph, in bytes. It does not depend on the results.
    device_bytes : callable
        (graph, search, halvings=0) -> device memory of one engine, halved so many times, as it begins, besides scratch
        memory, of which it takes what is there. In bytes; 0 without a device.
    scratch_share : float
        Most of the memory that is free on its device then, which the scratch memory of its search takes.
    will_compile : callable
        (search) -> whether the next such search compiles the engine, which takes about ten seconds.
    jobs : frozenset of JobName
        Names of the jobs (`schemas.jobs`) that it can do.
    counts_sizes : bool
        Whether it can do a search with ``sizes``.
    prepare : callable
        (graph, nodes, search) -> the same nodes, and with them what the engine begins a search of them with, if that
        takes time but no device. The engine takes nodes that are not prepared, too.
    """

    name: str
    description: str
    platform: Platform
    make: Callable[[int], Engine]
    why_not: Callable[[], str | None]
    workspace_bytes: Callable[[MiningGraph, Search], int]
    device_bytes: Callable[..., int] = lambda graph, search, halvings=0: 0
    scratch_share: float = 0.0
    will_compile: Callable[[Search], bool] = lambda search: False
    jobs: frozenset[JobName] = frozenset({"all", "vertices"})
    counts_sizes: bool = True
    prepare: Callable[[MiningGraph, Subtrees, Search], Subtrees] = lambda graph, nodes, search: nodes

    def lacks(self, search: Search) -> str | None:
        """Why it cannot do this search, in one clause. None when it can."""
        from bicliques.schemas.jobs import job_of  # not before it is needed: it imports NumPy and Arrow

        if (job := job_of(search).name) not in self.jobs:
            return f"it cannot do the job {job!r}"
        return "it does not count bicliques by size" if search.sizes and not self.counts_sizes else None
