"""CUDA GPUs, as far as whoever runs engines on them has to know."""

from __future__ import annotations

from kernels.gpu.device import release_memory, why_no_gpu
from schemas.platform import Platform

__all__ = ["CUDA"]

#: CUDA GPUs, one worker each.
CUDA = Platform(
    name="cuda",
    devices="gpus",
    why_absent=why_no_gpu,
    release=release_memory,
    shares_engine=True,
    slices_in_hand=2,
    most_halvings=4,  # to a sixteenth
    timed_roots=0,
    leaves_cores=True,
    is_used_by_driver=False,
    works_with_cudf=True,
    energy_counter="NVML",
    fatal_errors=frozenset({"CUDARuntimeError", "CUDADriverError"}),
)
