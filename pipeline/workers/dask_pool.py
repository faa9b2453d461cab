"""Dask: a LocalCluster, workers on GPUs, or a scheduler that is there already.

A dead worker's tasks are not rerun by Dask but reported as lost: trying again, and giving up, is decided in
one place (`pipeline.mining.schedule`).
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import queue
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import dask
import dask.system
import distributed

from kernels.gpu.cuda import CUDA
from pipeline.process.children import on_their_own
from pipeline.process.logs import tell
from pipeline.run.version import __version__
from pipeline.slices import worker
from pipeline.workers.dask_cuda import guarded, start_cluster
from pipeline.workers.pool import Result, WorkerLostError
from schemas.errors import ResourceError
from schemas.platform import CORES, Platform

__all__ = ["DaskPool"]

logger = logging.getLogger(__name__)

#: How long a scheduler or the first worker may take, in seconds.
_START_S = 60.0
#: And a worker, to say its name.
_NAME_S = 10.0
#: And our workers, to end: Dask itself kills after 4 s one that is at work, and waits without end for some others.
_STOP_S = 5.0

_CONFIG = {
    "distributed.scheduler.allowed-failures": 0,  # a lost task is ours to try again
    "distributed.scheduler.work-stealing": False,  # one task per worker at a time: nothing to steal
    "distributed.comm.timeouts.connect": "30s",
    # Dask sets another variable of glibc, after which every array of 128 KiB is given back when it goes, and the next
    # one's pages come anew: proving takes half as long again, mining a tenth. 32 MiB is the most that glibc takes.
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 32 << 20,
    "logging.distributed": "critical",  # of the workers: what goes wrong there comes back as an error
}


class DaskPool:
    """Tasks on Dask workers. See `pipeline.workers.pool.Pool`; made by `local`, `on_gpus`, `start` or `connect`.

    Parameters
    ----------
    client : distributed.Client
        Belongs to the pool, which closes it.
    cluster : distributed.LocalCluster or None
        Of its own, which it closes, too; None if the workers are others'.
    name : str
        The workers in a few words.
    platform : Platform
        What their engines run on.
    """

    def __init__(
        self, client: distributed.Client, cluster: distributed.LocalCluster | None, name: str, platform: Platform
    ):
        self.client = client
        self.cluster = cluster
        self._name = name
        self._platform = platform
        self._done: queue.SimpleQueue[tuple[int, distributed.Future]] = queue.SimpleQueue()
        self._futures: dict[int, distributed.Future] = {}
        self._here: set[str] = set()  # addresses of the workers
        self._names: dict[str, str] = {}  # host and process at each address, of those that have gone, too
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="names")
        self._closing = threading.Event()

    @classmethod
    def local(cls, workers: int) -> DaskPool:
        """One-thread worker processes on this machine.

        Raises
        ------
        ResourceError
            If they do not start.
        """

        def start() -> distributed.LocalCluster:
            return distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=0,  # a worker's memory is bounded by construction
                dashboard_address="127.0.0.1:0",  # its pages are for this machine
                silence_logs=logging.CRITICAL,
            )

        return cls.start(start, f"{workers} local worker{'s' if workers != 1 else ''}", CORES)

    @classmethod
    def on_gpus(cls, devices: Sequence[str], rmm_pool: str | None = None, spill: bool = False) -> DaskPool:
        """A worker process on each of some GPUs of this machine; see `pipeline.workers.dask_cuda.start_cluster`."""
        name = f"{len(devices)} local GPU{'s' if len(devices) != 1 else ''}"
        return cls.start(lambda: start_cluster(devices, rmm_pool, spill), name, CUDA)

    @classmethod
    def start(cls, start: Callable[[], distributed.LocalCluster], name: str, platform: Platform) -> DaskPool:
        """The workers of a cluster of our own, which is gone again if anything, Ctrl-C too, comes between.

        Parameters
        ----------
        start : callable
            () -> cluster.
        name : str
            The workers in a few words.
        platform : Platform
            What their engines run on.

        Raises
        ------
        ResourceError
            If it does not start.
        """
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
            raise ResourceError(f"a cluster of {name} could not be started ({error}); try --workers 0") from error
        return cls(client, cluster, name, platform)

    @classmethod
    def connect(
        cls, address: str, platform: Platform = CORES, command: str = "dask worker", patience_s: float = _START_S
    ) -> DaskPool:
        """The workers of a running scheduler.

        Parameters
        ----------
        address : str
        platform : Platform
            What their engines run on.
        command : str
            What starts a worker that has such a device.
        patience_s : float
            How long the scheduler may take to answer, now and later.

        Raises
        ------
        ResourceError
            If it does not answer, has no workers, or they have another version of this package or no GPU although
            the engine needs one.
        """
        _check_certificate(address)
        try:
            client = distributed.Client(address, timeout=patience_s, set_as_default=False)
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:  # the last: it may not be called without TLS
            raise ResourceError(
                f"the Dask scheduler at {address} does not answer ({error}); check --scheduler"
            ) from error
        pool = cls(client, None, f"workers of {address}", platform)
        try:
            versions = client.run(worker.version)
        except Exception as error:  # whatever a worker of another environment raises
            pool.close()
            raise ResourceError(
                f"the workers of {address} cannot import this package ({error}); install it where they run"
            ) from error
        odd = {name: version for name, version in versions.items() if version != __version__}
        if odd or not versions:
            pool.close()
            name, version = next(iter(odd.items()), ("none", ""))
            raise ResourceError(
                f"worker {name} of {address} has version {version} of this package instead of {__version__}; "
                "install the same everywhere"
                if odd
                else f"the Dask scheduler at {address} has no workers; start some, then try again"
            )
        for name, reason in client.run(platform.why_absent).items():
            if reason is not None:
                pool.close()
                raise ResourceError(
                    f"worker {name} of {address} has no GPU for the engine: {reason}; start workers with "
                    f"{command} {address}, or choose --engine cpu"
                )
        return pool

    def reasons(self) -> dict[str, dict[str, str | None]]:
        """Of every worker, why each engine cannot run there, None when it can."""
        return dict(self.client.run(worker.reasons))

    def slots(self) -> int:
        """So many per engine as it has slices in hand, however many threads a worker was started with."""
        return self._platform.slices_in_hand * self.workers()

    def workers(self) -> int:
        """Worker processes where each has one engine; threads else, each of which has its own."""
        threads = self._threads()
        self._meet(threads)
        return len(threads) if self._platform.shares_engine else sum(threads.values())

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """One task pinned to each worker of now; one that joins later does without."""
        workers = self._threads()
        futures = [self.client.submit(function, argument, workers=[name], pure=False) for name in workers]
        for future in futures:  # what is wrong with a worker shows again when it works
            while not future.done() and not self._closing.wait(0.02):
                pass

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """Never pure: the same slice may have to run again."""
        key = f"bicliques-{function.__name__}-{tag}-{time.monotonic_ns()}"
        if self._platform.fatal_errors:
            function = partial(guarded, function, self._platform.fatal_errors)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")  # left-overs of some MB are usual
            future = self.client.submit(function, argument, key=key, pure=False)
        self._futures[tag] = future
        future.add_done_callback(lambda done: self._done.put((tag, done)))

    def wait(self, seconds: float) -> list[Result]:
        """All that has ended, the first within `seconds`."""
        results = []
        try:
            ended = self._done.get(timeout=seconds)
            while True:
                results.append(self._result(*ended))
                ended = self._done.get_nowait()
        except queue.Empty:
            return results

    def grow(self) -> None:
        """A cluster has the size it was given."""

    def longest_task_s(self) -> float | None:
        """Any time."""
        return None

    def describe(self) -> str:
        """For the run card."""
        return self._name

    def who(self, tag: int) -> str:
        """As the scheduler knows."""
        future = self._futures.get(tag)
        if future is not None:
            for address, keys in self._ask(self.client.processing).items():
                if future.key in keys:
                    return self._names.get(address, address)
        return ""

    def dashboard(self) -> str:
        """Dask's, if the scheduler has one."""
        return str(self._ask(lambda: self.client.dashboard_link) or "")

    def _meet(self, addresses: Iterable[str]) -> None:
        """Learn the names of new workers, and say which have gone: a dead worker cannot be asked any more."""
        before, self._here = self._here, set(addresses)
        for address in self._here - before:
            self._names[address] = address
            asked = self.client.submit(worker.identity, None, workers=[address], pure=False)
            # not as a callback: a worker that dies now never says it, and Dask has one thread for all callbacks
            with suppress(RuntimeError):  # the pool is being closed
                self._asking.submit(self._introduce, address, asked)
        for address in before - self._here:
            name = self._names[address]  # stays, because its tasks are heard of later
            level = logging.INFO if self.cluster is None else logging.WARNING  # others may let theirs come and go
            tell(logger, "gone", f"worker {name} has gone", level, worker=name, address=address)

    def _introduce(self, address: str, asked: distributed.Future) -> None:
        with suppress(Exception):  # of a worker that has gone again, or of a client that is closed
            name = asked.result(timeout=_NAME_S)
            self._names[address] = name
            if address in self._here:
                tell(logger, "came", f"worker {name} is there", worker=name, address=address)

    def close(self, patience_s: float = _STOP_S) -> None:
        """Abandon what is running; stop the workers, if they are ours, and kill those that take longer than this."""
        self._closing.set()
        self._asking.shutdown(wait=False, cancel_futures=True)
        if self.cluster is None:
            with suppress(Exception):  # a scheduler that is gone needs no farewell
                self.client.cancel(list(self._futures.values()))
                for address in self._threads():
                    self.client.submit(worker.forget, workers=[address], pure=False)
        self.client.close()
        if self.cluster is not None:
            _stop(self.cluster, self._name, patience_s)

    def _threads(self) -> dict[str, int]:
        return dict(self._ask(self.client.nthreads))

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except (OSError, TimeoutError, RuntimeError) as error:  # the last once the client has given up
            raise ResourceError(
                f"Dask does not answer any more ({error}), so the {self._name} are lost; start them again"
            ) from error

    def _result(self, tag: int, future: distributed.Future) -> Result:
        self._futures.pop(tag, None)
        try:
            return Result(tag, value=future.result())
        except distributed.KilledWorker as error:
            name = self._names.get(error.last_worker.address, error.last_worker.address)
            lost = WorkerLostError(f"its worker {name} died; the memory of the machine may be too small")
            lost.__cause__ = error
            return Result(tag, error=lost)
        except distributed.client.FutureCancelledError as error:
            return Result(tag, error=WorkerLostError(f"Dask gave it up ({error.reason})"))
        except Exception as error:
            return Result(tag, error=error)


