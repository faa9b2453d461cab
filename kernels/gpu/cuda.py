"""CUDA GPUs, as far as whoever runs engines on them has to know."""

from __future__ import annotations

from bicliques.schemas.platform import Platform

#: Share of the free device memory that the scratch memory of a search may take.
SCRATCH_SHARE = 0.6


def _why_absent() -> str | None:
    from bicliques.kernels.gpu.device import why_no_gpu

    return why_no_gpu()


def _release() -> None:
    from bicliques.kernels.gpu.device import release_memory

    release_memory()


def _free_bytes() -> int | None:
    from bicliques.kernels.gpu.device import CudaDevice

    return CudaDevice().free_bytes() if _why_absent() is None else None


def _wake(only_first: bool) -> None:
    from bicliques.kernels.gpu.wake import wake

    wake(only_first)


#: CUDA GPUs, one worker each.
CUDA = Platform(
    name="cuda",
    devices="gpus",
    why_absent=_why_absent,
    release=_release,
    free_bytes=_free_bytes,
    wake=_wake,
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
