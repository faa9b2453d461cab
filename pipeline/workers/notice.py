"""Lets Dask workers that are told to end do so in order: SIGTERM ends their slices early, and no slice is lost.

Machines that are lent for less money, Kubernetes and batch systems send SIGTERM some time before they end a process for
good: two minutes, half a minute. By itself Dask would drop what its workers do, and the work of their slices with it.
So the driver brings two plugins to a scheduler that it connects to. A second SIGTERM does what it did without them.

A worker that is told to end

1. ends its slices at their next safe point. What they have not done is their left-over, which other workers take;
2. tells the scheduler to give it no more tasks. Those that are on their way to it end at once, with nothing done;
3. waits until their results have been fetched, and closes.

A nanny, which is the process that ``dask worker`` starts first, hands the signal on to its workers.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from time import time
from types import FrameType
from typing import Any

import distributed
from distributed.diagnostics.plugin import NannyPlugin

from bicliques.pipeline.slices import ending

#: How the keys of our tasks begin. A worker waits for no others.
OURS = "bicliques-"
#: Seconds between two looks at tasks that are to end.
_LOOK_S = 0.02
#: Seconds without a task of ours after which a worker closes. Some may be on their way to it when it has none.
_QUIET_S = 1.0
#: States of a task that is still to end, or whose result is still to be fetched.
_OPEN = frozenset({"ready", "executing", "long-running", "memory", "error"})


def bring_notice(client: distributed.Client) -> None:
    """Have all workers of a scheduler end in order at SIGTERM, those included that join later."""
    for plugin in (_OfNannies(), _OfWorkers()):
        # of a worker that has just ended; the others have got it, and if Dask is gone, it is asked next
        with suppress(OSError):
            client.register_plugin(plugin)


class _OfWorkers(distributed.WorkerPlugin):  # type: ignore[misc]
    """SIGTERM ends a worker after its slices."""

    name = f"{OURS}notice"
    idempotent = True

    def setup(self, worker: distributed.Worker) -> None:
        """Act on SIGTERM from now on, if this process is there for the worker alone."""
        leaving: list[asyncio.Task[None]] = []

        def leave() -> None:
            leaving.append(asyncio.get_running_loop().create_task(_leave(worker)))

        if worker.nanny:  # which ends it by other means, and hands the signal on even if all processes have got it
            _on_first_sigterm(leave, signal.SIG_IGN)
        elif _is_dasks(before := signal.getsignal(signal.SIGTERM)):
            _on_first_sigterm(leave, before)


class _OfNannies(NannyPlugin):  # type: ignore[misc]
    """SIGTERM goes on to the workers of a nanny."""

    name = f"{OURS}notice-of-nannies"
    idempotent = True

    def setup(self, nanny: distributed.Nanny) -> None:
        """Act on SIGTERM from now on, if this process is there for its nannies alone."""
        _nannies.append(nanny)
        if _is_dasks(before := signal.getsignal(signal.SIGTERM)):
            _on_first_sigterm(_hand_on, before)


#: All nannies of this process.
_nannies: list[distributed.Nanny] = []


def _hand_on() -> None:
    for nanny in _nannies:
        if nanny.pid is not None:
            nanny.close_gracefully(reason="it was told to end")  # so it starts no other worker
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(nanny.pid, signal.SIGTERM)


def _is_dasks(handler: Any) -> bool:
    """Whether one of Dask's commands handles the signal. The process is a program of its own then."""
    return str(getattr(handler, "__module__", "")).startswith("distributed.")


def _on_first_sigterm(act: Callable[[], object], then: Any) -> None:
    """Have the running loop act at the first SIGTERM, and handle the next one as `then` says.

    Only the main thread of a process can have that. A worker in another thread belongs to a larger program.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, then)
        loop.call_soon_threadsafe(act)

    signal.signal(signal.SIGTERM, handle)


async def _leave(worker: distributed.Worker) -> None:
    ending.leave()
    # only the scheduler is told: a worker that paused would never begin the tasks that it has, and these would be lost
    told = {"op": "worker-status-change", "status": "closing_gracefully", "stimulus_id": f"{OURS}notice-{time()}"}
    worker.batched_send(told)
    quiet_s = 0.0
    while quiet_s < _QUIET_S:
        await asyncio.sleep(_LOOK_S)
        is_busy = any(task.state in _OPEN for key, task in worker.state.tasks.items() if str(key).startswith(OURS))
        quiet_s = 0.0 if is_busy else quiet_s + _LOOK_S
    await worker.close(nanny=False, reason="it was told to end")
