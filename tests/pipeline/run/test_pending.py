"""Parts wait in ``pending/`` for their ledger entry: whatever is in ``bicliques/`` counts, at every moment."""

import json
import os
import shutil
import threading
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.output.device_writer import DeviceWriter
from bicliques.pipeline.run import store
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.lock import locked
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.slices import worker
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.errors import IncompleteError, ResourceError
from bicliques.schemas.manifest import Part
from tests.support.engines import fake_gpu
from tests.support.host_backend import Host
from tests.support.runs import (
    answer,
    load_ledger,
    manifest_pair,
    mined_in_threads,
    prepared_run,
    random_edges,
    write_edges,
)

EDGES = random_edges(60, 40, 0.3, 1)
EXPECTED = answer(EDGES)


def uncounted(out: Path) -> set[str]:
    """Parts that a reader of ``bicliques/*.parquet`` sees, and that no entry on disk names."""
    seen = {path.name for path in (out / "bicliques").glob("*.parquet")}
    named = set()
    for file in (out / "ledger").glob("[0-9]*.json"):
        named |= {part["name"] for part in json.loads(file.read_text())["parts"]}
    return seen - named


@pytest.fixture
def moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Looks at ``out/bicliques`` after every call that gives or takes a name. Has the number of parts of each look."""
    seen: list[int] = []
    wrong: list[set[str]] = []
    one_at_a_time = threading.RLock()

    def watched(call: Any) -> Any:
        def instead(*arguments: Any, **how: Any) -> Any:
            with one_at_a_time:
                given = call(*arguments, **how)
                seen.append(len(list((tmp_path / "out" / "bicliques").glob("*.parquet"))))
                if bad := uncounted(tmp_path / "out"):
                    wrong.append(bad)
            return given

        return instead

    for name in ("rename", "replace", "unlink", "link"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    yield seen
    assert wrong == []


def stopped(folder: Path) -> Path:
    """A run of some slices that stopped."""
    out, source = folder / "out", write_edges(folder / "g.parquet", EDGES)
    bq.mine(source, out, workers=0, progress=False, report=False, max_results=400, slice_seconds=0.01)
    for most in (900, 1500, 2200):
        bq.resume(out, workers=0, progress=False, report=False, max_results=most, slice_seconds=0.01)
    assert len(load_ledger(out).entries) >= 4
    return out


def finish(out: Path) -> None:
    bq.resume(out, workers=0, max_results=None, progress=False, report=False)
    assert manifest_pair(out) == EXPECTED
    assert not (out / "pending").exists()
    named = {part.name for part in bq.open_run(out).manifest.parts}
    assert {path.name for path in (out / "bicliques").iterdir()} == named


def held_back(out: Path) -> list[Part]:
    """The parts of a run that a driver was killed before it moved: here, of every second slice."""
    (out / "pending").mkdir(exist_ok=True)
    parts = [part for entry in load_ledger(out).entries.values() for part in entry.result.parts][::2]
    for part in parts:
        (out / "bicliques" / part.name).rename(out / "pending" / part.name)
    assert parts
    return parts


def test_a_reader_never_sees_a_row_that_does_not_count(tmp_path: Path, moments: list[int]) -> None:
    out = stopped(tmp_path)
    finish(out)
    assert len(set(moments)) > 4, "nobody looked between two slices"


@pytest.mark.parametrize("writer", ["device", "threads"])
def test_a_reader_never_sees_a_row_of_a_gpu_that_does_not_count(tmp_path, monkeypatch, moments, writer):
    class Copying(Host):
        def pieces(self, found: Bicliques, members: int) -> list[Bicliques]:  # because the engine uses its arrays again
            return super().pieces(deepcopy(found), members)

    def on_host(folder: Path, number: int, tables: Any, *others: Any) -> DeviceWriter:
        return DeviceWriter(folder, number, Copying(tables=tables))

    if writer == "device":
        monkeypatch.setattr(worker, "open_writer", on_host)
    folder = prepared_run(tmp_path, EDGES)
    with fake_gpu():
        mined_in_threads(folder)
    assert manifest_pair(folder.path) == EXPECTED
    assert len(set(moments)) > 1


def test_a_reader_never_sees_a_row_of_the_largest_that_does_not_count(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = bq.largest(source, tmp_path / "out", top=5, workers=0, progress=False, report=False)
    assert [path.name for path in (tmp_path / "out" / "bicliques").iterdir()] == [results.manifest.parts[0].name]
    assert not (tmp_path / "out" / "pending").exists()


def test_an_entry_that_is_dropped_takes_its_rows_out_of_sight_first(tmp_path: Path, moments: list[int]) -> None:
    """Slice 1 took from what slice 0 left over. So both are dropped once the part of slice 0 is cut."""
    out = stopped(tmp_path)
    entry = load_ledger(out).entries[0]
    part = out / "bicliques" / entry.result.parts[0].name
    part.write_bytes(part.read_bytes()[:-1])
    finish(out)
    assert not part.exists()


@pytest.mark.parametrize("entry", ["kept", "dropped"])
def test_a_part_whose_driver_was_killed_before_it_moved_it(tmp_path: Path, entry: str) -> None:
    out = stopped(tmp_path)
    before = bq.open_run(out)
    rows, status = before.to_arrow(), bq.status(out)
    parts = held_back(out)
    found = bq.open_run(out)
    assert len(found) == len(before)
    assert found.to_arrow().sort_by("root").num_rows == rows.num_rows
    assert {path.parent.name for path in found.files} == {"bicliques", "pending"}
    assert bq.status(out).slices == status.slices
    assert found.sizes() == before.sizes()
    if entry == "dropped":
        dropped = next(each for each in load_ledger(out).entries.values() if parts[0] in each.result.parts)
        load_ledger(out).file(dropped.result.slice).unlink()
    Run.at(out).repaired_ledger()
    assert list((out / "pending").iterdir()) == []
    assert (out / "bicliques" / parts[0].name).exists() == (entry == "kept")
    assert uncounted(out) == set()
    finish(out)


def test_proving_moves_what_is_left_and_deletes_what_does_not_count(tmp_path: Path) -> None:
    folder = prepared_run(tmp_path, EDGES, engine="cpu")
    mined_in_threads(folder)
    folder.manifest_file.unlink()
    parts = held_back(folder.path)
    stray = folder.pending / "part-000099-deadbeef0000-0.parquet"
    shutil.copy(folder.pending / parts[0].name, stray)
    steps.prove(folder.path, progress=False)
    assert manifest_pair(folder.path) == EXPECTED
    assert uncounted(folder.path) == set()
    assert len(list(folder.bicliques.iterdir())) == len(load_ledger(folder.path).parts)
    assert not folder.pending.exists()


def test_a_part_that_cannot_be_moved_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "out"
    rename = os.rename

    def fail(source: Any, target: Any, **how: Any) -> None:
        if Path(source).parent.name == "pending":
            raise OSError(30, "Read-only file system", str(source), None, str(target))
        rename(source, target, **how)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fail)
        with pytest.raises(ResourceError, match=r"cannot write .*part-.*Read-only file system"):
            bq.mine(source, out, workers=0, progress=False, report=False)
    assert list((out / "bicliques").iterdir()) == []
    assert len(bq.open_run(out)) == EXPECTED[0]
    finish(out)


def test_a_reader_gives_up_on_a_driver_that_moves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = stopped(tmp_path)
    held_back(out)
    monkeypatch.setattr(store, "_PATIENCE_S", 0.01)
    with locked(RunFolder(out).lock_file):
        assert {path.parent.name for path in bq.open_run(out).files} == {"bicliques", "pending"}


def test_a_folder_in_the_place_of_a_part_is_named(tmp_path: Path) -> None:
    out = stopped(tmp_path)
    odd = out / "pending" / "part-000099-deadbeef0000-0.parquet"
    odd.mkdir(parents=True)
    with pytest.raises(IncompleteError, match=f"{odd} is not a file, and has the name of a part; move it away"):
        Run.at(out).repaired_ledger()


def test_a_part_of_another_size_in_pending_does_not_count(tmp_path: Path) -> None:
    out = stopped(tmp_path)
    [first, *_] = held_back(out)
    with (out / "pending" / first.name).open("ab") as file:
        file.write(b"x")
    _, problems = Run.at(out).survey()
    assert any(f"{out / 'pending' / first.name} has {first.bytes + 1} bytes" in text for text in problems.values())
    finish(out)
