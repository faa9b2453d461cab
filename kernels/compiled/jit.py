"""How this project compiles Python to machine code with Numba.

Machine code is kept on disk. Numba notices a change of a function's own file, but not of a function that it
calls. So the folder is named after a digest of every source file that compiled code is made of. The digest
also has what else decides whether the code is usable: where the files are, Python, Numba, and the processor.
So a folder that exists holds usable code. `kernels.cpu.kind` relies on that.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import llvmlite.binding
import numba
from numba import njit, types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime import rtsys

__all__ = ["compiled", "entry", "inlined"]


def _cache_folder() -> Path:
    """The digest's folder in ``$NUMBA_CACHE_DIR``, else ``$XDG_CACHE_HOME/bicliques``, else ``~/.cache/bicliques``."""
    root = Path(__file__).parents[2]
    machine = (root, sys.version, numba.__version__, llvmlite.binding.get_host_cpu_name())
    digest = hashlib.sha256(repr(machine).encode())
    # code elsewhere in `kernels` may be compiled, but it must not call compiled code of another file
    sources = ("kernels/compiled/*.py", "kernels/cpu/*.py", "kernels/graph/*.py")
    for pattern in (*sources, "schemas/bicliques.py", "schemas/dtypes.py", "schemas/work.py"):
        for path in sorted(root.glob(pattern)):
            digest.update(path.read_bytes())
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(cache) / "bicliques")
    return folder / digest.hexdigest()[:16]


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}

numba.config.CACHE_DIR = str(_cache_folder())


class _KeptCode(FunctionCache):  # type: ignore[misc]  # Numba has no types
    """Machine code on disk, which is loaded without Numba's tables of what it can compile.

    Numba fills these tables before it loads anything, which takes 0.2 s. Only compiling needs them, and it fills them
    itself.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for these types, or None if it has to be compiled."""
        rtsys.initialize(target_context)  # the code allocates arrays
        return self._load_overload(sig, target_context)


class _PartOfACaller(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function that only compiled code calls. It stays as it is until it is in its callers.

    Numba optimises every function together with all that it calls, makes machine code of it, and does the same once
    more for each caller. Of a chain of calls only the outermost machine code is used.
    """

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """The null pointer, because there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """What Numba tells the addresses of Python objects, which code without machine code does not need."""
        return SimpleNamespace(set_env=lambda name, environment: None)


class _ForCallers(Compiler):  # type: ignore[misc]
    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = _PartOfACaller(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for functions to compile that Python calls.

    They release the GIL and divide without checks. The code is kept on disk, and fast-math is never used.
    """
    dispatcher = njit(**_OPTIONS)(function)
    dispatcher._cache = _KeptCode(function)  # as its `enable_caching` does
    return dispatcher


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for functions to compile that only compiled functions call. Their code is part of that of an `entry`.

    Raises
    ------
    TypeError
        If Python calls the function.
    """
    dispatcher = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_ForCallers, **_OPTIONS)(function)

    def refuse(*args: object) -> None:
        raise TypeError(f"{function.__name__} can be called from compiled code only; decorate it with `entry` instead")

    template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: template(list(map(types.unliteral, args)), kws)
    dispatcher._compile_for_args = refuse
    # Python would find the missing machine code if the dispatcher offered it
    dispatcher.add_overload = lambda result: dispatcher.overloads.update({tuple(result.signature.args): result})
    return dispatcher


#: Like `compiled`, but copied into the callers before types are known. It is for functions that return record pointers,
#: because Numba cannot return those from a call.
inlined = njit(inline="always", **_OPTIONS)
