"""The description of an engine before it is made. Each engine has one in its room, in ``kind.py``.

Such a module imports no compiler and no GPU library, because listing engines must not load them. Its functions import
the engine when they are called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bicliques.schemas.platform import Platform
from bicliques.schemas.search import JobName, Search

if TYPE_CHECKING:
    from bicliques.schemas.graph import MiningGraph
    from bicliques.schemas.work import Engine, Subtrees


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
