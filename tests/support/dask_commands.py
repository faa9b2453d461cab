"""Dask schedulers and workers as people start them: by Dask's commands, each in a process of its own."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import distributed

from bicliques.pipeline.workers import dask_pool
from bicliques.pipeline.workers.dask_pool import DaskPool
from tests.support.runs import ROOT, environment

_DASK = "import sys; from dask.__main__ import main; sys.exit(main())"
#: As docs/multi-gpu.md says. A worker that Dask no longer needs does not stay, whatever becomes of the test.
_WORKER = ("--nthreads", "1", "--memory-limit", "0", "--no-dashboard", "--death-timeout", "120")
#: A scheduler leaves lost tasks to the run. The rest makes idle processes cheap: otherwise 64 of them need more than a
#: core to look at themselves, and a worker would import pandas for a quarter of the time that it takes to start.
_SETTINGS = {
    "DASK_LOGGING__DISTRIBUTED": "info",  # the address is read from the log, and flows of this process make Dask silent
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
    "DASK_DISTRIBUTED__WORKER__PRELOAD": f"[{dask_pool._PRELOAD!r}]",
}


def _start(*words: str, program: str = _DASK, **pipes: Any) -> subprocess.Popen[str]:
    nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    command = [sys.executable, "-c", program, *words]
    return subprocess.Popen(command, env=environment() | _SETTINGS, cwd=ROOT, text=True, **(nothing | pipes))


@contextmanager
def dask_scheduler() -> Iterator[str]:
    """``dask scheduler``. Gives its address."""
    here = ("--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
    with _start("scheduler", *here, "--idle-timeout", "600", stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        address = next(line.split()[-1] for line in process.stderr if "Scheduler at:" in line)
        rest = threading.Thread(target=process.stderr.read)
        rest.start()
        try:
            yield address
        finally:
            process.kill()
            rest.join()


def connected(address: str, workers: int) -> DaskPool:
    """A pool of a scheduler that has so many workers. This waits until they are there."""
    with distributed.Client(address, set_as_default=False) as client:
        client.wait_for_workers(workers)
    return DaskPool.connect(address)


def start_worker(address: str, *words: str) -> subprocess.Popen[str]:
    """``dask worker`` with one thread, unless `words` say something else."""
    return _start("worker", address, *_WORKER, *words)


#: A process that imports everything once and then is many workers: each is a copy of it that calls Dask's command.
_COPIES = """
import os, signal, sys
import distributed.cli.dask_worker, bicliques.kernels.reference.engine, bicliques.pipeline.slices.worker
from dask.__main__ import main
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(0)
        sys.argv = ["dask", *line.split()]
        sys.exit(main())
    print(pid, flush=True)
"""


class ManyWorkers:
    """``dask worker --no-nanny`` with so many threads, as often as one likes.

    A process of Python that imports all that a worker of the reference engine needs takes two seconds. So one process
    does that, and each worker is a copy of it. Everything after the imports is as in a worker that was started alone.
    """

    def __init__(self, address: str, threads: int = 1) -> None:
        self.address, self._threads = address, threads
        self._first = _start(program=_COPIES, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pids: set[int] = set()

    def start(self, n: int = 1) -> None:
        """Start so many more workers."""
        assert self._first.stdin is not None
        assert self._first.stdout is not None
        line = " ".join(["worker", self.address, "--no-nanny", *_WORKER, "--nthreads", str(self._threads)]) + "\n"
        self._first.stdin.write(n * line)
        self._first.stdin.flush()
        self.pids.update(int(self._first.stdout.readline()) for _ in range(n))

    def end(self, pid: int, number: signal.Signals) -> None:
        """Send a worker a signal that ends it."""
        self.pids.discard(pid)
        os.kill(pid, number)

    def close(self) -> None:
        """Kill all that are left."""
        for pid in list(self.pids):
            self.end(pid, signal.SIGKILL)
        with self._first:
            self._first.kill()
