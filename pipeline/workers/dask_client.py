"""Clients of Dask: of a running scheduler, of the user, or of a cluster with one worker per GPU (dask-cuda)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import dask
import distributed

from bicliques.kernels.gpu.cuda import CUDA
from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.run.version import __version__
from bicliques.pipeline.slices import worker
from bicliques.pipeline.workers.options import Scheduler, address_of
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.platform import Platform


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

    Raises
    ------
    ResourceError
        If dask-cuda is not installed.
    """
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError as error:
        raise ResourceError(
            f"workers on GPUs need dask-cuda, but {error.name} is not installed (pip install 'bicliques[gpu]'); "
            "--workers 0 uses one GPU without it"
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


logger = logging.getLogger(__name__)


def client_of(scheduler: Scheduler, patience_s: float) -> tuple[distributed.Client, bool]:
    """A client of a running scheduler, and whether it was made here.

    Parameters
    ----------
    scheduler : str, distributed.Client or distributed.deploy.Cluster
        A client that is given is returned. It belongs to the user, who may have work of their own in it.
    patience_s : float
        Seconds that the scheduler may take to answer. A client that is given has its own patience.

    Raises
    ------
    InputError
        If the client or the cluster is closed or asynchronous, or if this is neither of them.
    ResourceError
        If the scheduler does not answer, or its certificate cannot be used.
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
        raise ResourceError(f"the Dask scheduler at {address} does not answer ({error}); check --scheduler") from error


def answers(client: distributed.Client, question: Callable[[], Any]) -> dict[str, Any]:
    """What each worker answers, by its address. Workers that end before they answer are left out, and the log says so.

    Raises
    ------
    OSError
        If the scheduler does not answer.
    Exception
        What the question raised on a worker.
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

    Raises
    ------
    ResourceError
        If the scheduler does not answer, if there are no workers, or if they have another version of this package, or
        no GPU although the engine needs one.
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
                f"worker {name} of {address} has no GPU for the engine: {reason}; start workers with "
                f"{command} {address}, or choose --engine cpu"
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
