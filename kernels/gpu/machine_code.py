"""The CUDA sources, which are files of this package, and loading them onto a device.

What is loaded is machine code in a file of the package, or else the source, compiled. `kernels.shipped` makes the
files. Their names have a digest of all that was compiled. So machine code of other sources or other macros is never
found. A file that is cut or changed is not loaded (`kernels.compiled.sealed`).
"""

from __future__ import annotations

import functools
import hashlib
import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bicliques.kernels.compiled.sealed import unsealed

FOLDER = Path(__file__).parent.parent / "cuda"
#: Every kernel and its file in `FOLDER`. Its entry point has the same name. Paths of includes begin at `FOLDER`, too.
KERNELS = {
    "bitmatrix": "bitmatrix/bitmatrix.cu",
    "cumbe": "cumbe/cumbe.cu",
    "hub_bits": "bitmatrix/hub_bits.cu",
    "near": "bitmatrix/near.cu",
    "pack": "common/pack.cu",
    "pivot": "bitmatrix/pivot.cu",
    "row_hashes": "common/row_hashes.cu",
    "sieve": "bitmatrix/sieve.cu",
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


logger = logging.getLogger(__name__)


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
def load_on(device: int, variant: Variant) -> Kernel:
    """The kernel on the current device, whose number is `device`. Use `load`, which many threads can call."""
    import cupy

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
        return load_on(cupy.cuda.Device().id, variant)


#: Where the files are, and the name of the file there that says which version of NVRTC made them.
CODE, COMPILER = Path(__file__).parent.parent / "machine_code", "compiler"

#: Compute capability -> architecture. A device runs machine code of its own major version, if the minor version of the
#: code is not higher.
ARCHITECTURES = {(8, 0): "sm_80", (9, 0): "sm_90", (10, 0): "sm_100", (12, 0): "sm_120"}
#: The architecture of the PTX, which drivers compile for newer devices than all of these.
LATER = "compute_120"
_LATER_FROM = (12, 0)
#: Systems on a chip, of which NVIDIA says that they do not run the machine code of other devices of their version.
_APART = {(8, 7)}


class Code(NamedTuple):
    """What a kernel is loaded from.

    Parameters
    ----------
    kind : str
        ``cubin``: machine code of the package. ``ptx``: PTX of the package. ``nvrtc``: the source.
    path : Path or None
        The file of the package. None: NVRTC compiles the source.
    sentence : str
        What is loaded, and for ``nvrtc`` the reason, for the log.
    """

    kind: Literal["cubin", "ptx", "nvrtc"]
    path: Path | None
    sentence: str


def file_name(variant: Variant, architecture: str) -> str:
    """Name of the file of a variant for an architecture. It does not depend on where the sources lie."""
    content = repr((variant.kernel, sorted(variant.defines), STANDARD, source_digest()))
    kind = "cubin" if architecture.startswith("sm_") else "ptx"
    return f"{variant.kernel}-{hashlib.sha256(content.encode()).hexdigest()[:16]}-{architecture}.{kind}"


def code_for(variant: Variant, capability: tuple[int, int], driver: int, folder: Path | None = None) -> Code:
    """What a variant is loaded from on a device.

    Parameters
    ----------
    capability : tuple of (int, int)
        Compute capability of the device.
    driver : int
        The version of CUDA that the driver implements, as ``cudaDriverGetVersion`` gives it: 13000 is 13.0.
    folder : Path, optional
        Where the files are. None takes `CODE`.
    """
    folder = folder or CODE
    name = f"kernel {variant.kernel}, compute capability {capability[0]}.{capability[1]}"

    def compiled(reason: str) -> Code:
        return Code("nvrtc", None, f"{name}: NVRTC compiles it, because {reason}")

    try:
        compiler = _version((folder / COMPILER).read_text())
    except FileNotFoundError:
        return compiled("this package came without machine code")
    version = (driver // 1000, driver % 1000 // 10)
    cubins, ptx = _architectures(capability)
    # a driver runs machine code of its own major version of CUDA, but no PTX of a newer minor version
    fitting = [*(cubins if version[0] >= compiler[0] else ()), *(ptx if version >= compiler else ())]
    for architecture in fitting:
        path = folder / file_name(variant, architecture)
        try:
            is_whole = unsealed(path) is not None
        except FileNotFoundError:
            continue
        except OSError:
            is_whole = False
        if not is_whole:
            return compiled(f"{path} is damaged")
        kind: Literal["cubin", "ptx"] = "cubin" if architecture in cubins else "ptx"
        return Code(kind, path, f"{name}: the package has {kind} for {architecture}")
    if not cubins and not ptx:
        return compiled("the package has no machine code for this compute capability")
    if not fitting:
        return compiled(f"the driver is for CUDA {_text(version)}, and the machine code is of CUDA {_text(compiler)}")
    return compiled("the package has no machine code with these options")


def _architectures(capability: tuple[int, int]) -> tuple[list[str], list[str]]:
    """The architectures whose machine code, and whose PTX, a device can run."""
    cubins = [
        name
        for (major, minor), name in ARCHITECTURES.items()
        if major == capability[0] and minor <= capability[1] and capability not in _APART
    ]
    return cubins, [LATER] if capability >= _LATER_FROM else []


def _version(text: str) -> tuple[int, int]:
    major, minor = map(int, text.split("."))
    return major, minor


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
