"""How this project compiles Python to machine code with Numba, and loads it again without Numba.

Importing Numba and loading what it keeps takes longer than most searches. So this module imports neither Numba nor
LLVM. Machine code is kept on disk as object files with a plain C interface, and LLVM alone loads them. Numba is
imported only where something has to be compiled (`kernels.compiled.making`). A file that is cut or changed is compiled
again (`kernels.compiled.sealed`).

The folder of the files is named after a digest of every source file that compiled code is made of. The digest also has
what else decides whether the code is usable: where the files are, Python, Numba, LLVM, and the processor.

A wheel brings the files of common calls, for every processor of `LEVEL` (`kernels.shipped` makes them). Their folder is
named after the sources alone.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bicliques.kernels.compiled.part import Part
from bicliques.kernels.compiled.sealed import sealed, unsealed
from bicliques.schemas.errors import ResourceError

logger = logging.getLogger(__name__)

#: What compiled code is made of. An entry in another file has to be in this list, too.
_SOURCES = (
    "kernels/compiled/*.py",
    "kernels/cpu/*.py",
    "kernels/graph/*.py",
    "kernels/bitmatrix/items.py",
    "kernels/gpu/slice_run.py",
    "schemas/bicliques.py",
    "schemas/dtypes.py",
    "schemas/hashes.py",
    "schemas/work.py",
)
_ROOT = Path(__file__).parents[2]

#: The processors that the code of a wheel is for, and what LLVM says that they have.
LEVEL = "x86-64-v3"
FEATURES = ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2", "xsave")


@cache
def shipped_folder() -> Path | None:
    """Where machine code for this processor is that came with the package, if any did. None: not for this processor."""
    import llvmlite.binding

    has = llvmlite.binding.get_host_cpu_features()
    if platform.machine() != "x86_64" or not all(has.get(feature, False) for feature in FEATURES):
        return None
    return Path(__file__).parents[1] / "machine_code" / "cpu" / _of_sources()


def code_folder() -> Path:
    """The digest's folder in ``$NUMBA_CACHE_DIR``, else ``$XDG_CACHE_HOME/bicliques``, else ``~/.cache/bicliques``."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("NUMBA_CACHE_DIR") or Path(cache) / "bicliques") / _digest()


