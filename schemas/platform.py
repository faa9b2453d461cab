"""What engines run on, as far as who runs them has to know: `CORES` here, CUDA in `kernels.gpu.cuda`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["CORES", "Platform"]


@dataclass(frozen=True, kw_only=True)
class Platform:
    """What an engine occupies, and what follows from that. Who runs engines asks these fields, never which one it is.

    Parameters
    ----------
    name : str
        One word, by which `pipeline.workers.local_workers` finds how workers on it start.
    devices : str
        What its devices are called where the manifest and the page give their energy, as ``gpus``.
    why_absent : callable
        () -> one clause saying why this process has no such device, None when it has one.
    release : callable
        () -> None; give memory that engines no longer use back to the device.
    shares_engine : bool
        Whether one engine serves all threads of a process in turns, because the memory of a device holds one. Else each
        thread has its own.
    slices_in_hand : int
        Slices that an engine has in hand. The second of two is searched while the first is written, so the time in
        which the last parts of a slice are closed is not the slice's.
    most_halvings : int
        How often an engine that ran out of device memory is replaced by one with half of it; 0 where memory is no
        device's.
    timed_roots : int
        Roots of a slice that are mined alone and timed; none where time is too precious for one root at a time.
    leaves_cores : bool
        Whether the processor cores have time while engines search and when they have ended: they encode results on many
        threads, and read them back.
    is_used_by_driver : bool
        Whether the driver mines an edge before workers start, so that they find machine code on disk. On a device it
        would take memory of theirs.
    works_with_cudf : bool
        Whether cuDF can encode the arrays of its engines.
    energy_counter : str or None
        What counts the energy of a device, a name of `pipeline.slices.power.COUNTERS`; None if nothing does.
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
    fatal_errors: frozenset[str] = frozenset()


def _never_absent() -> str | None:
    return None


def _nothing_to_release() -> None:
    pass


#: Processor cores, one engine each. Their energy is that of the machine, which the driver reads.
CORES = Platform(
    name="cores",
    devices="cores",
    why_absent=_never_absent,
    release=_nothing_to_release,
    shares_engine=False,
    slices_in_hand=1,
    most_halvings=0,
    timed_roots=8,
    leaves_cores=False,
    is_used_by_driver=True,
)
