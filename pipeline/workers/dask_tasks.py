"""Clients of Dask, and their tasks: sent together, and fetched as they end.

A client is that of a running scheduler, of the user, or of a cluster with one worker per GPU (dask-cuda).

The thread that mines only puts tasks into a queue and takes results out of another. The thread of Dask's loop does the
rest. While the first is busy, tasks gather in the queue, and Dask gets all of them in one message. Results that end at
about the same time are asked for in one message, too.

Small results come as events, together with the news that the task has ended. Dask fetches a result only after that: the
client asks the scheduler, which asks the worker, and each answers. That took as much processor time as all the rest of
a task (docs/lab/scaling.md). An event takes one message, which goes with the news. The task is Dask's as before, and
the result stays at the worker until the client lets it go. So an event that does not arrive, because the scheduler was
started again or another run on the same client has ended, costs nothing but time: the result is fetched.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import queue
import time
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import dask
import distributed
from distributed.comm import get_address_host

from bicliques.kernels.gpu.cuda import CUDA
from bicliques.pipeline import __version__
from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.slices import worker
from bicliques.pipeline.slices.thread_team import on_threads
from bicliques.pipeline.workers.notice import OURS
from bicliques.pipeline.workers.options import Scheduler, address_of
from bicliques.pipeline.workers.serving import guarded
from bicliques.pipeline.workers.thread_pool import Result, WorkerLostError
from bicliques.schemas.errors import InputError, ResourceError, as_option
from bicliques.schemas.platform import Platform


class DaskTasks:
    """Tasks on the workers of a client.

    Parameters
    ----------
    fatal_errors : frozenset of str
        Names of the exceptions after which a process cannot go on; see `pipeline.workers.serving.guarded`.
    name_of : callable
        (address of a worker) -> its name in messages.
    """

    def __init__(self, client: distributed.Client, fatal_errors: frozenset[str], name_of: Callable[[str], str]):
        self._client, self._fatal, self._name_of = client, fatal_errors, name_of
        self._waiting: deque[tuple[int, Callable[[Any], Any], Any, str | None]] = deque()
        self._is_coming = False  # whether `_send` will be called
        self._futures: dict[int, distributed.Future] = {}
        self._ended: queue.SimpleQueue[tuple[int, Any, BaseException | None]] = queue.SimpleQueue()
        listen(client)

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any, where: str | None = None) -> None:
        """Have Dask run ``function(argument)``. `wait` returns the result with `tag`.

        If `where` is the address of a worker, that worker runs it, and all of its threads share a slice. If the worker
        is not there any more, another one runs it.
        """
        self._waiting.append((tag, function, argument, where))
        if not self._is_coming:
            self._is_coming = True
            self._client.loop.add_callback(self._send)

    def wait(self, seconds: float) -> list[Result]:
        """The results of tasks that have ended. Waits up to `seconds` for the first."""
        results = []
        try:
            ended = self._ended.get(timeout=seconds)
            while True:
                results.append(self._result(*ended))
                ended = self._ended.get_nowait()
        except queue.Empty:
            return results

    def key(self, tag: int) -> str | None:
        """Dask's key of a task. None if it has ended, or Dask does not have it yet."""
        future = self._futures.get(tag)
        return None if future is None else str(future.key)

    def cancel(self) -> None:
        """Abandon all tasks, those included that wait to be sent."""
        self._client.sync(self._cancel)

    async def _cancel(self) -> None:
        self._waiting.clear()  # in the thread of Dask's loop, so that none is just being sent
        await self._client.cancel(list(self._futures.values()))

    def _send(self) -> None:
        """Send the tasks that wait, in the thread of Dask's loop."""
        self._is_coming = False  # first, so that a task which comes from now on is not forgotten
        alike: dict[tuple[Callable[[Any], Any], str | None], list[tuple[int, Any]]] = defaultdict(list)
        with suppress(IndexError):
            while True:
                tag, function, argument, where = self._waiting.popleft()
                alike[function, where].append((tag, argument))
        for (function, where), tasks in alike.items():
            try:
                futures = self._mapped(function, tasks, where)
            except Exception as error:  # the client is closed, or an argument cannot be pickled
                for tag, _ in tasks:
                    self._ended.put((tag, None, error))
                continue
            for (tag, _), future in zip(tasks, futures, strict=True):
                self._futures[tag] = future
                expect(future.key)
                self._client.loop.add_callback(self._collect, tag, future)

    def _mapped(
        self, function: Callable[[Any], Any], tasks: list[tuple[int, Any]], where: str | None
    ) -> list[distributed.Future]:
        """Each task has a key of its own. Dask would not run the same task twice, and a slice may need it."""
        now = time.monotonic_ns()
        keys = [f"{OURS}{function.__name__}-{tag}-{now}" for tag, _ in tasks]
        if self._fatal:
            function = partial(guarded, function, self._fatal)
        there: dict[str, Any] = {}
        if where is not None:
            function = partial(_on_its_threads, function)
            there = {"workers": [where], "allow_other_workers": True}
        function = partial(push, function)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")  # left-overs of some MB are usual
            futures: list[distributed.Future] = self._client.map(
                function, [argument for _, argument in tasks], key=keys, pure=False, **there
            )
        return futures

    async def _collect(self, tag: int, future: distributed.Future) -> None:
        """Find out how a task ended, as soon as it has, in the thread of Dask's loop. What did not come is fetched."""
        value: Any = None
        error: BaseException | None = None
        try:
            await future.exception()  # which waits, and fetches nothing
            pushed = came(future.key)
            value = pushed[0] if pushed is not None and future.status == "finished" else await future
        except (Exception, asyncio.CancelledError) as raised:  # Dask's own errors of a task that it gave up, too
            error = raised
        finally:
            forget(future.key)
        self._ended.put((tag, value, error))

    def _result(self, tag: int, value: Any, error: BaseException | None) -> Result:
        self._futures.pop(tag, None)  # Dask may forget the task now
        if isinstance(error, distributed.KilledWorker):
            name = self._name_of(error.last_worker.address)
            lost = WorkerLostError(f"its worker {name} died; the memory of the machine may be too small")
            lost.__cause__ = error
            return Result(tag, error=lost)
        if isinstance(error, distributed.client.FutureCancelledError):
            return Result(tag, error=WorkerLostError(f"Dask gave it up ({error.reason})"))
        return Result(tag, value, error)


