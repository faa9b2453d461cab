"""The energy in the manifest of a run: of GPUs, measured per slice, and of the driver's processors, per session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bicliques.pipeline.run.accounts import Account, by_worker
from bicliques.pipeline.slices.power import RaplCounter, processor_counter
from bicliques.schemas.facts import Session
from bicliques.schemas.manifest import LedgerEntry
from bicliques.schemas.platform import Platform

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


def energy_facts(entries: Iterable[LedgerEntry], sessions: Sequence[Session], platform: Platform) -> dict[str, Any]:
    """Joules, watts and bicliques per joule of a run.

    Parameters
    ----------
    entries : iterable of LedgerEntry
        All entries of the run.
    sessions : sequence of dict
        The `pipeline.run.session.MiningSession` of each session, as a dictionary.
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


def _processors(sessions: Sequence[Session]) -> dict[str, Any]:
    reasons = {session["processors"][NOT_READABLE] for session in sessions if NOT_READABLE in session["processors"]}
    if reasons:
        return {NOT_READABLE: "; ".join(sorted(reasons))}
    joules = sum(session["processors"]["joules"] for session in sessions)
    seconds = sum(session["seconds"] for session in sessions)
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
