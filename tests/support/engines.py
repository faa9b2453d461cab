"""Engines that are not what they are called: a GPU that is not there, an engine that cannot run."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from bicliques.kernels import engines
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.gpu.cuda import CUDA
from bicliques.pipeline.slices import worker
from bicliques.schemas.bicliques import Emit
from bicliques.schemas.platform import EngineKind, Platform
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Engine, Slice, Subtrees


def nothing() -> None:
    pass


#: A GPU in every respect that whoever runs engines can ask about, but that it is always there and has no counter.
TOY_GPU = replace(CUDA, why_absent=nothing, release=nothing, energy_counter=None)


def kind_of(
    name: str, make: Callable[[int], Engine] | None = None, platform: Platform | None = None, **known: Any
) -> EngineKind:
    """The engine of that name, made in another way, on another platform, or known for something else."""
    kind = engines.kind(name)
    return replace(kind, make=make or kind.make, platform=platform or kind.platform, **known)


def toy_kind(platform: Platform = TOY_GPU, make: Callable[[int], Engine] = lambda halvings: CpuEngine()) -> EngineKind:
    """``bitmatrix`` on a GPU that is not there: the CPU engine, unless it is made in another way."""
    return kind_of("bitmatrix", make, platform, why_not=nothing)


def unable(name: str, why_not: str | None) -> EngineKind:
    """The reference engine under another name, which cannot run here for that reason; it can for None."""
    return replace(engines.kind("reference"), name=name, why_not=lambda: why_not)


@contextmanager
def registered(kind: EngineKind) -> Iterator[EngineKind]:
    """`engines.register` an engine until the block ends; one of the same name is back afterwards."""
    before = dict(engines._KINDS)
    engines.register(kind)
    try:
        yield kind
    finally:
        engines._KINDS.clear()
        engines._KINDS.update(before)


@dataclass
class FakeGpu:
    """A GPU that is not there. It notes what its engines do, and says when two search at a time.

    Parameters
    ----------
    log : list of (what, number)
        ``made`` with the halvings, ``alive`` with the engines that there were still then, ``searched`` with the nodes,
        ``released``.
    before_search : callable
        (engine, work) -> None; it may raise.
    platform : Platform
    """

    log: list[tuple[str, int]] = field(default_factory=list)
    before_search: Callable[[FakeGpuEngine, Subtrees], None] = lambda engine, work: None
    platform: Platform = TOY_GPU
    searching: threading.Lock = field(default_factory=threading.Lock)
    engines: list[weakref.ref[FakeGpuEngine]] = field(default_factory=list)

    @property
    def kind(self) -> EngineKind:
        """``bitmatrix`` on this device."""
        platform = replace(self.platform, release=lambda: self.log.append(("released", 0)))
        return toy_kind(platform, lambda halvings: FakeGpuEngine(self, halvings))


class FakeGpuEngine:
    """The CPU engine on a `FakeGpu`."""

    name = "bitmatrix"

    def __init__(self, gpu: FakeGpu, halvings: int):
        self.gpu, self.halvings, self.engine = gpu, halvings, CpuEngine()
        gpu.log.append(("made", halvings))
        gpu.log.append(("alive", sum(other() is not None for other in gpu.engines)))
        gpu.engines.append(weakref.ref(self))

    def mine(self, graph: Any, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        """As the CPU engine."""
        assert self.gpu.searching.acquire(blocking=False), "two slices search on one GPU"
        try:
            self.gpu.log.append(("searched", len(subtrees)))
            self.gpu.before_search(self, subtrees)
            return self.engine.mine(graph, subtrees, search, limits, emit)
        finally:
            self.gpu.searching.release()

    def stop(self) -> None:
        """As the CPU engine."""
        self.engine.stop()


@contextmanager
def fake_gpu(platform: Platform = TOY_GPU) -> Iterator[FakeGpu]:
    """``bitmatrix`` runs on a `FakeGpu` until the block ends."""
    gpu = FakeGpu(platform=platform)
    with registered(gpu.kind):
        try:
            yield gpu
        finally:
            worker.forget()
