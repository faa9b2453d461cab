"""CUDA sources are files of this package. NVRTC compiles them, on the worker where they run.

Nothing is compiled at import. A compiled kernel is never pickled; each worker calls `load` itself.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "KERNELS", "Kernel", "compile_options", "load", "source_digest", "source_of"]

FOLDER = Path(__file__).parent.parent / "cuda"
#: Every kernel and its file in `FOLDER`. Its entry point has the same name. Paths of includes begin at `FOLDER`, too.
KERNELS = {
    "bitmatrix": "bitmatrix/bitmatrix.cu",
    "cumbe": "cumbe/cumbe.cu",
    "hub_bits": "bitmatrix/hub_bits.cu",
    "pack": "common/pack.cu",
    "row_hashes": "common/row_hashes.cu",
}


def source_of(kernel: str) -> str:
    """Text of the source file of a kernel."""
    return (FOLDER / KERNELS[kernel]).read_text()


def source_digest() -> str:
    """First 16 hex digits of the SHA-256 of all CUDA sources. Machine code of other sources is not loaded."""
    digest = hashlib.sha256()
    for path in sorted(FOLDER.rglob("*.cu*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def compile_options(defines: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """NVRTC options. CI, which runs no kernel on a GPU, compiles with the same."""
    # the digest makes CuPy's cache of compiled code notice a changed header
    return (
        "--std=c++17",
        f"-I{FOLDER}",
        *(f"-D{name}={value}" for name, value in defines),
        f"-DSOURCE_DIGEST=0x{source_digest()}ull",
    )


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel that is loaded on a device.

    Parameters
    ----------
    function : cupy.RawKernel
        The function, which takes no arguments.
    params : cupy.cuda.MemoryPointer
        Its parameter block, ``__constant__ ... params`` of its source.
    lock : Lock
        It is to be held from filling `params` until the kernel has ended.
    """

    function: Any
    params: Any
    lock: threading.Lock


_loading = threading.Lock()


@functools.lru_cache(maxsize=64)
def _load(device: int, kernel: str, defines: tuple[tuple[str, int], ...]) -> Kernel:
    import cupy

    module = cupy.RawModule(code=source_of(kernel), options=compile_options(defines))
    return Kernel(module.get_function(kernel), module.get_global("params"), threading.Lock())


def load(kernel: str, defines: tuple[tuple[str, int], ...]) -> Kernel:
    """The compiled kernel on the current device. It is compiled once."""
    import cupy

    with _loading:  # otherwise two threads could get two locks for one parameter block
        return _load(cupy.cuda.Device().id, kernel, defines)
