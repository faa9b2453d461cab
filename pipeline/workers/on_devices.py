"""A pool of the GPUs of this machine. This process uses the first one, and processes of their own use the others.

This process mines while the others start. They join as they come.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.slices import ending, worker
from bicliques.pipeline.workers.device_failure import has_failed
from bicliques.pipeline.workers.device_process import DeviceProcess
from bicliques.pipeline.workers.device_serving import meet_device
from bicliques.pipeline.workers.pool import Capacity, Result, WorkerLostError
from bicliques.pipeline.workers.thread_pool import InThreads
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.platform import Platform

logger = logging.getLogger(__name__)

#: Longest slice of this process while others are on their way, because they wait for it. In seconds.
_MEANWHILE_S = 0.25


class OnDevices(InThreads):
    """Runs tasks on several GPUs; see `pipeline.workers.pool.Pool`.

    Parameters
    ----------
    devices : sequence of str
        The GPUs, as ``CUDA_VISIBLE_DEVICES`` names them.
    platform : Platform
        What the engines run on.
    uses_first : bool
        Whether this process uses the first of them, which must be the first one that it sees. Otherwise each of them
        has a process.
    at_once : bool
        Whether the processes start now, and not when the pool is told to grow.
    get_ready : callable
        () -> None. Each process calls it first. It is pickled.

    Notes
    -----
    A process that dies loses its tasks, and another one is started. If the GPU of this process fails, it gets a process
    of its own, because this one cannot use it any more.
    """

    def __init__(
        self,
        devices: Sequence[str],
        platform: Platform,
        uses_first: bool,
        at_once: bool,
        get_ready: Callable[[], None] = meet_device,
    ):
        super().__init__(platform.slices_in_hand, share_engine=True)
        self._devices, self._platform, self._get_ready = list(devices), platform, get_ready
        self._here = int(uses_first)
        self._in_hand_here: set[int] = set()
        self._of_tag: dict[int, DeviceProcess] = {}
        self._changed = threading.Condition(threading.RLock())  # guards all that follows
        self._processes: list[DeviceProcess] = []
        self._queued: deque[Callable[[DeviceProcess], None]] = deque()  # tasks that came while there was no GPU
        self._prepare: tuple[Callable[[Any], Any], Any] | None = None
        self._starting: threading.Thread | None = None
        self._is_closing = False
        self._error: ResourceError | None = None
        if at_once:
            self.grow()

    def capacity(self) -> Capacity:
        """The GPUs that can be used now, and as many slices as all engines may have in hand."""
        ready = self._ready
        return Capacity(self._platform.slices_in_hand * ready, ready)

    @property
    def _ready(self) -> int:
        return self._here + len(self._there)

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Run ``function(argument)`` in this process, and in each other one before it gets its next task.

        If this process uses no GPU, wait until one of the others can be used.
        """
        with self._changed:
            self._prepare = (function, argument)
            for process in self._there:
                self._get_process_ready(process)
        if self._here:
            function(argument)
        with self._changed:
            self._changed.wait_for(lambda: self._error or self._is_closing or self._ready)
        self._raise()

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """Give the task to the GPU that has the fewest."""

        def give(process: DeviceProcess) -> None:
            self._of_tag[tag] = process
            process.submit(function, argument).add_done_callback(lambda done: self._done.put((tag, done)))

        with self._changed:
            least = min(self._there, key=self._in_hand, default=None)
            if self._here and (least is None or len(self._in_hand_here) <= self._in_hand(least)):
                self._in_hand_here.add(tag)
                super().submit(tag, function, argument)
            elif least is not None:
                give(least)
            else:
                self._queued.append(give)

    def wait(self, seconds: float) -> list[Result]:
        """All tasks that have ended. Waits up to `seconds` for the first."""
        self._raise()
        results = super().wait(seconds)
        for result in results:
            self._of_tag.pop(result.tag, None)
            self._in_hand_here.discard(result.tag)
            if self._here and has_failed(result.error, self._platform.fatal_errors):
                self._leave_first_device(result.error)
        return results

    def grow(self) -> None:
        """Start the other processes, and do not wait for them. Later calls do nothing."""
        if self._starting is None:
            self._starting = threading.Thread(target=self._start, args=(self._devices[self._here :],), daemon=True)
            self._starting.start()

    def longest_task_s(self) -> float | None:
        """A quarter of a second while processes are on their way, because they would wait for a longer task."""
        return _MEANWHILE_S if self._starting is not None and self._ready < len(self._devices) else None

    def describe(self) -> str:
        """The GPUs in a few words, for the run card."""
        return super().describe() if self._starting is None else f"{len(self._devices)} local GPUs"

    def who(self, tag: int) -> str:
        """The name of the process that has the task. Empty if none has it."""
        process = self._of_tag.get(tag)
        if process is None:
            return worker.identity() if tag in self._in_hand_here else ""
        return process.name

    def close(self) -> None:
        """Abandon running tasks, end the processes, and free the memory of the last run."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._starting is not None:
            self._starting.join()
        processes = list(self._processes)
        for process in processes:
            process.kill()
        with ending.all_ended():
            super().close()
        for process in processes:
            process.join()

    @property
    def _there(self) -> list[DeviceProcess]:
        return [process for process in self._processes if process.is_there]

    def _in_hand(self, process: DeviceProcess) -> int:
        return sum(other is process for other in self._of_tag.values())

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _start(self, devices: Sequence[str]) -> None:
        """Start a process for each of these devices, unless the pool is being closed."""
        platform, sharing = self._platform, len(self._devices)
        for device in devices:
            with self._changed:
                if self._is_closing:
                    return
                try:
                    process = DeviceProcess(
                        device,
                        sharing,
                        platform.slices_in_hand,
                        platform.fatal_errors,
                        self._get_ready,
                        self._came,
                        self._ended,
                    )
                except (OSError, RuntimeError) as error:
                    self._fail(f"the worker process of GPU {device} could not be started ({error}); try --workers 0")
                else:
                    self._processes.append(process)

    def _came(self, process: DeviceProcess) -> None:
        with self._changed:
            self._get_process_ready(process)

    def _get_process_ready(self, process: DeviceProcess) -> None:
        """Have a process prepare itself as all others. Until then it gets no tasks."""
        prepare, process.is_there = self._prepare, False
        if prepare is None:
            self._can_be_used(process)
            return

        def prepared(done: Future[Any]) -> None:  # with an error, too: a bad worker fails again with its first slice
            with self._changed:
                if isinstance(done.exception(), WorkerLostError):
                    return
                if self._prepare is prepare:
                    self._can_be_used(process)
                else:
                    self._get_process_ready(process)

        process.submit(*prepare).add_done_callback(prepared)

    def _can_be_used(self, process: DeviceProcess) -> None:
        process.is_there = True
        tell(logger, "came", f"worker {process.name} is there", worker=process.name, device=process.device)
        while self._queued:
            self._queued.popleft()(process)
        self._changed.notify_all()

    def _ended(self, process: DeviceProcess) -> None:
        with self._changed:
            if self._is_closing:
                return
            self._processes.remove(process)
            device = process.device
            if not process.is_there:
                how = f"ended while it got ready, with exit code {process.exit_code}"
                self._fail(f"the worker process of GPU {device} {how}; try --workers 0, or others with --devices")
                return
            text = f"worker {process.name} has gone"
            tell(logger, "gone", text, logging.WARNING, worker=process.name, device=device)
        self._start([device])

    def _leave_first_device(self, error: BaseException | None) -> None:
        """Let a process of its own use the first GPU, because it has failed in this one."""
        self._here = 0
        text = f"GPU {self._devices[0]} failed in this process ({error}); another process uses it from now on"
        tell(logger, "gone", text, logging.WARNING, worker=worker.identity(), device=self._devices[0])
        self._start(self._devices[:1])

    def _fail(self, reason: str) -> None:
        self._error = ResourceError(reason)
        self._changed.notify_all()
