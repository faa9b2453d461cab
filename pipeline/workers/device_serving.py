"""What the process of a GPU does. `pipeline.workers.device_process` starts it and talks with it.

This module imports little, because the process imports it before it knows its GPU, and before the driver of that
begins to start.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from bicliques.pipeline.process.children import end_with_parent
from bicliques.pipeline.process.cores import share_cores
from bicliques.pipeline.process.left_out import leave_out
from bicliques.pipeline.workers.device_failure import guarded


def meet_device() -> None:
    """Import what slices need, while the driver makes the context of the device. Neither depends on the run."""
    from bicliques.kernels.gpu.wake import wake  # not before the device is known

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
    device: str,
    sharing: int,
    tasks: int,
    fatal_errors: frozenset[str],
    get_ready: Callable[[], None],
) -> None:
    """The life of the process. It ends when it is killed, or with its parent.

    Parameters
    ----------
    pipe : Connection
    device, sharing, tasks, fatal_errors, get_ready
        See `pipeline.workers.device_process.DeviceProcess`.
    """
    os.environ["CUDA_VISIBLE_DEVICES"] = device
    share_cores(sharing)
    threading.Thread(target=end_with_parent, daemon=True).start()
    get_ready()
    from bicliques.pipeline.slices.worker import identity  # after the GPU is known

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