def _on_its_threads(function: Callable[[Any], Any], argument: Any) -> Any:
    """Return ``function(argument)``, in which slices are shared by as many threads as the Dask worker has."""
    return on_threads(distributed.get_worker().state.nthreads, function, argument)


logger = logging.getLogger(__name__)

#: So many workers of one thread each a driver serves without losing much (docs/multi-gpu.md).
MANY = 64


def could_share(addresses: Collection[str]) -> bool:
    """Whether there are too many workers of one thread, some of them on the same host. If so, say what is better."""
    hosts = {get_address_host(address) for address in addresses}
    if len(addresses) <= MANY or len(hosts) == len(addresses):
        return False
    text = (
        f"{len(addresses)} workers of one thread are on {len(hosts)} host{'s' if len(hosts) > 1 else ''}, and wait for "
        "the driver between slices; start one worker per host, whose threads share slices (dask worker --nworkers 1 "
        "--nthreads CORES)"
    )
    tell(logger, "apart", text, logging.WARNING, workers=len(addresses), hosts=len(hosts))
    return True


#: The events of all runs, so each driver gets those of the others, too. The scheduler keeps the last 1,000 events of a
#: topic, and a client cannot drop them, so a run must not have a topic of its own. The id of a client as the topic,
#: which the scheduler does clear, was tried and saved nothing (docs/lab/scaling.md).
_TOPIC = f"{OURS}results"
#: Results of at most so many bytes are sent, because Dask keeps what was sent lately, also after the run: the scheduler
#: the last 1,000 events and the last 1,000 batches of messages to each client, and a worker its last 1,000 batches.
MOST_BYTES = 16_000

