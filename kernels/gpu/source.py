"""CUDA sources are files of this package, and so is machine code made of them. Both are loaded on the worker.

Nothing is loaded or compiled at import. A loaded kernel is never pickled; each worker calls `load` itself.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "FOLDER",
    "KERNELS",
    "STANDARD",
    "Kernel",
    "Variant",
    "compile_options",
    "load",
    "source_digest",
    "source_of",
]

logger = logging.getLogger(__name__)

FOLDER = Path(__file__).parent.parent / "cuda"
#: Every kernel and its file in `FOLDER`. Its entry point has the same name. Paths of includes begin at `FOLDER`, too.
KERNELS = {
    "bitmatrix": "bitmatrix/bitmatrix.cu",
    "cumbe": "cumbe/cumbe.cu",
    "hub_bits": "bitmatrix/hub_bits.cu",
    "pack": "common/pack.cu",
    "row_hashes": "common/row_hashes.cu",
}
#: The standard of C++ that the sources are written in, as an option of NVRTC.
STANDARD = "--std=c++17"


class Variant(NamedTuple):
    """A kernel as it is compiled.

    Parameters
    ----------
    kernel : str
        One of `KERNELS`.
    defines : tuple of (str, int)
        Macros and their values, sorted.
    """

    kernel: str
    defines: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, kernel: str, defines: dict[str, int]) -> Variant:
        """The variant with these macros, in any order."""
        return cls(kernel, tuple(sorted(defines.items())))


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
        STANDARD,
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
def _load(device: int, variant: Variant) -> Kernel:
    import cupy

    from kernels.gpu.machine_code import code_for

    capability = cupy.cuda.Device().compute_capability  # "90", "121": the last digit is the minor one
    code = code_for(variant, (int(capability[:-1]), int(capability[-1])), cupy.cuda.runtime.driverGetVersion())
    facts = {"kernel": variant.kernel, "code": code.kind, "capability": capability, "device": device}
    logger.info("%s", code.sentence, extra={"event": "kernel", "facts": facts})
    if code.path is None:
        module = cupy.RawModule(code=source_of(variant.kernel), options=compile_options(variant.defines))
    else:
        module = cupy.RawModule(path=str(code.path))
    return Kernel(module.get_function(variant.kernel), module.get_global("params"), threading.Lock())


def load(variant: Variant) -> Kernel:
    """The kernel on the current device. It is loaded once, and compiled only if the package has no code for it."""
    import cupy

    with _loading:  # otherwise two threads could get two locks for one parameter block
        return _load(cupy.cuda.Device().id, variant)
