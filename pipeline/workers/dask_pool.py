"""A pool of Dask workers: of a LocalCluster, on GPUs, or of a scheduler that is running already.

Dask does not run the tasks of a dead worker again, but reports them as lost. `pipeline.dealing.schedule` alone
decides whether to try again or to give up.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

import dask
import dask.system
import distributed

from bicliques.kernels.gpu.cuda import CUDA
from bicliques.pipeline.process.children import identity, on_their_own
from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.slices import worker
from bicliques.pipeline.workers.dask_tasks import (
    DaskTasks,
    answers,
    check_environment,
    client_of,
    could_share,
    start_cluster,
    unlisten,
)
from bicliques.pipeline.workers.notice import bring_notice
from bicliques.pipeline.workers.options import Scheduler, address_of
from bicliques.pipeline.workers.thread_pool import Capacity, Pool, Result
from bicliques.schemas.errors import ResourceError, as_option
from bicliques.schemas.platform import CORES, Platform

logger = logging.getLogger(__name__)

#: Seconds that a scheduler or the first worker may take to start.
_START_S = 60.0
#: Seconds that a worker may take to say its name.
_NAME_S = 10.0
#: Seconds that our workers may take to end. Dask itself kills a worker that is at work after 4 s, and waits for some
#: others without end.
_STOP_S = 5.0

_CONFIG = {
    "distributed.scheduler.allowed-failures": 0,  # lost tasks are reported, see above
    "distributed.scheduler.work-stealing": False,  # a worker has one task at a time, so there is nothing to steal
    "distributed.comm.timeouts.connect": "30s",
    # Dask sets another variable of glibc. With it, glibc gives the pages of every array from 128 KiB on back to the
    # system when the array is freed, and asks for new ones for the next array. Proving would take 50 % longer, and
    # mining 10 %. So this threshold is raised to 32 MiB, the most that glibc takes.
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 32 << 20,
    "logging.distributed": "critical",  # for workers, because what goes wrong there comes back as an error
}

#: Our own workers begin with it, and so import a quarter less.
_PRELOAD = "from bicliques.pipeline.process.startup import leave_out; leave_out()"


class DaskPool(Pool):
    """Runs tasks on Dask workers; see `Pool`. `local`, `on_gpus`, `start` or `connect` make it.

    Parameters
    ----------
    cluster : distributed.LocalCluster or None
        The pool owns it and closes it. None if the workers belong to somebody else.
    name : str
        The workers in a few words.
    platform : Platform
        What their engines run on.
    closes : bool
        Whether the pool owns the client, and closes it.
    """

    def __init__(
        self,
        client: distributed.Client,
        cluster: distributed.LocalCluster | None,
        name: str,
        platform: Platform,
        closes: bool = True,
    ):
        self.client = client
        self.cluster = cluster
        self._name = name
        self._platform = platform
        self._closes = closes
        self._has_worked = self._is_advised = False
        self._here: set[str] = set()  # addresses of the workers
        self._names: dict[str, str] = {}  # by address: host and process of every worker, also of those that have gone
        self._tasks = DaskTasks(client, platform.fatal_errors, lambda address: self._names.get(address, address))
        self._sharing: dict[str, int] = {}  # by address: the threads of each worker, if they share slices
        self._led: dict[int, str] = {}  # by tag: the address of the worker whose threads share the slice
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="names")
        self._closing = threading.Event()

    @classmethod
    def local(cls, workers: int) -> DaskPool:
        """Start `workers` worker processes on this machine, with one thread each.

        Raises `ResourceError` if they do not start.
        """

        def start() -> distributed.LocalCluster:
            return distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=0,  # no limit is needed, because a worker's memory is bounded by construction
                dashboard_address="127.0.0.1:0",  # its pages can be seen only from this machine
                preload=[*dask.config.get("distributed.worker.preload"), _PRELOAD],
                silence_logs=logging.CRITICAL,
            )

        return cls.start(start, f"{workers} local worker{'s' if workers != 1 else ''}", CORES)

    @classmethod
    def on_gpus(cls, devices: Sequence[str], rmm_pool: str | None = None, spill: bool = False) -> DaskPool:
        """Start a worker process on each of `devices`; see `pipeline.workers.dask_tasks.start_cluster`."""
        name = f"{len(devices)} local GPU{'s' if len(devices) != 1 else ''}"
        return cls.start(lambda: start_cluster(devices, rmm_pool, spill), name, CUDA)

    @classmethod
    def start(cls, start: Callable[[], distributed.LocalCluster], name: str, platform: Platform) -> DaskPool:
        """Start a cluster that the pool owns. If anything goes wrong, or at Ctrl-C, the cluster is stopped again."""
        if getattr(multiprocessing.current_process(), "_inheriting", False):  # Dask's cluster would never be ready
            raise ResourceError(
                "a process that multiprocessing is still starting cannot start workers; in a script that starts "
                "processes of its own call the pipeline under: if __name__ == '__main__'"
            )
        try:
            with ExitStack() as started:
                with dask.config.set(_CONFIG), on_their_own():
                    cluster = start()
                    started.callback(_stop, cluster, name)
                    _be_patient(cluster)
                    client = distributed.Client(cluster, timeout=_START_S, set_as_default=False)
                    started.callback(client.close)
                started.pop_all()
        except (OSError, TimeoutError, RuntimeError, ValueError, ImportError) as error:
            raise ResourceError(
                f"a cluster of {name} could not be started ({error}); try {as_option('workers', 0)}"
            ) from error
        return cls(client, cluster, name, platform)

    @classmethod
    def connect(
        cls,
        scheduler: Scheduler,
        platform: Platform = CORES,
        command: str = "dask worker",
        patience_s: float = _START_S,
    ) -> DaskPool:
        """Connect to the workers of a running scheduler.

        Raises `InputError` if the client or the cluster cannot be used, and `ResourceError` if the scheduler does not
        answer or has no workers, or if the workers have another version of this package, or no GPU although the engine
        needs one.

        Parameters
        ----------
        scheduler : str, distributed.Client or distributed.deploy.Cluster
            The address of the scheduler, or who knows it; see `pipeline.workers.dask_tasks.client_of`.
        platform : Platform
            What the engines of the workers run on.
        command : str
            The command that starts a worker of this platform. Errors name it.
        patience_s : float
            Seconds that the scheduler may take to answer, now and later.
        """
        client, is_ours = client_of(scheduler, patience_s)
        address = address_of(scheduler)
        pool = cls(client, None, f"workers of {address}", platform, closes=is_ours)
        try:
            check_environment(client, address, platform, command)
            bring_notice(client)
        except BaseException:
            pool.close()
            raise
        return pool

    def reasons(self) -> dict[str, dict[str, str | None]]:
        """For every worker by its address, why each engine cannot run there. None for an engine that can."""
        return dict(self._ask(lambda: answers(self.client, worker.reasons)))

    def capacity(self) -> Capacity:
        """An engine per thread, or one per worker process if its threads share it, and the slices these have in hand.

        If a worker process has several engines, each worker gets one slice at a time.
        """
        threads = self._threads()
        self._meet(threads)
        in_hand = self._platform.slices_in_hand
        if self._platform.shares_engine:
            return Capacity(in_hand * len(threads), len(threads))
        engines = sum(threads.values())
        self._sharing = threads if engines > len(threads) else {}
        if self._sharing:
            return Capacity(in_hand * engines, engines, (len(threads), len(threads)))
        self._is_advised = self._is_advised or (self.cluster is None and could_share(threads))
        return Capacity(in_hand * engines, engines)

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Run a task on each worker that is there now. Workers that join later do without it."""
        self._has_worked = True
        workers = self._threads()
        futures = [self.client.submit(function, argument, workers=[name], pure=False) for name in workers]
        for future in futures:  # errors are ignored here, because a bad worker fails again with its first slice
            while not future.done() and not self._closing.wait(0.02):
                pass

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any, on_all_threads: bool = False) -> None:
        """Submit a task; see `pipeline.workers.dask_tasks`. The worker with the fewest slices shares the next one."""
        self._has_worked = True
        if on_all_threads and self._sharing:
            in_hand = Counter(self._led.values())
            self._led[tag] = min(self._sharing, key=lambda address: in_hand[address])
        self._tasks.submit(tag, function, argument, self._led.get(tag))

    def wait(self, seconds: float) -> list[Result]:
        """All tasks that have ended. Waits up to `seconds` for the first."""
        results = self._tasks.wait(seconds)
        for result in results:
            self._led.pop(result.tag, None)
        return results

    def idle(self, free: int) -> int:
        """If threads share slices, those of the workers that have none."""
        if not self._sharing:
            return free
        return sum(threads for address, threads in self._sharing.items() if address not in self._led.values())

    def describe(self) -> str:
        """The workers in a few words, for the run card."""
        return self._name

    def who(self, tag: int) -> str:
        """The name of the worker that has the task, as the Dask scheduler knows it. Empty if none has it."""
        if (key := self._tasks.key(tag)) is not None:
            for address, keys in self._ask(self.client.processing).items():
                if key in keys:
                    return self._names.get(address, address)
        return ""

    def dashboard(self) -> str:
        """Address of Dask's dashboard. Empty if the scheduler has none, or is ours and has no Bokeh to draw it."""
        if self.cluster is not None and find_spec("bokeh") is None:
            return ""
        return str(self._ask(lambda: self.client.dashboard_link) or "")

    def _meet(self, addresses: Iterable[str]) -> None:
        """Ask new workers for their names, because dead ones cannot tell them, and log which workers have gone."""
        before, self._here = self._here, set(addresses)
        for address in self._here - before:
            self._names[address] = address
            asked = self.client.submit(identity, None, workers=[address], pure=False)
            # not as a callback: a worker that dies now never answers, and Dask has only one thread for all callbacks
            with suppress(RuntimeError):  # the pool is being closed
                self._asking.submit(self._introduce, address, asked)
        for address in before - self._here:
            name = self._names[address]  # is kept, because its lost tasks are reported later
            level = logging.INFO if self.cluster is None else logging.WARNING  # only our own workers must not go
            tell(logger, "gone", f"worker {name} has gone", level, worker=name, address=address)

    def _introduce(self, address: str, asked: distributed.Future) -> None:
        with suppress(Exception):  # the worker may have gone again, or the client may be closed
            name = asked.result(timeout=_NAME_S)
            self._names[address] = name
            if address in self._here:
                tell(logger, "came", f"worker {name} is there", worker=name, address=address)

    def close(self, patience_s: float = _STOP_S) -> None:
        """Abandon running tasks. Stop our own workers, and kill those that have not ended after `patience_s`.

        A client that the user has given stays open, with all that the user has in it.
        """
        self._closing.set()
        self._asking.shutdown(wait=False, cancel_futures=True)
        if self.cluster is None:
            with suppress(Exception):  # if the scheduler is gone, there is nothing to cancel
                self._tasks.cancel()
                for address in self._threads() if self._has_worked else ():
                    asked = self.client.submit(worker.forget, workers=[address], pure=False)
                    distributed.fire_and_forget(asked)  # else Dask drops it, because nobody waits for it
        unlisten(self.client)
        if self._closes:
            self.client.close()
        if self.cluster is not None:
            _stop(self.cluster, self._name, patience_s)

    def _threads(self) -> dict[str, int]:
        return dict(self._ask(self.client.nthreads))

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except (OSError, TimeoutError, RuntimeError) as error:  # RuntimeError: the client has given up
            raise ResourceError(
                f"Dask does not answer any more ({error}), so the {self._name} are lost; start them again"
            ) from error