#: Results that came, by the key of their task, and None for those that are expected. Clients of one process share it,
#: because a client has one handler for a topic.
_came: dict[str, bytes | None] = {}


def push(function: Callable[[Any], Any], argument: Any) -> Any:
    """Return ``function(argument)`` in a task, and send it to those who `listen` if it is small.

    If it is not, they are told that nothing comes, because Dask may have run the task before, on a worker that sent a
    result and died.
    """
    value = function(argument)
    packed = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    worker = distributed.get_worker()
    sent = packed if len(packed) <= MOST_BYTES else None
    worker.log_event(_TOPIC, {"key": worker.get_current_task(), "value": sent})
    return value


def listen(client: distributed.Client) -> None:
    """Have results of `push` come to this client."""
    client.subscribe_topic(_TOPIC, _take)


def unlisten(client: distributed.Client) -> None:
    """Have them come no more."""
    with suppress(Exception):  # nobody has listened, or the client is closed or has lost its scheduler
        client.unsubscribe_topic(_TOPIC)


def expect(key: str) -> None:
    """Keep the result of this task if it comes. It has to be forgotten later."""
    _came[key] = None


def came(key: str) -> tuple[Any] | None:
    """The result of a task, alone in a tuple. None if it did not come."""
    packed = _came.get(key)
    return None if packed is None else (pickle.loads(packed),)


def forget(key: str) -> None:
    """Drop the result of a task."""
    _came.pop(key, None)


def _take(event: tuple[float, dict[str, Any]]) -> None:
    message = event[1]
    if message["key"] in _came:  # others are of other clients
        _came[message["key"]] = message["value"]


def start_cluster(devices: Sequence[str], rmm_pool: str | None, spill: bool) -> Any:
    """Start a ``LocalCUDACluster`` with one process per device. A process has one thread per slice it may have in hand.

    Parameters
    ----------
    devices : sequence of str
        The devices, as ``CUDA_VISIBLE_DEVICES`` names them.
    rmm_pool : str or None
        Size of a pool of device memory that the search and cuDF share in each worker, such as ``"40GB"``, or
        ``"0.8"`` for a share of the device. None: each of them allocates for itself.
    spill : bool
        Whether cuDF may move its buffers to main memory when the device is full.
    """
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError as error:
        raise ResourceError(
            f"workers on GPUs need dask-cuda, but {error.name} is not installed (pip install 'bicliques[gpu]'); "
            f"{as_option('workers', 0)} uses one GPU without it"
        ) from error
    return LocalCUDACluster(
        CUDA_VISIBLE_DEVICES=list(devices),
        threads_per_worker=CUDA.slices_in_hand,
        memory_limit=0,  # no limit is needed, because a worker's memory is bounded by construction
        device_memory_limit=0,  # no limit is needed, because Dask itself keeps nothing on a device
        rmm_pool_size=_size(rmm_pool),
        rmm_allocator_external_lib_list=["cupy"] if rmm_pool else None,
        enable_cudf_spill=spill,
        protocol="tls" if dask.config.get("distributed.comm.require-encryption") else "tcp",
        dashboard_address="127.0.0.1:0",  # its pages can be seen only from this machine
        silence_logs=logging.CRITICAL,
    )


def _size(text: str | None) -> str | float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return text


