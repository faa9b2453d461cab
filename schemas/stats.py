"""Numbers of a slice, for people and for measurements. No result depends on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class EngineStats:
    """Numbers of calls of an engine. They can be added in any grouping; a ratio is computed at the end.

    Parameters
    ----------
    seconds : float
        Wall time of the calls.
    kernel_s, busy_kernel_s : float
        On a GPU, the time of its kernels, and that time weighted by the share of their warps or blocks that had work.
    launches, voided : int
        Number of kernel launches, and how many of them were void because a buffer was too short.
    cpu_nodes : int
        Nodes that the CPU engine got because they did not fit on the device.
    counters : dict of str to int
        Counters of one engine, as tests of candidates.
    phases : dict of str to float
        Seconds of `kernel_s` by phase, if the engine measures phases.
    device_bytes : int
        Most device memory that was in use, by all processes, when a call ended. 0 without a device.
    """

    seconds: float = 0.0
    kernel_s: float = 0.0
    busy_kernel_s: float = 0.0
    launches: int = 0
    voided: int = 0
    cpu_nodes: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    device_bytes: int = 0

    def __add__(self, other: EngineStats) -> EngineStats:
        return EngineStats(
            seconds=self.seconds + other.seconds,
            kernel_s=self.kernel_s + other.kernel_s,
            busy_kernel_s=self.busy_kernel_s + other.busy_kernel_s,
            launches=self.launches + other.launches,
            voided=self.voided + other.voided,
            cpu_nodes=self.cpu_nodes + other.cpu_nodes,
            counters={k: self.counters.get(k, 0) + other.counters.get(k, 0) for k in (self.counters | other.counters)},
            phases={k: self.phases.get(k, 0.0) + other.phases.get(k, 0.0) for k in (self.phases | other.phases)},
            device_bytes=max(self.device_bytes, other.device_bytes),
        )

    @property
    def busy_ratio(self) -> float:
        """Share of the warps or blocks of a GPU that had work, over the time of its kernels; 1 without kernels."""
        return self.busy_kernel_s / self.kernel_s if self.kernel_s else 1.0


@dataclass(frozen=True)
class SliceStats:
    """Numbers that a worker returns with the result of a slice.

    Parameters
    ----------
    writing_seconds, closing_seconds : float
        Seconds of the slice that output took, and, on a GPU, seconds of output after those of the slice.
    peak_rss : int
        Most main memory of the worker until then, in bytes.
    halvings : int
        How often the memory of the engine has been halved.
    joules, peak_watts : float or None
        Energy and peak power of the worker's GPU. None where they cannot be read.
    threads : int
        Threads that shared the slice.
    pieces : int
        Pieces in which they were given its work.
    idle_seconds : float
        Seconds in which threads that shared the slice had nothing to do, of all of them together.
    """

    engine: EngineStats = field(default_factory=EngineStats)
    writing_seconds: float = 0.0
    closing_seconds: float = 0.0
    peak_rss: int = 0
    halvings: int = 0
    joules: float | None = None
    peak_watts: float | None = None
    threads: int = 1
    pieces: int = 1
    idle_seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """A dictionary for a ledger entry, whose values are those of this object. To copy them would take longer."""
        return vars(self) | {"engine": vars(self.engine)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SliceStats:
        """From a ledger entry. The flat table of numbers in entries of an earlier version is ignored."""
        from bicliques.schemas.records import read_as

        return read_as(cls, data if "engine" in data else {}, "the statistics")
