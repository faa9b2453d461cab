"""Starts one Dask worker process per GPU with dask-cuda."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import dask

from kernels.gpu.cuda import CUDA
from schemas.errors import ResourceError

__all__ = ["start_cluster"]


def start_cluster(devices: Sequence[str], rmm_pool: str | None, spill: bool) -> Any:
    """Start a ``LocalCUDACluster`` with one process per device. A process has one thread per slice it may have in hand.

    Parameters
    ----------
    devices : sequence of str
        The devices, as ``CUDA_VISIBLE_DEVICES`` names them.
    rmm_pool : str or None
        Size of a pool of device memory that the search and cuDF share in each worker, such as ``"40GB"``, or
        ``"0.8"`` for a share of the device. None: each of them allocates for itself.
    spill : bool
        Whether cuDF may move its buffers to main memory when the device is full.

    Raises
    ------
    ResourceError
        If dask-cuda is not installed.
    """
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError as error:
        raise ResourceError(
            f"workers on GPUs need dask-cuda, but {error.name} is not installed (pip install 'bicliques[gpu]'); "
            "--workers 0 uses one GPU without it"
        ) from error
    return LocalCUDACluster(
        CUDA_VISIBLE_DEVICES=list(devices),
        threads_per_worker=CUDA.slices_in_hand,
        memory_limit=0,  # no limit is needed, because a worker's memory is bounded by construction
        device_memory_limit=0,  # no limit is needed, because Dask itself keeps nothing on a device
        rmm_pool_size=_size(rmm_pool),
        rmm_allocator_external_lib_list=["cupy"] if rmm_pool else None,
        enable_cudf_spill=spill,
        protocol="tls" if dask.config.get("distributed.comm.require-encryption", False) else "tcp",
        dashboard_address="127.0.0.1:0",  # its pages can be seen only from this machine
        silence_logs=logging.CRITICAL,
    )


def _size(text: str | None) -> str | float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return text
