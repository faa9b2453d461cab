"""Libraries that are not imported by commands and by the processes that these start, where nobody uses them."""

from __future__ import annotations

import importlib
import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

#: What Arrow, and Numba if it has to compile, import wherever it is installed, for half a second. No command needs it.
_LEFT_OUT = frozenset({"cffi", "pandas", "scipy"})


class _Refusal:
    """A finder, as in `importlib.abc.MetaPathFinder`, that refuses these libraries."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name in _LEFT_OUT:
            raise ModuleNotFoundError(f"the command line leaves {name} out", name=name)


class _Metadata(ModuleType):
    """It stands for `importlib.metadata`, and imports that when something of it is asked for.

    CuPy asks for 22 names of itself when it is imported, to warn of two that are installed, and for cuTENSOR, which no
    command needs. That takes up to half of its import, because every folder of packages is looked through.
    """

    PackageNotFoundError = ModuleNotFoundError  # the class of which it is made

    def distribution(self, name: str) -> Any:
        """As `importlib.metadata.distribution`, except for CuPy and cuTENSOR."""
        if "cupy" in name or "cutensor" in name:
            raise self.PackageNotFoundError(name)
        return self._real().distribution(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)

    def _real(self) -> Any:
        if self.__dict__.get("_found") is None:
            del sys.modules[self.__name__]
            self._found = import_module(self.__name__)
            self.stand_in()
        return self._found

    def stand_in(self) -> None:
        """Be found by all that import the module."""
        sys.modules[self.__name__] = self
        importlib.metadata = self


def leave_out() -> None:
    """Hide libraries in this process, which was started for one command or by one.

    Arrow asks for pandas at its first conversion, once and for all, and takes an exception for an answer. The others
    look into `sys.modules`. The library of linear algebra that comes with NumPy starts a thread per core, and each of
    them spins for a tenth of a second; one is enough, because no command multiplies matrices.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _Metadata("importlib.metadata").stand_in()
    import numpy as np
    import pyarrow as pa

    refusal = _Refusal()
    sys.meta_path.insert(0, refusal)
    pa.array(np.zeros(1)).to_numpy()
    sys.meta_path.remove(refusal)
    for name in _LEFT_OUT:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
