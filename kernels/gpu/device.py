"""The part of a CUDA device that the engines need.

The interface is narrow on purpose. Tests implement it with a CPU emulation of warps (`tests/emulation`), so
every kernel runs in CI without a GPU.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from bicliques.schemas.errors import DeviceMemoryError, ResourceError

Defines = dict[str, int]

#: Priority of a stream. CUDA replaces it by the highest that the device has.
_HIGHEST = -100


class Device(Protocol):
    """Memory and launches of one device. Handles are opaque; addresses go into parameter blocks."""

    name: str
    n_multiprocessors: int

    def active(self) -> AbstractContextManager[Any]:
        """Within it, this thread can launch. Its copies and launches have priority over others on the device."""
        ...

    def free_bytes(self) -> int:
        """Device memory that can still be allocated."""
        ...

    def used_bytes(self) -> int:
        """Device memory that is in use, by all processes."""
        ...

    def upload(self, array: np.ndarray) -> Any:
        """A device copy of `array`."""
        ...

    def empty(self, n: int, dtype: np.dtype | type) -> Any:
        """Uninitialised device memory for `n` entries."""
        ...

    def zeros(self, n: int, dtype: np.dtype | type) -> Any:
        """Zeroed device memory for `n` entries."""
        ...

    def shared(self, n: int) -> np.ndarray:
        """Zeroed int64 in host memory. Running kernels read and write it too, at the same address."""
        ...

    def clear(self, handle: Any) -> None:
        """Zero the memory again."""
        ...

    def write(self, handle: Any, array: np.ndarray) -> None:
        """Copy `array` to the beginning of the memory."""
        ...

    def read(self, handle: Any, dtype: np.dtype | type, start: int, n: int) -> np.ndarray:
        """A host copy of entries ``start`` to ``start + n - 1``. It synchronises."""
        ...

    def view(self, handle: Any, dtype: np.dtype | type, start: int, n: int) -> Any:
        """Entries ``start`` to ``start + n - 1`` as an array on the device, without a copy."""
        ...

    def download(self, array: Any) -> np.ndarray:
        """A host copy of an array that `view` returned. It synchronises."""
        ...

    def address(self, handle: Any) -> int:
        """The address where the memory begins."""
        ...

    def resident_blocks(self, kernel: str, defines: Defines, n_threads: int) -> int:
        """Blocks of `n_threads` that run together on the whole device. Loads the kernel if necessary."""
        ...

    def launch(self, kernel: str, defines: Defines, n_blocks: int, n_threads: int, params: np.ndarray) -> float:
        """Run the kernel of this name with this parameter block, and wait. Returns its seconds on the device."""
        ...

    def enqueue(self, kernel: str, defines: Defines, n_blocks: int, n_threads: int, params: np.ndarray) -> None:
        """Like `launch`, without waiting. Later copies and launches of this thread run after it."""
        ...


def why_no_gpu() -> str | None:
    """Why no CUDA device can be used, or None if one can. It never raises."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed (pip install 'bicliques[gpu]')"
    try:
        n = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no CUDA device answers ({error})"
    return None if n else "there is no CUDA device"