def _be_patient(cluster: distributed.LocalCluster) -> None:
    """Let a worker that replaces another take its time.

    Dask would give it up 15 s after the other one has gone, and a busy machine may need longer to import everything.
    """
    cluster._update_worker_status = partial(distributed.deploy.Cluster._update_worker_status, cluster)


def _stop(cluster: distributed.LocalCluster, name: str, patience_s: float = _STOP_S) -> None:
    """Close a cluster of our own; workers that have not ended within so many seconds are killed.

    Dask waits without end for a worker that is not ready yet, as one that replaces another may never be: of one that
    is killed while it starts, Dask loses the message of the next that it is ready.
    """
    ended, told = threading.Event(), threading.Event()

    def kill() -> None:  # in the thread of Dask's loop, where the processes that it knows of do not change meanwhile
        if ended.is_set():
            return
        pids = [nanny.pid for nanny in list(cluster._created) if nanny.pid is not None]
        if pids and not told.is_set():
            told.set()
            text = f"the {name} did not end within {patience_s:g} seconds and are killed"
            tell(logger, "lingering", text, seconds=patience_s, pids=pids)
        for nanny in list(cluster._created):
            if nanny.status == distributed.Status.running:  # it does not know yet, and would start another worker
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


def _check_certificate(address: str) -> None:
    """Dask needs one for an address that begins with tls://, and without it raises a TypeError and never ends."""
    if not address.startswith("tls://"):
        return
    try:
        context = distributed.Security().get_connection_args("client")["ssl_context"]
    except (OSError, KeyError, ValueError) as error:
        raise ResourceError(
            f"the certificate for {address} cannot be read ({error}); check distributed.comm.tls, in Dask's settings"
        ) from error
    if context is None:
        raise ResourceError(
            f"{address} wants a certificate, and Dask's configuration names none; name one under distributed.comm.tls, "
            "in a file that the variable DASK_CONFIG names"
        )
