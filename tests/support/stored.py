"""Runs that are kept in a bucket of a server of this machine, and machines that know nothing of them yet."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.kernels.compiled.jit import code_folder
from bicliques.pipeline.remote import objects
from bicliques.pipeline.run import bucket_ledger
from bicliques.pipeline.run.bucket_ledger import Journal
from bicliques.pipeline.slices.worker import forget
from tests.support.bucket import Asked, Bucket, bucket_of_moto, impatient_file_system
from tests.support.runs import answer, random_edges, write_edges

EDGES = random_edges(24, 16, 0.4, 3)
PREFIX = "nights/ü 1"


@dataclass
class Machines:
    """A bucket, and the cache folder of the machine on which the test is just now."""

    bucket: Bucket
    top: Path
    patch: pytest.MonkeyPatch
    number: int = 0

    @property
    def url(self) -> str:
        return self.bucket.url(PREFIX)

    @property
    def variables(self) -> dict[str, str]:
        """What makes another process one of the machine."""
        return {"XDG_CACHE_HOME": str(self.top / f"machine{self.number}"), "NUMBA_CACHE_DIR": str(code_folder().parent)}

    def change(self) -> None:
        """From now on the test is on a machine that has nothing of the run."""
        forget()
        variables = self.variables  # asked for before one of them is another
        self.number += 1
        for name, value in (variables | {"XDG_CACHE_HOME": self.variables["XDG_CACHE_HOME"]}).items():
            self.patch.setenv(name, value)

    def there(self) -> dict[str, bytes]:
        """All objects of the run, by their keys below its URL."""
        found = self.bucket.objects(f"{PREFIX}/")
        return {key.removeprefix(f"{PREFIX}/"): data for key, data in found.items()}

    def put(self, key: str, data: bytes) -> None:
        self.bucket.put(f"{PREFIX}/{key}", data)

    def put_all(self, objects: dict[str, bytes]) -> None:
        """Let the bucket have these and nothing else."""
        self.empty()
        for key, data in objects.items():
            self.put(key, data)

    def empty(self) -> None:
        self.bucket.well()
        for key in self.bucket.objects():
            self.bucket.delete(key)


@contextmanager
def machines_with_a_bucket(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Machines]:
    """A machine with a new bucket, and clients that ask twice, and neither nine times nor for six seconds."""
    patch.setattr(objects, "RETRIES", 1)
    patch.setattr(objects, "file_system", impatient_file_system)
    patch.setattr(bucket_ledger, "LEASE_S", 3600.0)  # this machine may be so busy that a minute passes in silence
    with bucket_of_moto(patch) as bucket:
        there = Machines(bucket, folder, patch)
        there.change()
        yield there


def source_in(folder: Path) -> Path:
    return write_edges(folder / "g.parquet", EDGES, strings=True)


#: Folders of what one step puts there side by side. Whoever is cut off between two of them has some, whichever.
_SIDE_BY_SIDE = ("graph", "summary")


def told_apart(changes: list[Asked]) -> list[int]:
    """Numbers of changes, from 1: all but those in the middle of what is put there side by side."""
    folders = [asked.key.removeprefix(f"{PREFIX}/").partition("/")[0] for asked in changes]
    among = zip(["", *folders], folders, [*folders[1:], ""], strict=False)
    return [at for at, (last, this, following) in enumerate(among, 1) if not last == this == following in _SIDE_BY_SIDE]


def taken_over(machines: Machines, patch: pytest.MonkeyPatch, other: Callable[[], bool]) -> list[int]:
    """Just before a driver commits its first slice, it is believed dead, and `other` does its work on another machine.

    `other` returns whether its run is complete. The list that is returned is not empty once it has worked.
    """
    commit, done = Journal.commit, list[int]()

    def take_over(self: Journal, number: int, entry: bytes) -> None:
        if not done:
            done.append(1)
            machines.bucket.delete("nights/ü 1/run.lock")
            machines.change()
            assert other()
        commit(self, number, entry)

    patch.setattr(Journal, "commit", take_over)
    return done


def check_whole(machines: Machines, strays: bool = False) -> None:
    """The run is complete and right, as any machine reads it, and without `strays` has no parts that do not count."""
    machines.change()
    results = bq.open_run(machines.url)
    assert results.complete
    assert (results.manifest.count, results.manifest.fingerprint) == answer(EDGES, strings=True)
    assert results.dataset().count_rows() == results.manifest.count
    there = machines.there()
    rows = {key.removeprefix("bicliques/") for key in there if key.startswith("bicliques/")}
    named = {part["name"] for part in json.loads(there["manifest.json"])["parts"]}
    assert named <= rows if strays else named == rows
    assert there["_SUCCESS"] == b""
    now = bq.status(machines.url)  # it alone looks at the ledger
    assert (now.state, now.problems) == ("complete", ())
