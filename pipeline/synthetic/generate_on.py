"""Decides whether a graph is drawn on a GPU. What only a GPU needs is imported inside functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, get_args

from pipeline.synthetic.models import Part
from pipeline.synthetic.wanted import Wanted
from schemas.errors import InputError, ResourceError
from schemas.options import Where

if TYPE_CHECKING:
    from kernels.gpu.device import Device

__all__ = ["WORTH_EDGES", "Choice", "choose_drawer"]

#: Edges for which it is worth starting a GPU.
WORTH_EDGES = 50_000_000


class Choice(NamedTuple):
    """Where a graph is drawn.

    Parameters
    ----------
    device : Device or None
        None: on the cores of this machine.
    text : str
        The choice in words, with its reason.
    device_bytes : int
        Device memory that it takes, about, besides what CUDA takes.
    """

    device: Device | None
    text: str
    device_bytes: int


def choose_drawer(generate_on: Where, graph: Wanted, parts: list[Part]) -> Choice:
    """Where a graph is drawn.

    Parameters
    ----------
    generate_on : "auto", "cpu" or "gpu"
    graph : Wanted
    parts : list of Part
        The parts in which it is drawn.

    Raises
    ------
    InputError
        `generate_on` is none of the three values.
    ResourceError
        A GPU was asked for and cannot be used.
    """
    if generate_on not in get_args(Where):
        raise InputError(f"--generate-on is {generate_on!r}; choose one of auto, cpu, gpu")
    if generate_on == "cpu":
        return Choice(None, "cpu: asked for", 0)
    if generate_on == "auto" and graph.edges < WORTH_EDGES:
        return Choice(None, f"cpu: a GPU pays from {WORTH_EDGES:,} edges on", 0)
    needed = _needed(graph, parts)
    device, reason = _device_with(needed)
    if device is not None:
        why = "asked for" if generate_on == "gpu" else f"it pays from {WORTH_EDGES:,} edges on"
        return Choice(device, f"gpu: {why}", needed)
    if generate_on == "gpu":
        raise ResourceError(f"the graph cannot be drawn on a GPU: {reason}; choose --generate-on cpu")
    return Choice(None, f"cpu: {reason}", 0)


def _device_with(needed: int) -> tuple[Device | None, str | None]:
    """A GPU with so many bytes free. Or None, and why there is none."""
    from kernels.gpu.device import CudaDevice, why_no_gpu

    if (reason := why_no_gpu()) is not None:
        return None, reason
    try:
        device = CudaDevice()
        free = device.free_bytes()
    except (RuntimeError, MemoryError) as error:  # of CUDA: another process has the device for itself, or all memory
        return None, f"it cannot be started ({error})"
    if free < needed:
        return None, f"it has {free >> 20:,} MiB free, and {needed >> 20:,} MiB are needed; --part-edges makes it less"
    return device, None


def _needed(graph: Wanted, parts: list[Part]) -> int:
    from kernels.gpu.random_edges import device_bytes

    planted = sum(p * q for p, q in graph.plant)  # all of them may be in one part
    edges = max(part.edges for part in parts) + planted
    rows = max(min(part.stop - part.first, edges) for part in parts)
    return device_bytes(edges, rows, graph.n_right)
