"""The CUDA sources, which are files of this package, and how they are compiled."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

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
