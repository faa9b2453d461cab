"""Energy of a GPU, from NVML's counter, and of the processors, from RAPL; or the reason why it cannot be read.

Both count all energy that the device or the package used, also that of other programs. The peak comes from NVML's
power reading, which is an average over the last second on recent devices. See docs/power.md for the protocol. The
manifest of a run has that of GPUs, measured per slice, and that of the driver's processors, per session.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bicliques.kernels.gpu.nvml import Nvml
from bicliques.pipeline.run.accounts import Account, by_worker
from bicliques.schemas.facts import MiningSession
from bicliques.schemas.manifest import LedgerEntry
from bicliques.schemas.platform import Platform

_POWERCAP = Path("/sys/class/powercap")
#: Seconds between two readings of the power. NVML has a new value as often.
_INTERVAL_S = 0.05


class Counter(Protocol):
    """A counter of energy since some moment."""

    name: str

    def joules(self) -> float:
        """Energy so far."""
        ...

    def watts(self) -> float | None:
        """Power now. None if only energy is counted."""
        ...


@dataclass(frozen=True)
class Usage:
    """Energy used in a stretch of time.

    Parameters
    ----------
    peak_watts : float
        The largest power reading, or the mean if that is larger.
    """

    joules: float
    seconds: float
    peak_watts: float

    @property
    def mean_watts(self) -> float:
        """Energy divided by time."""
        return self.joules / self.seconds if self.seconds > 0 else 0.0


class NvmlCounter:
    """The counter of one GPU, by its PCI bus address. Use `gpu_counter`, which says why there is none."""

    def __init__(self, nvml: Nvml, bus: str):
        self._nvml = nvml
        self._device = nvml.device(bus)
        self.name = nvml.uuid(self._device)

    def joules(self) -> float:
        """Energy since the driver was loaded, in whole millijoules. It is updated some ten times per second or more."""
        return self._nvml.millijoules(self._device) / 1e3

    def watts(self) -> float | None:
        """The driver's reading of the power."""
        return self._nvml.milliwatts(self._device) / 1e3


class RaplCounter:
    """The counter of all processor packages of this machine. Use `processor_counter`, which says why there is none.

    Parameters
    ----------
    domains : list of Path
        Folders with ``energy_uj``. It wraps after ``max_energy_range_uj``, so read it at least once per minute.
    """

    name = "processor packages"

    def __init__(self, domains: list[Path]):
        self._domains = domains
        self._ranges = [int((domain / "max_energy_range_uj").read_text()) for domain in domains]
        self._last = self._read()
        self._total = 0

    def joules(self) -> float:
        """Energy since this object was made."""
        now = self._read()
        for last, value, wrap in zip(self._last, now, self._ranges, strict=True):
            self._total += value - last if value >= last else value + wrap - last
        self._last = now
        return self._total / 1e6

    def watts(self) -> float | None:
        """None, because RAPL counts energy only."""
        return None

    def _read(self) -> list[int]:
        return [int((domain / "energy_uj").read_text()) for domain in self._domains]


def gpu_counter() -> NvmlCounter | str:
    """The counter of the current CUDA device of this process, or a clause that says why there is none."""
    try:
        import cupy
    except ImportError as error:
        return f"{error.name} is not installed"
    try:
        counter = NvmlCounter(Nvml(), cupy.cuda.Device().pci_bus_id)
        counter.joules()
    except Exception as error:  # NVML and CuPy have many classes of errors
        return f"NVML gives no energy counter ({error})"
    return counter


#: By the name that a `schemas.platform.Platform` gives it: () -> the counter of the current device of this process, or
#: one clause saying why there is none.
COUNTERS: dict[str, Callable[[], Counter | str]] = {"NVML": gpu_counter}


def processor_counter(powercap: Path = _POWERCAP) -> RaplCounter | str:
    """The counter of this machine's processors, or a clause that says why there is none."""
    domains = []
    for domain in sorted(powercap.glob("*-rapl:*")):
        name = domain / "name"
        if name.exists() and name.read_text().startswith("package"):
            domains.append(domain)
    if not domains:
        return f"{powercap} has no RAPL domain of a processor package"
    try:
        return RaplCounter(domains)
    except OSError as error:
        return f"RAPL may not be read ({error.strerror}: {error.filename})"


