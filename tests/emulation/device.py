"""A `kernels.gpu.device.Device` that is a CPU: kernels are compiled by g++ and run lane by lane."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from kernels.gpu.source import FOLDER

HERE = Path(__file__).parent


def why_not() -> str | None:
    """Why kernels cannot be emulated here, or None."""
    if shutil.which("g++") is None:
        return "g++ is not installed"
    return None


@functools.cache
def _library(kernel: str, defines: tuple[tuple[str, int], ...]) -> ctypes.CDLL:
    options = [f"-D{name}={value}" for name, value in defines]
    digest = hashlib.sha256(repr(options).encode())
    for path in sorted([*FOLDER.glob("*.cu*"), *HERE.glob("*.h"), *HERE.glob("*.cpp")]):
        digest.update(path.read_bytes())
    folder = Path(tempfile.gettempdir()) / "bicliques-emulation"
    folder.mkdir(exist_ok=True)
    target = folder / f"{kernel}-{digest.hexdigest()[:20]}.so"
    if not target.exists():
        partial = target.with_suffix(".partial")
        command = [
            "g++",
            "-O1",
            "-g",
            "-std=c++17",
            "-shared",
            "-fPIC",
            "-U_FORTIFY_SOURCE",
            f"-I{HERE}",
            f"-I{FOLDER}",
        ]
        command += [f'-DKERNEL_FILE="{kernel}.cu"', f"-DKERNEL={kernel}", *options]
        subprocess.run([*command, str(HERE / "emulate.cpp"), "-o", str(partial)], check=True)
        partial.rename(target)
    library = ctypes.CDLL(str(target))
    library.emulate.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_ulonglong]
    return library


class EmulatedDevice:
    """Device memory is host memory, an address is an address."""

    name = "emulated device"

    def __init__(self, seed: int = 1, n_multiprocessors: int = 2) -> None:
        self.seed = seed
        self.n_multiprocessors = n_multiprocessors

    def active(self):
        return contextlib.nullcontext()

    def free_bytes(self) -> int:
        return 1 << 33

    def upload(self, array):
        return np.frombuffer(np.ascontiguousarray(array).tobytes() or b"\0", dtype=np.uint8).copy()

    def empty(self, n, dtype):
        return np.full(max(1, n * np.dtype(dtype).itemsize), 0xA5, dtype=np.uint8)  # poison

    def zeros(self, n, dtype):
        return np.zeros(max(1, n * np.dtype(dtype).itemsize), dtype=np.uint8)

    def shared(self, n):
        return np.zeros(n, dtype=np.int64)

    def clear(self, handle):
        handle[:] = 0

    def write(self, handle, array):
        data = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        handle[: len(data)] = data

    def read(self, handle, dtype, start, n):
        size = np.dtype(dtype).itemsize
        return handle[start * size : (start + n) * size].copy().view(dtype)

    def view(self, handle, dtype, start, n):
        size = np.dtype(dtype).itemsize
        return handle[start * size : (start + n) * size].view(dtype)

    def download(self, array):
        return array.copy()

    def address(self, handle):
        return handle.ctypes.data

    def resident_blocks(self, kernel, defines, n_threads):
        return self.n_multiprocessors

    def launch(self, kernel, defines, n_blocks, n_threads, params):
        started = time.perf_counter()
        self.seed += 1
        library = _library(kernel, tuple(sorted(defines.items())))
        library.emulate(params.ctypes.data, n_blocks, n_threads, self.seed)
        return time.perf_counter() - started

    def enqueue(self, kernel, defines, n_blocks, n_threads, params):
        self.launch(kernel, defines, n_blocks, n_threads, params)
