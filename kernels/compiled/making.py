"""Compiles functions with Numba into object files with a plain C interface (`kernels.compiled.jit` loads them)."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.extending import typeof_impl
from numba.np.numpy_support import from_dtype

from bicliques.kernels.compiled.part import Part

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}
_NOT_FOR_PYTHON: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}


class _Parts(JITCodeLibrary):  # type: ignore[misc]  # Numba has no types
    """The code of a function that stays as it is until it is in its callers.

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


class _Outermost(_Parts):
    """The code of an entry: optimised with all that it calls, and then written to an object file."""

    _optimize_functions = JITCodeLibrary._optimize_functions
    _optimize_final_module = JITCodeLibrary._optimize_final_module


class _PartCompiler(Compiler):  # type: ignore[misc]
    library: type[JITCodeLibrary] = _Parts

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class _EntryCompiler(_PartCompiler):
    library = _Outermost


@typeof_impl.register(Part)
def _type_of_part(part: Part, _: Any) -> Any:
    """Numba's type of a `Part` that compiled code calls."""
    if part.dispatcher is None:
        dispatcher = njit(pipeline_class=_PartCompiler, **_NOT_FOR_PYTHON)(part.function)
        template = dispatcher.get_call_template
        dispatcher.get_call_template = lambda args, kws: template(list(map(types.unliteral, args)), kws)
        # Python would find the missing machine code if the dispatcher offered it
        dispatcher.add_overload = lambda result: dispatcher.overloads.update({tuple(result.signature.args): result})
        part.dispatcher = dispatcher
    return types.Dispatcher(part.dispatcher)


def object_code(function: Callable[..., Any], key: str) -> bytes:
    """An object file with the function ``entry``, compiled for arguments of these types.

    The interface is Numba's own: int32 entry(int64 *result, void **error, words...). An integer is one word, and an
    array seven.
    """
    dispatcher = njit(pipeline_class=_EntryCompiler, _nrt=False, **_NOT_FOR_PYTHON)(function)
    dispatcher.add_overload = lambda result: dispatcher.overloads.update({tuple(result.signature.args): result})
    with _without_collector():
        dispatcher.compile(tuple(_types_of(iter(key.split("-")))))
    [result] = dispatcher.overloads.values()
    if result.signature.return_type not in (types.none, types.int64):
        raise TypeError(f"{function.__name__} returns {result.signature.return_type}, not int64")
    module = result.library._final_module
    module.get_function(result.fndesc.llvm_func_name).name = "entry"
    missing = {f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")}
    if missing:
        raise TypeError(f"{function.__name__} needs {', '.join(sorted(missing))}, which compiled code does without")
    code: bytes = result.library._codegen._tm.emit_object(module)
    return code


@contextmanager
def _without_collector() -> Iterator[None]:
    """Collect no garbage. Numba makes millions of objects and drops few: to look for them takes an eighth of the time.

    It takes 60 MB more at most.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _types_of(names: Iterator[str]) -> Iterator[Any]:
    for name in names:
        if name == "n":
            yield types.int64
        elif name.startswith("t"):
            parts = _types_of(names)
            yield types.Tuple([next(parts) for _ in range(int(name[1:]))])
        else:
            yield types.Array(from_dtype(np.dtype(name)), 1, "C")
