"""The memory pool from which cuDF takes device memory."""

from __future__ import annotations

#: Share of the device's memory that the pool keeps while it is not used. Memory beyond that is freed at each
#: synchronisation, and to allocate it again takes milliseconds. Other users of the device can get the kept memory, too.
_KEPT = 1 / 8


def device_bytes() -> int:
    """Memory of the current device, in use or not."""
    import cupy

    return int(cupy.cuda.runtime.memGetInfo()[1])


def take_from_pool() -> None:
    """Give RMM an asynchronous pool on the current device, unless a memory resource was chosen already.

    By default RMM calls ``cudaMalloc`` and ``cudaFree`` for every temporary of libcudf, which has dozens per call.
    ``cudaFree`` waits for the kernels of all streams, so writing would wait for the engine.
    """
    import rmm

    if type(rmm.mr.get_current_device_resource()) is rmm.mr.CudaMemoryResource:
        kept = int(device_bytes() * _KEPT)
        rmm.mr.set_current_device_resource(rmm.mr.CudaAsyncMemoryResource(release_threshold=kept))