class PowerMeter:
    """Energy and peak power of stretches of time, from one counter.

    Parameters
    ----------
    interval_s : float
        Seconds between two readings of the power while a stretch lasts.
    """

    def __init__(self, counter: Counter, interval_s: float = _INTERVAL_S):
        self.counter = counter
        self._interval_s = interval_s

    @contextmanager
    def stretch(self) -> Iterator[Future[Usage]]:
        """Measure the block, also if it ends with an error. The result is there some milliseconds after the block.

        A reading of the counter takes milliseconds. A separate thread does it, so that the block does not wait.
        """
        over, measured = threading.Event(), Future[Usage]()
        threading.Thread(target=self._measure, args=(over, measured), daemon=True).start()
        try:
            yield measured
        finally:
            over.set()

    def _measure(self, over: threading.Event, measured: Future[Usage]) -> None:
        try:
            measured.set_result(self._usage_until(over))
        except BaseException as error:
            measured.set_exception(error)

    def _usage_until(self, over: threading.Event) -> Usage:
        began, energy, peak = time.perf_counter(), self.counter.joules(), 0.0
        joules, then = energy, began
        while not over.wait(self._interval_s):
            watts = self.counter.watts()
            if watts is None:  # energy divided by time, over at least a second, as NVML does
                now = time.perf_counter()
                if now - then < 1.0:
                    continue
                last, joules = joules, self.counter.joules()
                watts, then = (joules - last) / (now - then), now
            peak = max(peak, watts)
        used, seconds = self.counter.joules() - energy, time.perf_counter() - began
        return Usage(used, seconds, max(peak, used / seconds))


#: Key of the reason, in `MiningSession.processors` and in the manifest, where nothing could be measured.
NOT_READABLE = "not_readable"


class ProcessorEnergy:
    """Counts the energy of the processors of this machine since it was made. Other processes' use is included."""

    def __init__(self) -> None:
        self._counter: RaplCounter | str = processor_counter()

    def facts(self) -> dict[str, Any]:
        """``joules`` so far, or the reason why they cannot be read.

        The caller has to ask at least once per minute, because the counters start again from 0 after some time.
        """
        if isinstance(self._counter, str):
            return {NOT_READABLE: self._counter}
        return {"joules": self._counter.joules()}


def energy_facts(
    entries: Iterable[LedgerEntry], sessions: Sequence[MiningSession], platform: Platform
) -> dict[str, Any]:
    """Joules, watts and bicliques per joule of a run.

    Parameters
    ----------
    entries : iterable of LedgerEntry
        All entries of the run.
    sessions : sequence of dict
        Every session.
    platform : Platform
        What the engine ran on.

    Returns
    -------
    dict
        ``processors``: energy of the processors of the driver's machine. Other programs on that machine are included.
        Sessions that were killed are not.
        ``gpus``, or the word for other devices: the energy that they took while slices were searched, for all workers
        together and for each. Idle time between and after slices is not included. The entry is missing if the platform
        has no counter of energy.
    """
    facts: dict[str, Any] = {"processors": _processors(sessions)}
    if (counter := platform.energy_counter) is not None:
        facts[platform.devices] = _devices([e for e in entries if e.result.stats.joules is not None], counter)
    return facts


def _processors(sessions: Sequence[MiningSession]) -> dict[str, Any]:
    reasons = {session.processors[NOT_READABLE] for session in sessions if NOT_READABLE in session.processors}
    if reasons:
        return {NOT_READABLE: "; ".join(sorted(reasons))}
    joules = sum(session.processors["joules"] for session in sessions)
    seconds = sum(session.seconds for session in sessions)
    return {"joules": joules, "seconds": seconds, "mean_watts": joules / max(seconds, 1e-9)}


def _devices(measured: list[LedgerEntry], counter: str) -> dict[str, Any]:
    if not measured:
        return {NOT_READABLE: f"no worker could read {counter}'s energy counter; the log of the workers says why"}
    if not any(entry.result.stats.joules for entry in measured):
        text = f"the slices were over before {counter}'s counter moved, which it does some ten times a second"
        return {NOT_READABLE: text}
    workers = {worker: _facts_of(account) for worker, account in by_worker(measured).items()}
    return _facts_of(Account.of(measured)) | {"workers": workers}


def _facts_of(account: Account) -> dict[str, Any]:
    return {
        "slices": account.slices,
        "joules": account.joules,
        "seconds": account.busy_seconds,
        "mean_watts": account.joules / max(account.busy_seconds, 1e-9),
        "peak_watts": account.peak_watts,
        "bicliques_per_joule": account.bicliques / max(account.joules, 1e-9),
    }