@cache
def _digest() -> str:
    import llvmlite.binding

    machine = (_of_sources(), _ROOT, sys.version, llvmlite.binding.get_host_cpu_name())
    digest = hashlib.sha256(repr(machine).encode())
    for package in ("numba", "llvmlite"):  # importing them to ask for their versions takes time
        version = Path(find_spec(package).origin).with_name("_version.py")  # type: ignore[union-attr, arg-type]
        digest.update(version.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _of_sources() -> str:
    digest = hashlib.sha256()
    for path in (path for pattern in _SOURCES for path in sorted(_ROOT.glob(pattern))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Entry:
    """A function to compile that Python calls. It releases the GIL, and divides without checks.

    Arguments are integers, contiguous arrays of one dimension, and tuples of these. The function returns nothing or an
    int64. It allocates no memory and raises nothing: its caller gives it the arrays that it works on. Fast-math is
    never used.

    It raises a `ResourceError` if the folder of machine code cannot be used.

    Parameters
    ----------
    module, name : str
        Where the function is. The module is imported when the function has to be compiled, and not before.
    """

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        self.function: Callable[..., Any] | None = None
        self.loaded: dict[str, Callable[..., int]] = {}
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> int:
        """Call the machine code for arguments of these types. It is loaded, or else compiled, at the first call."""
        types: list[str] = []
        words: list[int] = []
        for argument in arguments:
            _flatten(argument, types, words)
        key = "-".join(types)
        call = self.loaded.get(key)
        if call is None:
            with self._lock:
                call = self.loaded.get(key) or self._load(key, len(words))
                self.loaded[key] = call
        result, error = ctypes.c_int64(), ctypes.c_void_p()
        status = call(ctypes.byref(result), ctypes.byref(error), *words)
        if status != 0:
            raise RuntimeError(f"{self.name} ended with status {status}")
        return result.value

    def is_kept(self) -> bool:
        """Whether its machine code, for arguments of some types, is on disk."""
        folders = (shipped_folder(), code_folder())
        return any(path for folder in folders if folder is not None for path in folder.glob(f"{self._file}-*.o"))

    @property
    def _file(self) -> str:
        return f"{self.module}.{self.name}"

    def _load(self, key: str, n_words: int) -> Callable[..., int]:
        name = f"{self._file}-{key}.o"
        shipped, path = shipped_folder(), code_folder() / name
        with _folder_errors(path.parent):
            code = _kept(shipped / name) if shipped is not None else None
            code = code or _kept(path) or self._compile(key, path)
        types = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * n_words
        return ctypes.CFUNCTYPE(ctypes.c_int32, *types)(_address(code))  # which releases the GIL

    def _compile(self, key: str, path: Path) -> bytes:
        import tempfile

        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass  # compiling takes seconds, so a folder that cannot be written is noticed before
        from bicliques.kernels.compiled.making import object_code

        function = self.function or getattr(import_module(self.module), self.name).function
        code = object_code(function, key)
        partial = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")  # nobody loads a part of a file
        try:
            with partial.open("wb") as file:
                file.write(sealed(path.name, code))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        return code


def _kept(path: Path) -> bytes | None:
    """The machine code in a file. None if there is none, or not all of it."""
    try:
        code = unsealed(path)
    except FileNotFoundError:
        return None
    if code is None:
        logger.warning("%s is no whole file of machine code, and is compiled again", path)
    return code


@contextmanager
def _folder_errors(folder: Path) -> Iterator[None]:
    """Turn an error of the folder of machine code into one sentence. Callers read and write other files, too."""
    try:
        yield
    except OSError as error:
        remedy = "see that it can be written and has room"
        if isinstance(error, IsADirectoryError):
            remedy = f"move {error.filename} away"
        raise ResourceError(
            f"machine code cannot be kept in {folder} ({error.strerror or error}); {remedy}, or name another folder in "
            "$NUMBA_CACHE_DIR"
        ) from error


def entry(function: Callable[..., Any]) -> Entry:
    """Decorator for functions to compile that Python calls; see `Entry`."""
    made = Entry(function.__module__, function.__name__)
    made.function = function
    return made


def compiled(function: Callable[..., Any]) -> Any:
    """Decorator for functions to compile that only compiled functions of the sources above call (`part.py`)."""
    return Part(function)


def _flatten(argument: Any, types: list[str], words: list[int]) -> None:
    """Append the type of an argument, and the words that Numba passes for it."""
    if isinstance(argument, np.ndarray):
        if argument.ndim != 1 or not argument.flags.c_contiguous:
            raise TypeError("compiled code takes contiguous arrays of one dimension; make a copy")
        size = argument.itemsize
        types.append(argument.dtype.str[1:])
        # no owner, no Python object, entries, bytes per entry, address, shape, strides
        words += (0, 0, argument.size, size, argument.ctypes.data, argument.size, size)
    elif isinstance(argument, tuple):
        types.append(f"t{len(argument)}")
        for part in argument:
            _flatten(part, types, words)
    elif isinstance(argument, (int, np.integer, np.bool_)):
        types.append("n")
        words.append(int(argument))
    else:
        raise TypeError(f"compiled code takes integers, arrays and tuples of them, not {type(argument).__name__}")


_loading = threading.Lock()
#: What holds the machine code that was loaded. It is never freed.
_engines: list[Any] = []


def _address(code: bytes) -> int:
    """Load an object file. Returns the address of its function ``entry``."""
    import llvmlite.binding as llvm

    with _loading:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _engines.append(engine)
        return int(engine.get_function_address("entry"))
