"""A `kernels.gpu.device.Device` that is a CPU: kernels are compiled by g++ and run lane by lane.

Before and behind every buffer lie bytes that belong to nobody; a launch that has changed them is an error.
"""

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from pathlib import Path

import numpy as np

from bicliques.kernels.gpu.machine_code import FOLDER, KERNELS

HERE = Path(__file__).parent
#: Bytes that belong to nobody, on either side of a buffer: enough for what a warp writes at a time.
GUARD = np.full(512, 0x5C, dtype=np.uint8)
#: The same as bytes, which are compared in a tenth of the time. After each launch all buffers are looked at.
_GUARD_BYTES = GUARD.tobytes()
#: How far g++ optimises. The other kernels have so many variants that it would take longer than they run.
_OPTIMISED = {"cumbe": "-O1", "pack": "-O1"}
#: Macros that kernels use as numbers and nothing else. Here they are variables, so that one library serves for all of
#: their values: to compile one takes as long as several tests that run it.
_NUMBERS = (
    *("BOUNDED", "EARLY_STOP", "GIVE_MIN", "LEAST_JOINED", "LEAST_SIFTED", "MARKED", "MEASURED", "MERGING"),
    *("MIN_BLOCKS", "NARROW", "PLAIN", "POLL", "ROOTS_PER_WEDGE", "STEAL_LEVELS", "TIMED", "WINDOW_WORDS"),
)
#: Held while a kernel runs, because its shared memory and its parameters are static variables.
_running = threading.Lock()


def why_not() -> str | None:
    """Why kernels cannot be emulated here, or None."""
    if shutil.which("g++") is None:
        return "g++ is not installed"
    return None


@functools.cache
def _library(kernel: str, defines: tuple[tuple[str, int], ...]) -> ctypes.CDLL:
    options = [f"-D{name}={value}" for name, value in defines if name not in _NUMBERS]
    options += [f"-D{name}=emulation::numbers[{_NUMBERS.index(name)}]" for name, _ in defines if name in _NUMBERS]
    digest = hashlib.sha256(repr(options).encode())
    for path in sorted([*FOLDER.rglob("*.cu*"), *HERE.glob("*.h"), *HERE.glob("*.cpp")]):
        digest.update(path.read_bytes())
    folder = Path(tempfile.gettempdir()) / "bicliques-emulation"
    folder.mkdir(exist_ok=True)
    target = folder / f"{kernel}-{digest.hexdigest()[:20]}.so"
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes, and one of them compiles for all
        if not target.exists():
            _compile(kernel, options, target)
    library = ctypes.CDLL(str(target))
    library.emulate.argtypes = [*[ctypes.c_void_p] * 2, ctypes.c_uint, ctypes.c_uint, ctypes.c_ulonglong]
    return library


def _compile(kernel: str, options: list[str], target: Path) -> None:
    partial = target.with_suffix(".partial")  # a compiler that is killed leaves no library behind
    level = _OPTIMISED.get(kernel, "-Og")
    command = ["g++", level, "-std=c++17", "-shared", "-fPIC", "-U_FORTIFY_SOURCE", f"-I{HERE}", f"-I{FOLDER}"]
    command += ["-fvisibility=hidden", f'-DKERNEL_FILE="{KERNELS[kernel]}"', f"-DKERNEL={kernel}", *options]
    subprocess.run([*command, str(HERE / "emulate.cpp"), "-o", str(partial)], check=True)
    partial.rename(target)


class EmulatedDevice:
    """Device memory is host memory, an address is an address."""

    name = "emulated device"

    def __init__(self, seed: int = 1, n_multiprocessors: int = 2) -> None:
        self.seed = seed
        self.n_multiprocessors = n_multiprocessors
        self._buffers: list[weakref.ref[np.ndarray]] = []

    def active(self):
        return contextlib.nullcontext()

    def free_bytes(self) -> int:
        return 1 << 33

    def used_bytes(self) -> int:
        return sum(len(whole) - 2 * len(GUARD) for whole in (buffer() for buffer in self._buffers) if whole is not None)

    def _buffer(self, n_bytes):
        whole = np.empty(n_bytes + 2 * len(GUARD), dtype=np.uint8)
        whole[: len(GUARD)] = whole[-len(GUARD) :] = GUARD
        with _running:
            self._buffers.append(weakref.ref(whole))  # it lives as long as what is seen of it
        return whole[len(GUARD) : -len(GUARD)]

    def _check_guards(self, kernel):
        alive = [whole for whole in (buffer() for buffer in self._buffers) if whole is not None]
        self._buffers = [weakref.ref(whole) for whole in alive]
        for whole in alive:
            for side, guard in (("before", whole[: len(GUARD)]), ("behind", whole[-len(GUARD) :])):
                if guard.tobytes() != _GUARD_BYTES:
                    guard[:] = GUARD  # others use this device, too
                    n_bytes = len(whole) - 2 * len(GUARD)
                    raise AssertionError(f"{kernel} has written {side} a buffer of {n_bytes:,} bytes")

    def upload(self, array):
        data = np.frombuffer(np.ascontiguousarray(array).tobytes() or b"\0", dtype=np.uint8)
        handle = self._buffer(len(data))
        handle[:] = data
        return handle

    def empty(self, n, dtype):
        handle = self._buffer(max(1, n * np.dtype(dtype).itemsize))
        handle[:] = 0xA5  # poison
        return handle

    def zeros(self, n, dtype):
        handle = self._buffer(max(1, n * np.dtype(dtype).itemsize))
        handle[:] = 0
        return handle

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
        numbers = np.array([defines.get(name, 0) for name in _NUMBERS] + [0] * (16 - len(_NUMBERS)), np.int32)
        with _running:
            library.emulate(params.ctypes.data, numbers.ctypes.data, n_blocks, n_threads, self.seed)
            self._check_guards(kernel)
        return time.perf_counter() - started

    def enqueue(self, kernel, defines, n_blocks, n_threads, params):
        self.launch(kernel, defines, n_blocks, n_threads, params)