def release_memory() -> None:
    """Return memory that this process no longer uses to the current device."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


def free_memory(cupy: ModuleType) -> int:
    """Bytes that can still be allocated on the current device: free, or kept by CuPy, and within its limit."""
    pool = cupy.get_default_memory_pool()
    free = int(cupy.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())
    limit = int(pool.get_limit())  # as CUPY_GPU_MEMORY_LIMIT sets it; 0 is no limit
    return min(free, max(limit - int(pool.used_bytes()), 0)) if limit else free


@functools.cache
def _first_stream(device: int) -> Any:
    """The stream of all engines of this process on a device.

    Its priority keeps small work from waiting while cuDF writes. Engines share one stream, because CuPy keeps
    free memory per stream.
    """
    import cupy

    return cupy.cuda.Stream(non_blocking=True, priority=_HIGHEST)


class CudaDevice:
    """The current CUDA device, through CuPy."""

    def __init__(self) -> None:
        reason = why_no_gpu()
        if reason is not None:
            raise ResourceError(f"a GPU engine was asked for, but {reason}")
        import cupy

        self._cupy = cupy
        self._device = cupy.cuda.Device()
        properties = cupy.cuda.runtime.getDeviceProperties(self._device.id)
        self.name = properties["name"].decode()
        self.n_multiprocessors = int(properties["multiProcessorCount"])
        self._stream = _first_stream(self._device.id)

    @contextmanager
    def active(self) -> Iterator[None]:
        """See `Device`."""
        # A thread has no context before its first runtime call, and a launch is a driver call, which makes none. Where
        # all memory comes from the pool, a thread's first call is a launch (https://github.com/cupy/cupy/issues/72).
        self._cupy.cuda.runtime.setDevice(self._device.id)
        with self._stream:
            yield

    def free_bytes(self) -> int:
        """See `Device`."""
        return free_memory(self._cupy)

    def used_bytes(self) -> int:
        """See `Device`."""
        free, total = self._cupy.cuda.runtime.memGetInfo()
        return int(total) - int(free)

    def upload(self, array: np.ndarray) -> Any:
        """See `Device`."""
        return self._bytes(array.nbytes, np.ascontiguousarray(array))

    def empty(self, n: int, dtype: np.dtype | type) -> Any:
        """See `Device`."""
        return self._bytes(n * np.dtype(dtype).itemsize)

    def zeros(self, n: int, dtype: np.dtype | type) -> Any:
        """See `Device`."""
        handle = self.empty(n, dtype)
        self.clear(handle)
        return handle

    def shared(self, n: int) -> np.ndarray:
        """See `Device`."""
        memory = self._cupy.cuda.alloc_pinned_memory(8 * n)
        array = np.frombuffer(memory, dtype=np.int64, count=n)
        array[:] = 0
        return array

    def clear(self, handle: Any) -> None:
        """See `Device`."""
        handle.data.memset_async(0, handle.nbytes)

    def write(self, handle: Any, array: np.ndarray) -> None:
        """See `Device`."""
        if array.nbytes:
            handle[: array.nbytes].set(np.ascontiguousarray(array).view(np.uint8).reshape(-1))

    def read(self, handle: Any, dtype: np.dtype | type, start: int, n: int) -> np.ndarray:
        """See `Device`."""
        size = np.dtype(dtype).itemsize
        return handle[start * size : (start + n) * size].get().view(dtype)

    def view(self, handle: Any, dtype: np.dtype | type, start: int, n: int) -> Any:
        """See `Device`."""
        size = np.dtype(dtype).itemsize
        return handle[start * size : (start + n) * size].view(dtype)

    def download(self, array: Any) -> np.ndarray:
        """See `Device`."""
        host: np.ndarray = array.get()
        return host

    def address(self, handle: Any) -> int:
        """See `Device`."""
        return int(handle.data.ptr)

    def resident_blocks(self, kernel: str, defines: Defines, n_threads: int) -> int:
        """See `Device`."""
        from bicliques.kernels.gpu.machine_code import Variant, load

        function = load(Variant.of(kernel, defines)).function
        per_multiprocessor = self._cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
            function.kernel.ptr, n_threads, 0
        )
        return int(per_multiprocessor) * self.n_multiprocessors

    def launch(self, kernel: str, defines: Defines, n_blocks: int, n_threads: int, params: np.ndarray) -> float:
        """See `Device`."""
        begin, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        self._start(kernel, defines, n_blocks, n_threads, params, begin)
        end.record()
        end.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(begin, end)) / 1000

    def enqueue(self, kernel: str, defines: Defines, n_blocks: int, n_threads: int, params: np.ndarray) -> None:
        """See `Device`."""
        self._start(kernel, defines, n_blocks, n_threads, params)

    def _start(
        self, kernel: str, defines: Defines, n_blocks: int, n_threads: int, params: np.ndarray, begin: Any = None
    ) -> None:
        """As `enqueue`. The event `begin` is recorded between the copy of the parameters and the launch."""
        from bicliques.kernels.gpu.machine_code import Variant, load

        loaded = load(Variant.of(kernel, defines))
        # Engines of other threads use the same kernel and its only parameter block. So the lock keeps copy and launch
        # together. All engines share a stream, so the copy waits for the launch before it.
        with loaded.lock:
            loaded.params.copy_from_host_async(params.ctypes.data, params.nbytes)
            if begin is not None:
                begin.record()
            loaded.function((n_blocks,), (n_threads,), ())

    def _bytes(self, n: int, content: np.ndarray | None = None) -> Any:
        try:
            handle = self._cupy.empty(max(n, 1), dtype=np.uint8)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            free = self.free_bytes()
            raise DeviceMemoryError(
                f"{self.name} has {free >> 20} MiB free, {n >> 20} MiB more are needed; use a larger device or "
                "engine='cpu'"
            ) from error
        if content is not None:
            self.write(handle, content)
        return handle