def _be_patient(cluster: distributed.LocalCluster) -> None:
    """Let a worker that replaces another one take more time to start.

    Dask would give it up 15 s after the other worker has gone. A busy machine may need longer to import everything.
    """
    cluster._update_worker_status = partial(distributed.deploy.Cluster._update_worker_status, cluster)


def _stop(cluster: distributed.LocalCluster, name: str, patience_s: float = _STOP_S) -> None:
    """Close a cluster that the pool owns. Workers that have not ended after `patience_s` seconds are killed.

    Dask waits without end for a worker that is not ready yet. A worker that replaces one that was killed while it
    started never gets ready for Dask, because Dask loses its message.
    """
    ended, told = threading.Event(), threading.Event()

    def kill() -> None:  # runs in the thread of Dask's loop, so the list of processes does not change meanwhile
        if ended.is_set():
            return
        pids = [nanny.pid for nanny in list(cluster._created) if nanny.pid is not None]
        if pids and not told.is_set():
            told.set()
            text = f"the {name} did not end within {patience_s:g} seconds and are killed"
            tell(logger, "lingering", text, seconds=patience_s, pids=pids)
        for nanny in list(cluster._created):
            if nanny.status == distributed.Status.running:  # otherwise it would start another worker
                nanny.close_gracefully()
        for pid in pids:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGKILL)
        cluster.loop.call_later(1.0, kill)  # Dask may learn only now of a process that was about to start

    late = threading.Timer(patience_s, lambda: cluster.loop.add_callback(kill))
    late.daemon = True
    late.start()
    try:
        cluster.close(timeout=2 * patience_s)
    except TimeoutError:  # the workers are dead, and Dask has not noticed
        cluster.shutdown_on_close = False  # else it would try once more at the end of this process
    finally:
        ended.set()
        late.cancel()
