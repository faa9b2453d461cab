"""The workers that a user asks for. They are not part of a run's identity: a run may be resumed with others."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, get_args

from bicliques.pipeline.workers.devices import Devices, device_numbers, limited, pool_bytes
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.option import Call, option
from bicliques.schemas.options import Where
from bicliques.schemas.values import seconds

#: A running Dask scheduler: its address, or a client or a cluster that is connected to it.
if TYPE_CHECKING:
    import distributed

    Scheduler: TypeAlias = str | distributed.Client | distributed.deploy.Cluster
else:  # Dask is imported only where it is used
    Scheduler = str | object

#: The calls that start workers, and the one that only asks how many there would be.
_STARTS: tuple[Call, ...] = ("mine", "largest", "count", "cliques", "diff", "refresh", "resume", "demo", "flow")
_ASKS: tuple[Call, ...] = (*_STARTS, "dry_run")


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """How many workers there are, and where. They are not part of a run's identity.

    A `scheduler` has its own workers, in place of `workers`. They must see the run's folder under the same path.
    """

    workers: int | None = option(
        None,
        help="worker processes on this machine; 0 is this process with one thread",
        group="workers",
        on=_ASKS,
        metavar="N",
        otherwise="a thread per core in this process; with a GPU engine, every GPU",
        least=0,
    )
    scheduler: Scheduler | None = option(
        None,
        help="address of a running Dask scheduler, as tls://10.0.0.1:8786; from Python also a Client or a cluster",
        group="workers",
        on=_ASKS,
        metavar="ADDRESS",
        otherwise="none",
    )
    slice_seconds: float = option(
        10.0,
        help="most seconds that a worker works before it hands its results over",
        group="workers",
        on=_STARTS,
        metavar="SECONDS",
    )
    devices: Devices | None = option(
        None,
        help="with a GPU engine: one worker on each of these GPUs, as 0,1",
        group="workers",
        on=_ASKS,
        metavar="LIST",
        otherwise="all",
    )
    device_memory: str | None = option(
        None,
        help="most bytes of each GPU for reading, building and mining, as 16GB; larger graphs go in pieces",
        group="workers",
        on=_ASKS,
        metavar="SIZE",
        otherwise="what is free",
    )
    rmm_pool: str | None = option(
        None,
        help="with a GPU engine: size of each worker's pool of device memory, as 40GB or 0.8",
        group="workers",
        on=_STARTS,
        metavar="SIZE",
        otherwise="none",
    )
    spill: bool = option(
        False,
        help="with a GPU engine: cuDF may move buffers to main memory",
        group="workers",
        on=_STARTS,
        otherwise="no; it fails when a device is full",
    )
    write_on: Where = option(
        "auto",
        help="with a GPU engine: where the results are encoded, and read back",
        group="workers",
        on=("mine", "resume", "flow"),
        otherwise="auto, the GPU if cuDF is there",
    )

    def __post_init__(self) -> None:
        if self.devices is not None:
            device_numbers(self.devices)  # raises if they are something else
        if self.device_memory is not None:
            pool_bytes(self.device_memory)  # raises if it is something else
            if self.rmm_pool is not None:
                raise InputError(
                    f"a pool has a size of its own; leave {as_option('device_memory')} or {as_option('rmm_pool')} out"
                )
        if self.workers is not None and type(self.workers) is not int:
            raise InputError(f"{as_option('workers')} must be a whole number (int), not {self.workers!r}")
        if self.workers is not None and self.workers < 0:
            raise InputError(f"{as_option('workers')} must be 0 or more, not {self.workers}")
        if self.workers is not None and self.scheduler is not None:
            raise InputError(f"give either {as_option('workers')} or {as_option('scheduler')}, not both")
        if self.on_gpus and self.scheduler is not None:
            raise InputError(
                "GPUs, pools and spilling are options of the workers of a scheduler; start those with them"
            )
        if self.write_on not in get_args(Where):
            raise InputError(f"{as_option('write_on')} must be auto, cpu or gpu, not {self.write_on!r}")
        object.__setattr__(self, "slice_seconds", seconds(self.slice_seconds, as_option("slice_seconds")))

    @property
    def on_gpus(self) -> bool:
        """Whether an option is set that only workers on GPUs have."""
        return self.devices is not None or self.rmm_pool is not None or self.spill

    def limited(self) -> AbstractContextManager[None]:
        """Within it, this process and those that it starts take no more of a device; see `device_limit.limited`."""
        return limited(self.device_memory)


def address_of(scheduler: Scheduler) -> str:
    """The address of a scheduler, also of one that is given as a client or as a cluster."""
    if isinstance(scheduler, str):
        return scheduler
    connected = getattr(scheduler, "scheduler", None)  # of a client that is closed: None
    return str(getattr(scheduler, "scheduler_address", None) or getattr(connected, "address", "an unknown address"))
