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
from typing import Any

import llvmlite.binding
import numba
from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

__all__ = ["compiled", "inlined"]


def _cache_folder() -> Path:
    """The digest's folder in ``$NUMBA_CACHE_DIR``, else ``$XDG_CACHE_HOME/bicliques``, else ``~/.cache/bicliques``."""
    root = Path(__file__).parents[2]
    machine = (root, sys.version, numba.__version__, llvmlite.binding.get_host_cpu_name())
    digest = hashlib.sha256(repr(machine).encode())
    # code elsewhere in `kernels` may be compiled, but it must not call compiled code of another file
    sources = ("kernels/compiled/jit.py", "kernels/compiled/lists.py", "kernels/cpu/*.py", "kernels/graph/*.py")
    for pattern in (*sources, "schemas/bicliques.py", "schemas/dtypes.py", "schemas/work.py"):
        for path in sorted(root.glob(pattern)):
            digest.update(path.read_bytes())
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(cache) / "bicliques")
    return folder / digest.hexdigest()[:16]


numba.config.CACHE_DIR = str(_cache_folder())


class _KeptCode(FunctionCache):
    """Machine code on disk, which is loaded without Numba's tables of what it can compile.

    Numba fills these tables before it loads anything, which takes 0.2 s. Only compiling needs them, and it fills them
    itself.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for these types, or None if it has to be compiled."""
        rtsys.initialize(target_context)  # the code allocates arrays
        return self._load_overload(sig, target_context)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for functions to compile.

    They release the GIL and divide without checks. The code is kept on disk, and fast-math is never used.
    """
    dispatcher = njit(nogil=True, error_model="numpy", boundscheck=False)(function)
    dispatcher._cache = _KeptCode(function)  # as its `enable_caching` does
    return dispatcher


#: Like `compiled`, but copied into the callers. It is for functions that return record pointers, because Numba cannot
#: return those from a call.
inlined = njit(nogil=True, cache=True, error_model="numpy", boundscheck=False, inline="always")
