"""Runs and stores that earlier versions wrote are read, verified and resumed, with the counts that they have."""

import json
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

import bicliques as bq
from bicliques.schemas.errors import InputError
from tests.frozen import EDGES, MANY
from tests.support.runs import answer
from tests.support.stored import Machines, machines_with_a_bucket

FROZEN = Path(__file__).parent / "data" / "frozen"
NAMES = sorted(path.name.removesuffix(".tar.xz") for path in FROZEN.glob("*.tar.xz"))
UNFINISHED = {"run-limit", "run-killed-while-mining", "run-killed-before-mining"}
COUNTED = {"run-counted", "run-sizes"}
NO_RUNS = {"run-compared", "run-published"}
COMPLETE = [name for name in NAMES if name.startswith("run-") and name not in UNFINISHED | NO_RUNS]
STORES = [name for name in NAMES if name.startswith("store-")]


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(FROZEN / f"{name}.tar.xz") as archive:
        archive.extractall(folder / name, filter="data")
    return folder / name


def test_there_are_enough_of_them() -> None:
    assert (len(NAMES) - len(STORES), len(STORES)) == (22, 5)


@pytest.mark.parametrize("name", COMPLETE)
def test_a_complete_run_is_read_and_verified(name: str, tmp_path: Path) -> None:
    folder = unpacked(name, tmp_path)
    written = json.loads((folder / "manifest.json").read_text())
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    results = bq.open_run(folder)
    assert results.complete
    assert (len(results), str(results.manifest.fingerprint)) == (written["count"], str(written["fingerprint"]))
    now = bq.status(folder)
    assert (now.state, now.problems) == ("complete", ())
    if name in COUNTED:
        with pytest.raises(InputError):
            bq.verify(folder, progress=False)
    else:
        assert len(results.to_pandas()) == written["count"]
        assert bq.verify(folder, progress=False).count == written["count"]
    assert len(bq.resume(folder, progress=False, report=False)) == written["count"]
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {path.name for path in after if before.get(path) != after[path]} <= {"run.lock"}


@pytest.mark.parametrize("name", sorted(UNFINISHED))
def test_an_unfinished_run_goes_on_and_finds_all(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "host")  # which the locks of those that were killed name
    folder = unpacked(name, tmp_path)
    kept = {path: path.read_bytes() for path in (folder / "ledger").glob("*")}
    results = bq.resume(folder, max_results=None, workers=0, progress=False, report=False)
    assert (len(results), results.manifest.fingerprint) == answer(MANY)
    assert bq.verify(folder, progress=False).count == len(results)
    assert all(path.read_bytes() == data for path, data in kept.items())


def test_a_run_is_the_source_of_another_one(tmp_path: Path) -> None:
    folder = unpacked("run-words", tmp_path)
    counted = bq.count(folder, min_left=3, engine="cpu", fingerprint=True, progress=False)
    assert (counted.count, counted.fingerprint) == answer(EDGES, strings=True, min_left=3)


def test_rows_that_were_published_or_compared_are_read(tmp_path: Path) -> None:
    folder = unpacked("run-published", tmp_path)
    rows = [str(path) for path in folder.rglob("*.parquet")]
    count, _ = answer(EDGES, strings=True)
    assert ds.dataset([path for path in rows if "/bicliques/" in path]).count_rows() == count
    changes = unpacked("run-compared", tmp_path)
    gone, new = (ds.dataset(changes / f"{name}.parquet").count_rows() for name in ("gone", "new"))
    later, _ = answer(EDGES[5:], strings=True)
    assert (gone > 0, count - gone + new) == (True, later)


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    with machines_with_a_bucket(tmp_path, monkeypatch) as found:
        yield found


@pytest.mark.parametrize("name", STORES)
@pytest.mark.first(3)
def test_a_run_in_a_store_is_read_and_goes_on(name: str, machines: Machines, tmp_path: Path) -> None:
    with tarfile.open(FROZEN / f"{name}.tar.xz") as archive:
        objects: dict[str, Any] = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        machines.put_all({key: file.read() for key, file in objects.items()})
    options: dict[str, Any] = {"progress": False, "report": False}
    results = bq.resume(machines.url, max_results=None, **options)
    assert results.complete
    if name == "store-largest":
        assert len(results) == 3
    else:
        assert (len(results), results.manifest.fingerprint) == answer(EDGES, strings=True)
    if name != "store-counted":
        machines.change()
        assert bq.verify(machines.url, progress=False).count == len(results)
