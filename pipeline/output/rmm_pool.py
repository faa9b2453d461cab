"""Where cuDF takes its device memory from."""

from __future__ import annotations

__all__ = ["device_bytes", "take_from_pool"]

#: Share of the device that the pool keeps while it is not used; what is beyond goes back whenever it is waited for, and
#: getting it again takes milliseconds. Other users of the device's memory get what is kept, too.
_KEPT = 1 / 8


def device_bytes() -> int:
    """Memory of the current device, in use or not."""
    import cupy

    return int(cupy.cuda.runtime.memGetInfo()[1])


def take_from_pool() -> None:
    """Give RMM an asynchronous pool on the current device, unless somebody has chosen a memory resource.

    By default RMM calls ``cudaMalloc`` and ``cudaFree`` for every temporary of libcudf, dozens a call; and ``cudaFree``
    waits for the kernels of all streams, so that writing would wait for the engine's.
    """
    import rmm

    if type(rmm.mr.get_current_device_resource()) is rmm.mr.CudaMemoryResource:
        kept = int(device_bytes() * _KEPT)
        rmm.mr.set_current_device_resource(rmm.mr.CudaAsyncMemoryResource(release_threshold=kept))
