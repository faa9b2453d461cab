"""One Dask worker process per GPU, by dask-cuda; and what such a worker does when its device fails."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import dask

from kernels.gpu.cuda import CUDA
from schemas.errors import BicliqueError, ResourceError

__all__ = ["guarded", "start_cluster"]

logger = logging.getLogger(__name__)

#: Exit code of a worker whose device failed.
_DEVICE_FAILED = 70


def start_cluster(devices: Sequence[str], rmm_pool: str | None, spill: bool) -> Any:
    """A ``LocalCUDACluster``: one process per device, with as many threads as it has slices in hand.

    Parameters
    ----------
    devices : sequence of str
        As ``CUDA_VISIBLE_DEVICES`` names them.
    rmm_pool : str or None
        Size of a pool of device memory that the search and cuDF share in each worker, such as ``"40GB"`` or
        ``"0.8"`` of the device; None lets each of them allocate for itself.
    spill : bool
        Let cuDF move its buffers to main memory when the device is full.

    Raises
    ------
    ResourceError
        Without dask-cuda.
    """
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError as error:
        raise ResourceError(
            f"workers on GPUs need dask-cuda, but {error.name} is not installed (pip install 'dask-cuda==26.10.*'); "
            "--workers 0 uses one GPU without it"
        ) from error
    return LocalCUDACluster(
        CUDA_VISIBLE_DEVICES=list(devices),
        threads_per_worker=CUDA.slices_in_hand,
        memory_limit=0,  # a worker's memory is bounded by construction,
        device_memory_limit=0,  # and Dask itself keeps nothing on a device
        rmm_pool_size=_size(rmm_pool),
        rmm_allocator_external_lib_list=["cupy"] if rmm_pool else None,
        enable_cudf_spill=spill,
        protocol="tls" if dask.config.get("distributed.comm.require-encryption", False) else "tcp",
        dashboard_address="127.0.0.1:0",  # its pages are for this machine
        silence_logs=logging.CRITICAL,
    )


def guarded(function: Callable[[Any], Any], fatal: frozenset[str], argument: Any) -> Any:
    """``function(argument)``; when the device fails, this process ends, because its context there is of no more use.

    It has failed at an exception of a name in `fatal`: see `schemas.platform.Platform`.

    Dask's nanny starts another one, and the slices it had in hand are tried again elsewhere.
    """
    try:
        return function(argument)
    except BicliqueError:
        raise
    except Exception as error:
        if type(error).__name__ not in fatal:
            raise
        logger.critical("the GPU of process %d failed (%s); the process is replaced", os.getpid(), error)
        os._exit(_DEVICE_FAILED)


def _size(text: str | None) -> str | float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return text
