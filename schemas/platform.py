"""The platforms that engines run on. `CORES` is here, and CUDA is in `kernels.gpu.cuda`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nothing_to_do() -> None:
    pass


def _is_awake(only_first: bool) -> None:
    pass


def _not_asked() -> int | None:
    return None


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
    free_bytes: Callable[[], int | None] = _not_asked
    wake: Callable[[bool], None] = _is_awake
    fatal_errors: frozenset[str] = frozenset()


def _never_absent() -> str | None:
    return None


#: Processor cores with one engine each. Their energy is that of the machine, which the driver reads.
CORES = Platform(
    name="cores",
    devices="cores",
    why_absent=_never_absent,
    release=_nothing_to_do,
    shares_engine=False,
    slices_in_hand=1,
    most_halvings=0,
    timed_roots=8,
    leaves_cores=False,
    is_used_by_driver=True,
)
