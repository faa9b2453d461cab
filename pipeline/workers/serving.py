"""What a worker process of this machine does. `pipeline.workers.processes` starts it and talks with it.

This module imports little, because the process imports it before it knows its GPU, and before the driver of that
begins to start.
"""

from __future__ import annotations

import logging
import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from bicliques.pipeline.process.children import end_with_parent, identity
from bicliques.pipeline.process.cores import share_cores
from bicliques.pipeline.process.startup import leave_out
from bicliques.schemas.errors import BicliqueError

logger = logging.getLogger(__name__)

#: Exit code of a worker whose device failed.
_DEVICE_FAILED = 70


def meet_device() -> None:
    """Import what slices need, while the driver makes the context of the device. Neither depends on the run."""
    from bicliques.kernels.gpu.cuda import wake  # not before the device is known

    waking = wake()
    leave_out()
    from bicliques.kernels.gpu.device import why_no_gpu
    from bicliques.pipeline.slices import worker  # noqa: F401 - is loaded before the first task asks for it

    with suppress(ImportError):  # the first slice says so
        import cupy
    waking.join()
    if why_no_gpu() is None:
        cupy.cuda.runtime.free(0)  # takes the context


def serve(
    pipe: Connection,
    device: str | None,
    sharing: int,
    tasks: int,
    fatal_errors: frozenset[str],
    get_ready: Callable[[], None],
) -> None:
    """The life of the process. It ends when it is killed, or with its parent."""
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device
    share_cores(sharing)
    threading.Thread(target=end_with_parent, daemon=True).start()
    get_ready()
    pipe.send(identity())
    threads, sending = ThreadPoolExecutor(tasks, thread_name_prefix="slice"), threading.Lock()

    def do(number: int, function: Callable[[Any], Any], argument: Any) -> None:
        try:
            answer = _packed(number, guarded(function, fatal_errors, argument), None)
        except Exception as error:
            answer = _packed(number, None, error)
        with sending:
            pipe.send_bytes(answer)

    with suppress(EOFError):
        while True:
            threads.submit(do, *pickle.loads(pipe.recv_bytes()))
    os._exit(0)


def _packed(number: int, value: Any, error: Exception | None) -> bytes:
    """An answer that the other side can unpack. Not every exception can be pickled and made again."""
    if error is not None:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
    return pickle.dumps((number, value, error), pickle.HIGHEST_PROTOCOL)


def has_failed(error: BaseException | None, fatal: frozenset[str]) -> bool:
    """Whether an error has a name in `fatal`; see `schemas.platform.Platform`. Errors of this package have not."""
    return error is not None and not isinstance(error, BicliqueError) and type(error).__name__ in fatal


def guarded(function: Callable[[Any], Any], fatal: frozenset[str], argument: Any) -> Any:
    """Return ``function(argument)``. If the device fails, end this process, because its CUDA context is of no more use.

    Whoever watches over the process starts another one. The slices that this process had in hand are tried again
    elsewhere.
    """
    try:
        return function(argument)
    except Exception as error:
        if not has_failed(error, fatal):
            raise
        logger.critical("the GPU of process %d failed (%s); the process is replaced", os.getpid(), error)
        os._exit(_DEVICE_FAILED)
