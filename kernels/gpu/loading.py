"""Loads kernels onto a device: machine code that comes with the package, or else the source, compiled.

Nothing is loaded or compiled at import. A loaded kernel is never pickled; each worker calls `load` itself.
"""

from __future__ import annotations

import functools
import logging
import threading
from dataclasses import dataclass
from typing import Any

from bicliques.kernels.gpu.machine_code import code_for
from bicliques.kernels.gpu.source import Variant, compile_options, source_of

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
