"""A worker process with one GPU, and how this process talks with it: through a pipe, without a port.

It runs as many tasks at a time as an engine has slices in hand. `pipeline.workers.device_serving` is its other side.
"""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from bicliques.pipeline.process.children import on_their_own
from bicliques.pipeline.workers.device_serving import serve
from bicliques.pipeline.workers.pool import WorkerLostError


class DeviceProcess:
    """A worker process. `submit` is that of an executor.

    Parameters
    ----------
    device : str
        What ``CUDA_VISIBLE_DEVICES`` is in the process, which sees no other one. To start CUDA takes a quarter of a
        second for each device that a process sees.
    sharing : int
        Processes that share the cores of the machine.
    tasks : int
        Tasks that it runs at a time.
    fatal_errors : frozenset of str
        See `pipeline.workers.device_failure.guarded`.
    get_ready : callable
        () -> None. The process calls it first. It is pickled.
    came, ended : callable
        (this object) -> None. They are called in a thread of its own, once `get_ready` has returned, and once the
        process has ended in any way. All its tasks are lost then.
    """

    def __init__(
        self,
        device: str,
        sharing: int,
        tasks: int,
        fatal_errors: frozenset[str],
        get_ready: Callable[[], None],
        came: Callable[[DeviceProcess], None],
        ended: Callable[[DeviceProcess], None],
    ):
        self.device, self.name, self.is_there = device, f"GPU {device}", False
        self._came, self._ended = came, ended
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self._number, self._is_over = 0, False
        spawn = multiprocessing.get_context("spawn")
        self._pipe, other = spawn.Pipe()
        words = (other, device, sharing, tasks, fatal_errors, get_ready)
        self._process = spawn.Process(target=serve, args=words, name=f"GPU {device}", daemon=True)
        with on_their_own():
            self._process.start()
            other.close()  # so that the end of the process is the end of the pipe
            self._listening = threading.Thread(target=self._listen, name=f"of GPU {device}", daemon=True)
            self._listening.start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How the process ended, as of `multiprocessing.Process`. None while it runs."""
        return self._process.exitcode

    def submit(self, function: Callable[[Any], Any], argument: Any) -> Future[Any]:
        """Have the process run ``function(argument)``."""
        task: Future[Any] = Future()
        with self._lock:
            number, self._number = self._number, self._number + 1
            if self._is_over:
                task.set_exception(self._lost())
                return task
            self._waiting[number] = task
        try:
            words = pickle.dumps((number, function, argument), pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            self._answer(number, None, error)
            return task
        with self._sending, suppress(OSError):  # the process has just ended, and `_listen` says so
            self._pipe.send_bytes(words)
        return task

    def kill(self) -> None:
        """End the process at once. Nothing of it is needed any more."""
        self._process.kill()

    def join(self) -> None:
        """Wait for the end of the process."""
        self._listening.join()

    def _listen(self) -> None:
        try:
            self.name = self._pipe.recv()
            self._came(self)
            while True:
                self._answer(*pickle.loads(self._pipe.recv_bytes()))
        except (EOFError, OSError):
            pass
        except BaseException:  # an answer that nobody understands; without an end its task would wait for ever
            self.kill()
            raise
        finally:
            self._end()

    def _end(self) -> None:
        self._process.join()
        with self._lock:
            self._is_over = True
            lost, self._waiting = list(self._waiting.values()), {}
        try:
            self._ended(self)  # first, so that nobody gives a lost task to this process again
        finally:
            for task in lost:
                task.set_exception(self._lost())

    def _answer(self, number: int, value: Any, error: BaseException | None) -> None:
        with self._lock:
            task = self._waiting.pop(number, None)
        if task is None:
            return
        if error is None:
            task.set_result(value)
        else:
            task.set_exception(error)

    def _lost(self) -> WorkerLostError:
        return WorkerLostError(f"its worker {self.name} died; the memory of the machine may be too small")
