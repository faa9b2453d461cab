"""The time before the work, for imports, loading machine code, and starting workers; and what is not imported.

It belongs to no step of a run. `getting_ready` adds it up, and the run reports it separately. For the command line it
begins with the process and ends with `over`. Until then nothing has been written, so Ctrl-C and SIGTERM end the process
at once. An exception in the middle of an import could be raised anywhere, or be lost. The first process of a container
has to handle SIGTERM: the kernel does not end it at a signal that it leaves alone, so the container would be killed.
Until then the process of a command does not collect garbage either, because what is imported is none.

Commands, and the processes that they start, `leave_out` some libraries that nothing in them uses.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any

#: Exit codes after Ctrl-C and SIGTERM: 128 + the signal, as for every program that a signal has ended.
_INTERRUPTED, _TERMINATED = 130, 143
#: Fewer seconds are not logged.
_WORTH_A_LINE_S = 0.005


class _Clock:
    """Adds up the seconds of blocks that may be nested."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds = self._since = self._untold = self.taken = 0.0
        self._open = 0

    def begin(self, at: float | None = None) -> None:
        with self._lock:
            if self._open == 0:
                self._since = time.perf_counter() if at is None else at
            self._open += 1

    def since(self) -> float:
        with self._lock:
            return self._since if self._open else time.perf_counter()

    def end(self) -> None:
        with self._lock:
            self._open -= 1
            if self._open == 0:
                seconds = time.perf_counter() - self._since
                self._seconds += seconds
                self._untold += seconds

    def take(self) -> float:
        with self._lock:
            seconds, self._seconds = self._seconds, 0.0
            self.taken += seconds
            return seconds

    def give(self, seconds: float) -> None:
        with self._lock:
            self._seconds += seconds

    def untold(self) -> float:
        with self._lock:
            seconds, self._untold = self._untold, 0.0
            return seconds


class _Program:
    """A program that is starting."""

    def __init__(self) -> None:
        self.is_starting = self.is_alone = False
        self.farewell: Callable[[], None] = lambda: None
        self.before: Callable[[int, FrameType | None], object] | int | None = None


_clock, _program = _Clock(), _Program()


@contextmanager
def getting_ready() -> Iterator[None]:
    """Count the time of the block as start-up, not as part of a step."""
    _clock.begin()
    try:
        yield
    finally:
        _clock.end()


def take() -> float:
    """Take the seconds that this process has spent on start-up since they were last taken."""
    return _clock.take()


@contextmanager
def lent() -> Iterator[None]:
    """For the block, which makes runs that do not stay. What they take can be taken again after it."""
    before = _clock.taken
    try:
        yield
    finally:
        _clock.give(_clock.taken - before)


def began() -> float:
    """When the program that is starting was started, by `time.perf_counter`. Now if none is starting."""
    return _clock.since()


def log_it() -> None:
    """Log the seconds that were not logged yet, if there are enough of them."""
    import logging  # here, because this module is imported before Ctrl-C is handled

    from bicliques.pipeline.process.logs import tell

    seconds = _clock.untold()
    if seconds >= _WORTH_A_LINE_S:
        logger = logging.getLogger(__name__)
        tell(logger, "startup", f"getting ready took {seconds:.2f} s", seconds=round(seconds, 6))


@contextmanager
def program(began: float | None, farewell: Callable[[], None]) -> Iterator[None]:
    """A program that is starting, until `over` is called or the block ends.

    Parameters
    ----------
    began : float or None
        When it was started, by `time.perf_counter`, if this process was started for it. None takes the time now.
    farewell : callable
        It is called at Ctrl-C, before the process ends. `on_ctrl_c` replaces it.
    """
    _clock.begin(began)
    _program.is_starting, _program.is_alone, _program.farewell = True, began is not None, farewell
    if _program.is_alone:
        gc.disable()
    ends_at_sigterm = False
    if threading.current_thread() is threading.main_thread():
        _program.before = signal.signal(signal.SIGINT, _end)
        ends_at_sigterm = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ends_at_sigterm:
        signal.signal(signal.SIGTERM, end_at_sigterm)
    try:
        yield
    finally:
        over()
        if ends_at_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end_at_sigterm(number: int, frame: FrameType | None) -> None:
    """The handler of SIGTERM of a program, where `pipeline.process.interrupts.terminable` has not replaced it."""
    os._exit(_TERMINATED)


def on_ctrl_c(farewell: Callable[[], None]) -> None:
    """Replace the function that is called if Ctrl-C comes before `over`."""
    _program.farewell = farewell


def is_starting() -> bool:
    """Whether a program is starting, so that nothing has been written yet."""
    return _program.is_starting


def over() -> None:
    """End the start-up. The work begins and may have to be undone, so Ctrl-C is an exception again."""
    if _program.is_starting:
        _program.is_starting = False
        _clock.end()
        if _program.is_alone:
            gc.freeze()
            gc.enable()
        if _program.before is not None:
            signal.signal(signal.SIGINT, _program.before)
            _program.before = None


def process_start() -> float:
    """When this process was started, by `time.perf_counter`, in hundredths of a second. Now if that is not known."""
    now = time.perf_counter()
    try:
        with open("/proc/self/stat") as file:  # noqa: PTH123 - importing pathlib takes time
            ticks = int(file.read().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return now
    return now - age if age >= 0 else now


def age() -> float:
    """Seconds since this process was started."""
    return time.perf_counter() - process_start()


def _end(number: int, frame: FrameType | None) -> None:
    try:
        _program.farewell()
    finally:
        os._exit(_INTERRUPTED)


#: What Arrow, and Numba if it has to compile, import wherever it is installed, for half a second. No command needs it.
_LEFT_OUT = frozenset({"cffi", "pandas", "scipy"})


class _Refusal:
    """A finder, as in `importlib.abc.MetaPathFinder`, that refuses these libraries."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name in _LEFT_OUT:
            raise ModuleNotFoundError(f"the command line leaves {name} out", name=name)


class _Metadata(ModuleType):
    """It stands for `importlib.metadata`, and imports that when something of it is asked for.

    CuPy asks for 22 names of itself when it is imported, to warn of two that are installed, and for cuTENSOR, which no
    command needs. That takes up to half of its import, because every folder of packages is looked through.
    """

    PackageNotFoundError = ModuleNotFoundError  # the class of which it is made

    def distribution(self, name: str) -> Any:
        """As `importlib.metadata.distribution`, except for CuPy and cuTENSOR."""
        if "cupy" in name or "cutensor" in name:
            raise self.PackageNotFoundError(name)
        return self._real().distribution(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)

    def _real(self) -> Any:
        if self.__dict__.get("_found") is None:
            del sys.modules[self.__name__]
            self._found = import_module(self.__name__)
            self.stand_in()
        return self._found

    def stand_in(self) -> None:
        """Be found by all that import the module."""
        sys.modules[self.__name__] = self
        importlib.metadata = self


def leave_out() -> None:
    """Hide libraries in this process, which was started for one command or by one.

    Arrow asks for pandas at its first conversion, once and for all, and takes an exception for an answer. The others
    look into `sys.modules`. The library of linear algebra that comes with NumPy starts a thread per core, and each of
    them spins for a tenth of a second; one is enough, because no command multiplies matrices.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _Metadata("importlib.metadata").stand_in()
    import numpy as np
    import pyarrow as pa

    refusal = _Refusal()
    sys.meta_path.insert(0, refusal)
    pa.array(np.zeros(1)).to_numpy()
    sys.meta_path.remove(refusal)
    for name in _LEFT_OUT:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
