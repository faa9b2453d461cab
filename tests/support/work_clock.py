"""A clock that counts the work of the CPU engine, for tests of what ends after some time."""

import time
from typing import Any

import pytest

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.pipeline.estimate import sample
from bicliques.schemas.bicliques import Emit
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Slice, Subtrees

#: Seconds that a call and a step of the CPU engine take by this clock, and the steps between two of its looks.
_CALL_S, _STEP_S, _STEPS = 1e-3, 2e-6, 10_000


class Work:
    """A clock that counts the steps of the CPU engine, and the seconds that building the graph of the run took."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self._mine = 0.0, CpuEngine.mine
        monkeypatch.setattr(CpuEngine, "mine", lambda *arguments: self._counted(*arguments))
        monkeypatch.setattr(sample, "with_thresholds", self._built(sample.with_thresholds))
        for clock in ("perf_counter", "thread_time"):
            monkeypatch.setattr(time, clock, lambda: self.now)

    def _counted(
        self, engine: CpuEngine, graph: MiningGraph, work: Subtrees, search: Search, limits: Limits, emit: Emit
    ) -> Slice:
        """As the engine does, which looks at the clock after some steps. To open a hub may take many more."""
        total, began = None, self.now
        self.now += _CALL_S
        while True:
            rows = None if limits.rows is None else limits.rows - (total.seen if total else 0)
            found = self._mine(engine, graph, work, search, Limits(-1.0, rows), emit)
            assert engine._memory is not None
            self.now += (_STEPS - int(engine._memory[1].state[0]["steps"])) * _STEP_S
            total, work = found.total if total is None else total + found.total, found.left_over
            late = limits.seconds is not None and self.now - began > limits.seconds
            if late or not len(work) or (rows is not None and found.count == rows):
                return Slice(total, work)

    def _built(self, build: Any) -> Any:
        def counted(run: Any, *arguments: Any) -> MiningGraph:
            self.now += run.built["seconds"]
            graph: MiningGraph = build(run, *arguments)
            return graph

        return counted
