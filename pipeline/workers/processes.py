"""A pool of processes of this machine, each with a GPU of its own or on a core. This process works while they start.

Threads of one process wait for one another when they read rows: for Python's lock, and for memory that the system gives
and takes back. On 16 cores 16 threads read twice as many rows per second as one, and 16 processes nine times as many
(docs/lab/commands.md). A process that uses several GPUs starts slowly, and ends as a whole if one of them fails.
"""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from typing import Any, Literal

from bicliques.pipeline.process.children import identity, on_their_own
from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.slices import ending
from bicliques.pipeline.workers.serving import has_failed, meet_device, serve
from bicliques.pipeline.workers.thread_pool import Capacity, InThreads, Result, WorkerLostError
from bicliques.schemas.errors import ResourceError, as_option
from bicliques.schemas.platform import Platform

logger = logging.getLogger(__name__)

#: Longest slice of this process while others are on their way, because they wait for it. In seconds.
_MEANWHILE_S = 0.25


class Process:
    """A worker process, and how this process talks with it: through a pipe, without a port.

    Parameters
    ----------
    device : str or None
        What ``CUDA_VISIBLE_DEVICES`` is in the process, which sees no other one. To start CUDA takes a quarter of a
        second for each device that a process sees. None: it has none.
    sharing : int
        Processes that share the cores of the machine.
    tasks : int
        Tasks that it runs at a time.
    fatal_errors : frozenset of str
        See `pipeline.workers.serving.guarded`.
    get_ready : callable
        () -> None. The process calls it first. It is pickled.
    came, ended : callable
        (this object) -> None. They are called in a thread of its own, once `get_ready` has returned, and once the
        process has ended in any way. All its tasks are lost then.
    """

    def __init__(
        self,
        device: str | None,
        sharing: int,
        tasks: int,
        fatal_errors: frozenset[str],
        get_ready: Callable[[], None],
        came: Callable[[Process], None],
        ended: Callable[[Process], None],
    ):
        self.device, self.is_there = device, False
        self.name = "a process" if device is None else f"GPU {device}"
        self._came, self._ended = came, ended
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self._number, self._is_started, self._is_over = 0, False, False
        spawn = multiprocessing.get_context("spawn")
        self._pipe, other = spawn.Pipe()
        words = (other, device, sharing, tasks, fatal_errors, get_ready)
        self._other = other
        self._process = spawn.Process(target=serve, args=words, name=self.name, daemon=True)
        self._listening = threading.Thread(target=self._listen, name=f"of {self.name}", daemon=True)

    def start(self) -> None:
        """Start the process. This takes tens of milliseconds."""
        with on_their_own():
            self._process.start()
            self._other.close()  # so that the end of the process is the end of the pipe
            self._listening.start()
        self._is_started = True

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
        """End the process at once, if it is started. Nothing of it is needed any more."""
        if self._is_started:
            self._process.kill()

    def join(self) -> None:
        """Wait for the end of the process, if it is started."""
        if self._is_started:
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


