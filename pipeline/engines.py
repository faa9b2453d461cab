"""Engines by name: which there are, which can run here and why not, and what they need.

Workers look an engine up by its name; no engine object crosses a process border.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np

from kernels.cpu.engine import CpuEngine
from kernels.cpu.workspace import Sizes, allocate, graph_arrays
from kernels.reference import ReferenceEngine
from schemas.errors import InputError, ResourceError
from schemas.graph import MiningGraph
from schemas.work import Engine, Limits, Search, Subtrees

__all__ = ["AUTO", "Choice", "EngineKind", "choose", "compile_engine", "kind", "kinds", "will_compile"]

#: Let `choose` take the first engine of its list that can run.
AUTO = "auto"


@dataclass(frozen=True)
class EngineKind:
    """What the pipeline knows of an engine before it makes one.

    Parameters
    ----------
    name : str
    description : str
        One line for ``bicliques formats``.
    make : callable
        () -> engine; one engine serves one thread.
    why_not : callable
        () -> one clause saying why it cannot run in this process, or None when it can.
    workspace_bytes : callable
        (graph, search) -> memory of one engine besides the graph, in bytes; it does not depend on the results.
    """

    name: str
    description: str
    make: Callable[[], Engine]
    why_not: Callable[[], str | None]
    workspace_bytes: Callable[[MiningGraph, Search], int]


class Choice(NamedTuple):
    """The engine of a run, and why it is this one."""

    name: str
    reason: str


def _cpu_workspace(graph: MiningGraph, search: Search) -> int:
    arrays = [array for group in allocate(graph, search, Sizes()) for array in group]
    return sum(array.nbytes for array in arrays) + sum(a.nbytes for a in graph_arrays(graph)[-2:])


_KINDS = {
    kind.name: kind
    for kind in (
        EngineKind("cpu", "compiled bit-matrix search, one core a worker", CpuEngine, lambda: None, _cpu_workspace),
        EngineKind(
            "reference",
            "the definition in plain Python, for graphs of a few hundred edges",
            ReferenceEngine,
            lambda: None,
            lambda graph, search: 400 * graph.n_edges + (1 << 20),
        ),
    )
}

#: What ``auto`` tries, the fastest first.
_PREFERENCE = ("cpu",)


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


def choose(name: str) -> Choice:
    """The engine to use in this process for a name the user gave.

    Raises
    ------
    InputError
        If there is no such engine.
    ResourceError
        If it cannot run here; only ``auto`` goes on to the next one, and says so.
    """
    if name != AUTO:
        reason = kind(name).why_not()
        if reason:
            raise ResourceError(f"engine {name} cannot run here: {reason}; choose another one, or auto")
        return Choice(name, "asked for")
    passed_over: list[str] = []
    for candidate in _PREFERENCE:
        reason = kind(candidate).why_not()
        if reason is None:
            return Choice(candidate, "; ".join(["the fastest that can run here", *passed_over]))
        passed_over.append(f"{candidate} cannot: {reason}")
    raise ResourceError(f"no engine can run here: {'; '.join(passed_over)}")


def will_compile(name: str) -> bool:
    """Whether the first use of an engine in this environment is still to come: about half a minute."""
    outermost = "explore.explore-*.nbi"  # written when everything it calls has been compiled
    return name == CpuEngine.name and not any(Path(numba.config.CACHE_DIR).glob(f"*/{outermost}"))


def compile_engine(name: str) -> None:
    """Compile an engine once, so that workers that start together find the machine code on disk."""
    one, offsets = np.zeros(1, np.int32), np.array([0, 1], np.int64)
    edge = MiningGraph("left", 1, 1, offsets, one, offsets, one, offsets, one, offsets, one)
    kind(name).make().mine(edge, Subtrees.of_roots(one), Search(), Limits(), lambda _: None)
