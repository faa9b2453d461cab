"""Engines by name: which there are, which can run here and why not, and what they need.

Workers look an engine up by its name; no engine object crosses a process border. An engine's module is
imported when the engine is made, because compilers and GPU libraries take a second or more to import.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from schemas.errors import InputError, ResourceError
from schemas.graph import MiningGraph
from schemas.jobs import AllMaximal, LargestFew, job_of
from schemas.work import Engine, Limits, Search, Subtrees

__all__ = [
    "AUTO",
    "MOST_HALVINGS",
    "Choice",
    "EngineKind",
    "Place",
    "choose",
    "compile_engine",
    "compile_proof",
    "here",
    "kind",
    "kinds",
]

#: Let `choose` take the first engine of its list that can run.
AUTO = "auto"
#: How often the memory of an engine on a device is halved before it is given up: to a sixteenth.
MOST_HALVINGS = 4

#: What one engine occupies, so how many workers are right: a processor core each, or a GPU each.
Place = Literal["core", "gpu"]


@dataclass(frozen=True)
class EngineKind:
    """What the pipeline knows of an engine before it makes one.

    Parameters
    ----------
    name : str
    description : str
        One line for ``bicliques formats``.
    place : Place
    make : callable
        (halvings) -> engine, with its device memory halved so often; one engine serves one thread at a time.
    why_not : callable
        () -> one clause saying why it cannot run in this process, or None when it can.
    workspace_bytes : callable
        (graph, search) -> main memory of one engine besides the graph, in bytes; it does not depend on the results.
    will_compile : callable
        () -> whether its first use in this environment, which takes about half a minute, is still to come.
    release : callable
        () -> None; give memory that engines no longer use back to the device.
    jobs : frozenset of str
        Names of the jobs (`schemas.jobs`) that it can do.
    counts_sizes : bool
        Whether it can do a search with ``sizes``.
    """

    name: str
    description: str
    place: Place
    make: Callable[[int], Engine]
    why_not: Callable[[], str | None]
    workspace_bytes: Callable[[MiningGraph, Search], int]
    will_compile: Callable[[], bool] = lambda: False
    release: Callable[[], None] = lambda: None
    jobs: frozenset[str] = frozenset({AllMaximal.name})
    counts_sizes: bool = True

    def lacks(self, search: Search) -> str | None:
        """Why it cannot do this search, in one clause; None when it can."""
        if (job := job_of(search).name) not in self.jobs:
            return f"it cannot do the job {job!r}"
        return "it does not count bicliques by size" if search.sizes and not self.counts_sizes else None


class Choice(NamedTuple):
    """The engine of a run, why it is this one, and whether a faster one had to be passed over."""

    name: str
    reason: str
    is_fallback: bool = False


def _make_cpu(halvings: int) -> Engine:
    from kernels.cpu.engine import CpuEngine

    return CpuEngine()


def _cpu_workspace(graph: MiningGraph, search: Search) -> int:
    from kernels.cpu.workspace import Sizes, allocate, graph_arrays

    arrays = [array for group in allocate(graph, search, Sizes()) for array in group]
    return sum(array.nbytes for array in arrays) + sum(a.nbytes for a in graph_arrays(graph)[-2:])


def _cpu_will_compile() -> bool:
    import numba

    import kernels.compiled.jit  # noqa: F401 - says where machine code is kept

    outermost = "explore.explore-*.nbi"  # written when everything it calls has been compiled
    return not any(Path(numba.config.CACHE_DIR).glob(f"*/{outermost}"))


def _make_bitmatrix(halvings: int) -> Engine:
    from kernels.bitmatrix.engine import BitMatrixEngine
    from kernels.bitmatrix.memory import GpuSizes

    return BitMatrixEngine(sizes=GpuSizes().halved(halvings))


def _release_gpu() -> None:
    from kernels.gpu.device import release_memory

    release_memory()


def _why_no_gpu() -> str | None:
    from kernels.gpu.device import why_no_gpu

    return why_no_gpu()


def _gpu_workspace(graph: MiningGraph, search: Search) -> int:
    """What is read back after a launch: lists of vertices, and the biclique records, once as read, twice unpacked."""
    from kernels.bitmatrix.memory import GpuSizes
    from kernels.gpu.records import RECORD

    sizes = GpuSizes()
    listing = search.mode == "list"
    return 4 * sizes.pool + (3 * (4 * sizes.values + RECORD.itemsize * sizes.records) if listing else 0)


def _make_cumbe(halvings: int) -> Engine:
    from kernels.cumbe.engine import CumbeEngine
    from kernels.cumbe.memory import CumbeSizes

    return CumbeEngine(sizes=CumbeSizes().halved(halvings))


def _make_reference(halvings: int) -> Engine:
    from kernels.reference.engine import ReferenceEngine

    return ReferenceEngine()


_ALL_JOBS = frozenset({AllMaximal.name, LargestFew.name})

#: In the order in which they are shown.
_KINDS = {
    kind.name: kind
    for kind in (
        EngineKind(
            "bitmatrix",
            "bit-matrix search on a CUDA GPU, one GPU per worker",
            "gpu",
            _make_bitmatrix,
            _why_no_gpu,
            _gpu_workspace,
            release=_release_gpu,
        ),
        EngineKind(
            "cpu",
            "compiled bit-matrix search, one core per worker",
            "core",
            _make_cpu,
            lambda: None,
            _cpu_workspace,
            _cpu_will_compile,
            jobs=_ALL_JOBS,
        ),
        EngineKind(
            "cumbe",
            "the published GPU algorithm cuMBE, to compare with",
            "gpu",
            _make_cumbe,
            _why_no_gpu,
            _gpu_workspace,
            release=_release_gpu,
        ),
        EngineKind(
            "reference",
            "the definition in plain Python, for graphs of a few hundred edges",
            "core",
            _make_reference,
            lambda: None,
            lambda graph, search: 400 * graph.n_edges + (1 << 20),
            jobs=_ALL_JOBS,
        ),
    )
}

#: What ``auto`` tries, the fastest first.
_PREFERENCE = ("bitmatrix", "cpu")


def kinds() -> tuple[EngineKind, ...]:
    """All engines, in the order in which they are shown."""
    return tuple(_KINDS.values())


def kind(name: str) -> EngineKind:
    """The engine of that name.

    Raises
    ------
    InputError
        If there is none.
    """
    if name not in _KINDS:
        raise InputError(f"there is no engine {name!r}; choose one of {', '.join([AUTO, *_KINDS])}")
    return _KINDS[name]


def here(kind: EngineKind) -> str | None:
    """Why an engine cannot run in this process; None when it can."""
    return kind.why_not()


def choose(name: str, why_not: Callable[[EngineKind], str | None] = here) -> Choice:
    """The engine to use for a name the user gave.

    Parameters
    ----------
    name : str
    why_not : callable
        Why an engine cannot run where the workers are, None when it can; asks this process by default.

    Raises
    ------
    InputError
        If there is no such engine.
    ResourceError
        If it cannot run here; only ``auto`` goes on to the next one, and says so.
    """
    if name != AUTO:
        reason = why_not(kind(name))
        if reason:
            raise ResourceError(f"engine {name} cannot run here: {reason}; choose another one, or auto")
        return Choice(name, "asked for")
    passed_over: list[str] = []
    for candidate in _PREFERENCE:
        reason = why_not(kind(candidate))
        if reason is None:
            return Choice(candidate, "; ".join(["the fastest that can run here", *passed_over]), bool(passed_over))
        passed_over.append(f"{candidate} cannot: {reason}")
    raise ResourceError(f"no engine can run here: {'; '.join(passed_over)}")


def compile_engine(name: str) -> None:
    """Compile an engine and its proof once, so that workers that start together find the machine code on disk."""
    one, offsets = np.zeros(1, np.int32), np.array([0, 1], np.int64)
    edge = MiningGraph("left", 1, 1, offsets, one, offsets, one, offsets, one, offsets, one)
    kind(name).make(MOST_HALVINGS).mine(edge, Subtrees.of_roots(one), Search(), Limits(), lambda _: None)
    compile_proof()


def compile_proof() -> None:
    """Compile what reads rows back once, or load it."""
    from kernels.compiled.lists import sum_lists

    one, offsets = np.zeros(1, np.int32), np.array([0, 1], np.int64)
    sum_lists(one, offsets, np.zeros(1, np.uint64), np.zeros(1, np.int64), np.zeros(1, np.uint64))
