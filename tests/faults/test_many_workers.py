"""Many workers of one Dask scheduler, which join and are ended at random while a run goes on."""

import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from bicliques.pipeline.dealing.schedule import Policy
from bicliques.pipeline.mining import driver
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.options import RunLimits
from bicliques.schemas.search import Search
from tests.support.dask_commands import ManyWorkers, connected, dask_scheduler
from tests.support.held import short_slice
from tests.support.pools import FakePool
from tests.support.runs import answer, load_ledger, prepared_run, quiet, random_edges

#: Two seconds of the reference engine on one core. These are 4,980 bicliques, so at least 332 short slices.
EDGES = random_edges(90, 80, 0.18, 11)
#: Whatever happens to workers, so many are left.
_FEWEST = 4


@contextmanager
def many_workers(threads: int) -> Iterator[ManyWorkers]:
    with dask_scheduler() as address:
        workers = ManyWorkers(address, threads)
        yield workers
        workers.close()


class Fate:
    """Ends and starts workers: one of them after every few entries of the ledger. A seed decides which, and how."""

    def __init__(self, folder: RunFolder, workers: ManyWorkers, entries_each: int, seed: int) -> None:
        self._ledger, self._workers, self._entries_each = folder.ledger, workers, entries_each
        self._random = random.Random(seed)
        self.done: Counter[str] = Counter()

    def __call__(self, progress: object) -> None:
        """Look at the ledger, and act."""
        while self.done.total() < len(list(self._ledger.glob("*.json"))) // self._entries_each:
            what = self._random.choice(["killed", "told", "joined", "joined"])
            if what != "joined" and len(self._workers.pids) <= _FEWEST:
                what = "joined"
            self.done[what] += 1
            if what == "joined":
                self._workers.start()
            else:
                number = signal.SIGKILL if what == "killed" else signal.SIGTERM
                self._workers.end(self._random.choice(sorted(self._workers.pids)), number)


@pytest.mark.exhaustive  # two workers, of which one ends: tests/faults/test_shared_slices.py
@pytest.mark.parametrize(("n", "threads", "entries_each"), [(6, 2, 10), (64, 1, 5)])
def test_workers_join_and_end_at_random(tmp_path, monkeypatch, n, threads, entries_each):
    monkeypatch.setattr(driver, "mine_slice", short_slice)
    # it may be bad luck again and again, which would be too much for a run that nobody plays with
    monkeypatch.setattr(driver, "Policy", partial(Policy, attempts=1000))
    folder = prepared_run(tmp_path, EDGES, Search(mode="list"), "reference")
    with many_workers(threads) as workers:
        workers.start(n)
        pool = connected(workers.address, n)
        fate = Fate(folder, workers, entries_each, seed=n)
        session = driver.mine_run(Run(folder), pool, RunLimits(), fate)
        pool.close()
    assert session.outcome == "complete"
    assert min(fate.done[what] for what in ("killed", "told", "joined")) >= 2, fate.done
    manifest = proving.prove(Run(folder), FakePool(), quiet)
    assert (manifest.count, manifest.fingerprint) == answer(EDGES)
    ledger = load_ledger(folder.path)
    assert ledger.outstanding() == {}
    assert list(ledger.orphans()) == []
    assert len({entry.result.worker for entry in ledger.entries.values()}) > n / 2
    assert {entry.result.stats.threads for entry in ledger.entries.values()} == {threads}