def client_of(scheduler: Scheduler, patience_s: float) -> tuple[distributed.Client, bool]:
    """A client of a running scheduler, and whether it was made here.

    Raises `InputError` if the client or the cluster is closed or asynchronous, or if this is neither of them.

    Parameters
    ----------
    scheduler : str, distributed.Client or distributed.deploy.Cluster
        A client that is given is returned. It belongs to the user, who may have work of their own in it.
    patience_s : float
        Seconds that the scheduler may take to answer. A client that is given has its own patience.
    """
    if isinstance(scheduler, str):
        _check_certificate(scheduler)
    else:
        _check_object(scheduler)
    if isinstance(scheduler, distributed.Client):
        return scheduler, False
    try:
        # a cluster is not closed with the client, because it is not the client that has made it
        return distributed.Client(scheduler, timeout=patience_s, set_as_default=False), True
    except (OSError, TimeoutError, ValueError, RuntimeError) as error:  # RuntimeError: it wants TLS
        address = address_of(scheduler)
        raise ResourceError(
            f"the Dask scheduler at {address} does not answer ({error}); check {as_option('scheduler')}"
        ) from error


def answers(client: distributed.Client, question: Callable[[], Any]) -> dict[str, Any]:
    """What each worker answers, by its address. Workers that end before they answer are left out, and the log says so.

    Raises `OSError` if the scheduler does not answer. Raises `Exception`: what the question raised on a worker.
    """
    found = client.run(question, on_error="return")
    for name, error in found.items():
        if isinstance(error, OSError):  # as Dask tells of a lost connection
            text = f"worker {name} has gone, because it does not answer ({error}); the run goes on without it"
            tell(logger, "gone", text, logging.WARNING, worker=name, address=name)
        elif isinstance(error, Exception):
            raise error
    return {name: answer for name, answer in found.items() if not isinstance(answer, OSError)}


def check_environment(client: distributed.Client, address: str, platform: Platform, command: str) -> None:
    """Refuse workers that cannot run our tasks. One that ends meanwhile is no reason to refuse the others.

    Parameters
    ----------
    address : str
        Address of the scheduler, for errors.
    platform : Platform
        What the engines of the workers run on.
    command : str
        The command that starts a worker of this platform, for errors.
    """
    try:
        _check_workers(client, address, platform, command)
    except OSError as error:  # a client that is given may have lost its scheduler
        raise ResourceError(
            f"the Dask scheduler at {address} does not answer any more ({error}); start it again"
        ) from error


def _check_workers(client: distributed.Client, address: str, platform: Platform, command: str) -> None:
    try:
        versions = answers(client, worker.version)
    except OSError:
        raise
    except Exception as error:  # whatever a worker of another environment raises
        raise ResourceError(
            f"the workers of {address} cannot import this package ({error}); install it where they run"
        ) from error
    if not versions:
        raise ResourceError(f"the Dask scheduler at {address} has no workers; start some, then try again")
    for name, version in versions.items():
        if version != __version__:
            raise ResourceError(
                f"worker {name} of {address} has version {version} of this package instead of {__version__}; "
                "install the same everywhere"
            )
    for name, reason in answers(client, platform.why_absent).items():
        if reason is not None:
            raise ResourceError(
                f"worker {name} of {address} has no GPU for the engine: {reason}; start workers with {command} "
                f"{address}, or choose {as_option('engine', 'cpu')}"
            )


def _check_object(scheduler: distributed.Client | distributed.deploy.Cluster) -> None:
    if not isinstance(scheduler, (distributed.Client, distributed.deploy.Cluster)):
        raise InputError(
            f"the scheduler is a {type(scheduler).__name__}; give an address, as tls://10.0.0.1:8786, an open "
            "distributed.Client or a cluster of Dask"
        )
    what = "client" if isinstance(scheduler, distributed.Client) else "cluster"
    status = getattr(scheduler.status, "name", scheduler.status)  # that of a cluster is an enumeration
    if status in ("closing", "closed", "failed"):
        raise InputError(f"the {what} that is given as scheduler is {status}; make a new one")
    if scheduler.asynchronous:
        raise InputError(
            f"the {what} of {address_of(scheduler)} is asynchronous, and a run waits for its workers; make the {what} "
            "without asynchronous=True, or give the address"
        )


def _check_certificate(address: str) -> None:
    """Refuse an address with tls:// if there is no certificate. Dask would raise a TypeError and never end."""
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