class Processes(InThreads):
    """Runs tasks in processes that it starts; see `Pool`. They end when their parent has ended.

    Parameters
    ----------
    devices : sequence of str or None
        The GPU of each process, as ``CUDA_VISIBLE_DEVICES`` names it. None: it has a core.
    platform : Platform
        What the engines run on.
    here : "first", "meanwhile" or "never"
        When this process works, too: always, in the place of the first process, whose GPU must be the first one that
        it sees; on as many threads as there will be processes until all of them are there; or never.
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
        devices: Sequence[str | None],
        platform: Platform,
        here: Literal["first", "meanwhile", "never"],
        at_once: bool,
        get_ready: Callable[[], None] = meet_device,
    ):
        threads = platform.slices_in_hand if platform.shares_engine else len(devices)
        super().__init__(threads, share_engine=platform.shares_engine)
        self.has_threads = False
        self._devices, self._platform, self._get_ready = list(devices), platform, get_ready
        self._here, self._uses_here = here, here != "never"
        self._in_hand_here: set[int] = set()
        self._of_tag: dict[int, Process] = {}
        self._changed = threading.Condition(threading.RLock())  # guards all that follows
        self._processes: list[Process] = []
        self._queued: deque[Callable[[Process], None]] = deque()  # tasks that came while there was no GPU
        self._prepare: tuple[Callable[[Any], Any], Any] | None = None
        self._starting: threading.Thread | None = None
        self._is_closing = False
        self._error: ResourceError | None = None
        if at_once:
            self.grow()

    def capacity(self) -> Capacity:
        """The engines that can be used now, and as many slices as all of them may have in hand."""
        slots, engines, _ = super().capacity() if self._uses_here else Capacity(0, 0)
        there = len(self._there)
        return Capacity(slots + self._platform.slices_in_hand * there, engines + there)

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Run ``function(argument)`` in this process, and in each other one before it gets its next task.

        If this process does not work, wait until one of the others can be used.
        """
        with self._changed:
            self._prepare = (function, argument)
            for process in self._there:
                self._get_process_ready(process)
        if self._uses_here:
            function(argument)
        with self._changed:
            self._changed.wait_for(lambda: self._error or self._is_closing or self._uses_here or self._there)
        self._raise()

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any, on_all_threads: bool = False) -> None:
        """Give the task to the process that has the fewest, for what it may have at a time."""

        def give(process: Process) -> None:
            self._of_tag[tag] = process
            process.submit(function, argument).add_done_callback(lambda done: self._done.put((tag, done)))

        with self._changed:
            least = min(self._there, key=self._in_hand, default=None)
            slots, of_one = super().capacity().slots, self._platform.slices_in_hand
            fewest = len(self._in_hand_here) / slots
            if self._uses_here and (least is None or fewest <= self._in_hand(least) / of_one):
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
            if self._uses_here and has_failed(result.error, self._platform.fatal_errors):
                self._leave_first_device(result.error)
        return results

    def grow(self) -> None:
        """Start the other processes, and do not wait for them. Later calls do nothing."""
        if self._starting is None:
            others = self._devices[1:] if self._here == "first" else self._devices
            self._starting = threading.Thread(target=self._start, args=(others,), daemon=True)
            self._starting.start()

    def longest_task_s(self) -> float | None:
        """A quarter of a second while processes are on their way, because they would wait for a longer task."""
        missing = len(self._devices) - len(self._there) - (self._uses_here and self._here == "first")
        return _MEANWHILE_S if self._starting is not None and missing else None

    def describe(self) -> str:
        """The processes in a few words, for the run card."""
        if self._starting is None or (self._here == "meanwhile" and self._uses_here):
            return super().describe()
        return f"{len(self._devices)} {'local GPUs' if self._platform.shares_engine else 'processes'}"

    def who(self, tag: int) -> str:
        """The name of the process that has the task. Empty if none has it."""
        process = self._of_tag.get(tag)
        if process is None:
            return identity() if tag in self._in_hand_here else ""
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
        with ending.all_ended() if self._here == "first" else nullcontext():
            super().close()
        for process in processes:
            process.join()

    @property
    def _there(self) -> list[Process]:
        """The processes that can be used."""
        return [process for process in self._processes if process.is_there]

    def _in_hand(self, process: Process) -> int:
        return sum(other is process for other in self._of_tag.values())

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _start(self, devices: Sequence[str | None]) -> None:
        """Start a process for each of these devices, unless the pool is being closed."""
        platform, sharing = self._platform, len(self._devices)
        for device in devices:
            with self._changed:
                if self._is_closing:
                    return
                process = Process(
                    device,
                    sharing,
                    platform.slices_in_hand,
                    platform.fatal_errors,
                    self._get_ready,
                    self._came,
                    self._ended,
                )
                self._processes.append(process)
            try:
                process.start()  # without the lock, because tasks are submitted meanwhile
            except (OSError, RuntimeError) as error:
                with self._changed:
                    self._processes.remove(process)
                    self._fail(f"{_name(device)} could not be started ({error}); try {as_option('workers', 0)}")
            self._kill_if_closing(process)

    def _kill_if_closing(self, process: Process) -> None:
        """End a process that was not started yet when all others were ended."""
        if self._is_closing:
            process.kill()

    def _came(self, process: Process) -> None:
        with self._changed:
            self._get_process_ready(process)

    def _get_process_ready(self, process: Process) -> None:
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

    def _can_be_used(self, process: Process) -> None:
        process.is_there = True
        if self._here == "meanwhile" and all(other.is_there for other in self._processes):
            self._uses_here = len(self._processes) < len(self._devices)
        tell(logger, "came", f"worker {process.name} is there", worker=process.name, device=process.device)
        while self._queued:
            self._queued.popleft()(process)
        self._changed.notify_all()

    def _ended(self, process: Process) -> None:
        with self._changed:
            if self._is_closing:
                return
            self._processes.remove(process)
            device = process.device
            if not process.is_there:
                how = f"ended while it got ready, with exit code {process.exit_code}"
                self._fail(
                    f"{_name(device)} {how}; try {as_option('workers', 0)}, or others with {as_option('devices')}"
                )
                return
            text = f"worker {process.name} has gone"
            tell(logger, "gone", text, logging.WARNING, worker=process.name, device=device)
        self._start([device])

    def _leave_first_device(self, error: BaseException | None) -> None:
        """Let a process of its own use the first GPU, because it has failed in this one."""
        self._uses_here = False
        text = f"GPU {self._devices[0]} failed in this process ({error}); another process uses it from now on"
        tell(logger, "gone", text, logging.WARNING, worker=identity(), device=self._devices[0])
        self._start(self._devices[:1])

    def _fail(self, reason: str) -> None:
        self._error = ResourceError(reason)
        self._changed.notify_all()


def _name(device: str | None) -> str:
    return "a worker process" if device is None else f"the worker process of GPU {device}"
