"""Damage to the files of a stopped run: resume mines again what is lost, or refuses; never a row too many."""

import json
import random
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.run import store
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.ledger import Ledger
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import IncompleteError, ResourceError
from bicliques.schemas.jobs import job_of
from bicliques.schemas.manifest import PLAN
from bicliques.schemas.options import RunLimits, RunOptions
from bicliques.schemas.search import Mode, Search
from tests.support.examples import examples
from tests.support.runs import (
    answer,
    bicliques,
    environment,
    ledger_entry,
    load_ledger,
    manifest_pair,
    random_edges,
    rewrite_record,
    write_edges,
)

#: What makes a run that may be damaged, in a folder, with a limit, in a mode.
Stopped = Callable[..., Path]

EDGES = random_edges(44, 30, 0.3, 1)
EXPECTED = answer(EDGES)


def run_that_stopped(folder: Path, most: int | None = 640, mode: Mode = "list") -> Path:
    """A run of many small slices that stopped at a limit; or, without one, is mined and not proven."""
    source = write_edges(folder / "g.parquet", EDGES)
    out = folder / "out"
    steps.start(source, out, RunOptions(source=str(source), search=Search(mode)), RunLimits(), False)
    steps.prepare(out, False)
    for limit in (100, 220, 370, 540, most):
        steps.mine(out, WorkerOptions(workers=0, slice_seconds=0.02), RunLimits(max_results=limit), False)
    assert len(load_ledger(out).entries) >= 5
    return out


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int | None, Mode], Path]:
    """Each `run_that_stopped` is made once."""
    return cache(lambda most, mode: run_that_stopped(tmp_path_factory.mktemp("model"), most, mode))


@pytest.fixture
def stopped(models: Callable[[int | None, Mode], Path]) -> Stopped:
    """A copy of one, in a folder that may have none yet."""
    return lambda folder, most=640, mode="list": Path(shutil.copytree(models(most, mode), folder / "out"))


def check_resumed(out: Path) -> None:
    """Resume; the same count and fingerprint, no row twice, no file that does not belong."""
    results = bq.resume(out, max_results=None, workers=0, progress=False, report=False)
    if results.manifest.options["search"]["mode"] == "count":
        assert len(results) == EXPECTED[0]
        return
    assert manifest_pair(out) == EXPECTED
    assert bq.verify(out, progress=False).count == EXPECTED[0]
    named = {part.name for part in results.manifest.parts}
    assert {path.name for path in (out / "bicliques").iterdir()} == named
    assert results.to_arrow(columns=["root"]).num_rows == EXPECTED[0]


def first_part(out: Path) -> Path:
    entry = next(entry for entry in load_ledger(out).entries.values() if entry.result.parts)
    return out / "bicliques" / entry.result.parts[0].name


def test_a_truncated_part(stopped: Stopped, tmp_path: Path) -> None:
    out = stopped(tmp_path)
    part = first_part(out)
    part.write_bytes(part.read_bytes()[:-100])
    check_resumed(out)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"slice": 0}'])
@pytest.mark.first(2)
def test_a_damaged_ledger_entry(stopped: Stopped, tmp_path: Path, text: str) -> None:
    out = stopped(tmp_path)
    entries = load_ledger(out)
    entries.file(next(iter(entries.entries))).write_text(text)
    check_resumed(out)


@pytest.mark.values
@pytest.mark.parametrize("field", ["left_over", "took", "count", "fingerprint", "seconds"])
@pytest.mark.parametrize("mode", ["list", "count"])
def test_a_ledger_entry_with_one_character_changed(stopped: Stopped, tmp_path: Path, mode: Mode, field: str) -> None:
    """A run that only counted has no rows to count again, so only the checksum of its entries is left."""
    out = stopped(tmp_path, mode=mode)
    entries = load_ledger(out)
    number = next(entry.result.slice for entry in entries.entries.values() if entry.result.n_left_over)
    text = entries.file(number).read_text()
    found = re.search(rf'"{field}": [^0-9A-Z]*(?=[0-9A-Z])', text)
    if found is None:
        pytest.skip("a run that counts has no fingerprints")
    at = found.end() + (200 if field == "left_over" else 0)
    other = {"left_over": "A" if text[at] != "A" else "B"}.get(field, "1" if text[at] != "1" else "2")
    entries.file(number).write_text(text[:at] + other + text[at + 1 :])
    check_resumed(out)


STEPS = ["edges/edges.parquet", "labels/left.parquet", "graph/root_indices.npy", "graph/right_labels.arrow"]


def damage_file(file: Path, how: str) -> None:
    data = bytearray(file.read_bytes())
    data[-20] ^= 4
    file.unlink() if how == "missing" else file.write_bytes(b"" if how == "empty" else data)


@pytest.mark.values
@pytest.mark.parametrize("name", [*STEPS, "plan/roots.npy", "plan/weights.npy"])
@pytest.mark.parametrize("how", ["missing", "empty", "one bit"])
def test_a_file_of_an_earlier_step_is_made_again(stopped, tmp_path, name, how, caplog):
    out = stopped(tmp_path)
    damage_file(out / name, how)
    if name.startswith(("graph", "plan")):
        with pytest.raises(IncompleteError, match=f"{name} is missing or damaged; mend it with: bicliques.resume"):
            steps.mine(out, progress=False)
    check_resumed(out)
    assert f"{out / name} is missing or damaged; step" in caplog.text


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.first(2)
def test_a_complete_run_is_not_verified_with_files_that_are_not_its_own(stopped, tmp_path, name):
    out = stopped(tmp_path, None)
    steps.prove(out, progress=False)
    damage_file(out / name, "one bit")
    with pytest.raises(IncompleteError, match=f"{name} is missing or damaged; mend it with: bicliques.resume"):
        bq.verify(out, progress=False)
    check_resumed(out)


def test_a_damaged_graph_is_not_made_from_another_input(tmp_path: Path) -> None:
    out = run_that_stopped(tmp_path)
    (out / "edges/edges.parquet").unlink()
    write_edges(tmp_path / "g.parquet", EDGES[:-1])
    for _ in range(2):
        with pytest.raises(IncompleteError, match=r"step ingest .* does not give again what it gave"):
            bq.resume(out, workers=0, progress=False, report=False)
    write_edges(tmp_path / "g.parquet", EDGES)
    check_resumed(out)


@pytest.mark.parametrize("damage", ["missing", "truncated", "added"])
def test_a_complete_run_without_its_parts_is_noticed(stopped, tmp_path, damage, caplog):
    out = stopped(tmp_path, None)
    steps.prove(out, progress=False)
    part = first_part(out)
    if damage == "missing":
        part.unlink()
    elif damage == "truncated":
        part.write_bytes(part.read_bytes()[:-1])
    else:
        (out / "bicliques" / "part-000099-deadbeef0000-0.parquet").write_bytes(b"x")
    with pytest.raises(IncompleteError, match="mend it with: bicliques"):
        bq.verify(out, progress=False)
    check_resumed(out)
    assert "the manifest is withdrawn" in caplog.text


def test_files_of_an_uncommitted_attempt_are_ignored(stopped: Stopped, tmp_path: Path) -> None:
    out = stopped(tmp_path)
    part = first_part(out)
    left = {
        out / "bicliques" / "part-000099-deadbeef0000-0.parquet": part.read_bytes(),
        out / "pending" / ".part-000099-deadbeef0000-1.tmp": b"half a file",
        out / "pending" / "part-000099-deadbeef0000-2.parquet": part.read_bytes(),
        out / "ledger" / ".99.json.tmp": b"half an entry",
    }
    for path, content in left.items():
        path.write_bytes(content)
    Run.at(out).repaired_ledger()
    assert not any(path.exists() for path in left), "they are there until the run is complete"
    check_resumed(out)


def test_steps_that_were_interrupted(stopped: Stopped, tmp_path: Path) -> None:
    out = stopped(tmp_path)
    for marker in (out / "steps").iterdir():
        marker.unlink()
    for child in (*(out / "ledger").iterdir(), *(out / "bicliques").iterdir(), *(out / "plan").iterdir()):
        child.unlink()
    (out / ".ingest-of_dead_").mkdir()
    check_resumed(out)
    assert not list(out.glob(".ingest*"))


@settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 10**6))
def test_any_missing_entries_and_parts_are_mined_again(stopped, tmp_path_factory, seed):
    out = stopped(tmp_path_factory.mktemp("run"))
    rng = random.Random(seed)
    for path in [*(out / "ledger").iterdir(), *(out / "bicliques").iterdir()]:
        if rng.random() < 0.3:
            path.unlink()
    check_resumed(out)


def edit(out: Path, **changes: Any) -> int:
    entries = load_ledger(out)
    number = next(entry.result.slice for entry in entries.entries.values() if entry.result.total.count > 1)
    rewrite_record(entries.file(number), **changes)
    return number


@pytest.mark.parametrize("changes", [{"count": 3}, {"fingerprint": "12345"}], ids=str)
def test_proving_is_refused_when_the_rows_are_not_what_the_engine_reported(stopped, tmp_path, changes):
    out = stopped(tmp_path, None)
    number = edit(out, **changes)
    with pytest.raises(IncompleteError, match=rf"rows of slice {number} .* delete ledger/{number}.json and resume"):
        steps.prove(out, progress=False)
    assert not (out / "manifest.json").exists()
    (out / "ledger" / f"{number}.json").unlink()
    check_resumed(out)


def test_proving_is_refused_when_a_row_was_exchanged(stopped: Stopped, tmp_path: Path) -> None:
    out = stopped(tmp_path, None)
    part = first_part(out)
    table = pq.read_table(part)
    other = table.slice(1, 1)
    number = next(
        e.result.slice
        for e in load_ledger(out).entries.values()
        if e.result.parts and e.result.parts[0].name == part.name
    )
    pq.write_table(pa.concat_tables([other, table.slice(1)]).cast(table.schema), part)
    file = out / "ledger" / f"{number}.json"
    parts = json.loads(file.read_text())["parts"]
    parts[0]["bytes"] = part.stat().st_size
    rewrite_record(file, parts=parts)
    with pytest.raises(IncompleteError, match=f"the Parquet rows of slice {number}"):
        steps.prove(out, progress=False)
    assert not (out / "manifest.json").exists()


def test_proving_is_refused_while_work_is_outstanding(stopped: Stopped, tmp_path: Path) -> None:
    out = stopped(tmp_path)
    with pytest.raises(IncompleteError, match="are not mined yet; resume the run"):
        steps.prove(out, progress=False)


def test_a_node_taken_twice_is_refused(stopped: Stopped, tmp_path: Path) -> None:
    out = stopped(tmp_path, None)
    entries = load_ledger(out)
    entry = entries.entries[0]
    rewrite_record(entries.file(0), entries.file(1000), slice=1000, parts=[], took=[list(entry.took[0])])
    for act in (
        lambda: steps.prove(out, progress=False),
        lambda: bq.resume(out, workers=0, progress=False, report=False),
    ):
        with pytest.raises(IncompleteError, match="slices 0 and 1000 both took node"):
            act()


@pytest.mark.parametrize("start", [4, 5])
def test_even_a_single_node_is_not_taken_twice(tmp_path: Path, start: int) -> None:
    entries = {k: ledger_entry(k, (PLAN, *took)) for k, took in ((0, (0, 5)), (1, (start, 9)))}
    taken = Ledger(RunFolder(tmp_path), job_of(Search()), 9, entries)
    if start == 5:
        assert taken.outstanding() == {}
        return
    with pytest.raises(IncompleteError, match="slices 0 and 1 both took node 4 of the plan"):
        taken.outstanding()


def test_a_copied_ledger_entry_is_refused(stopped: Stopped, tmp_path: Path) -> None:
    out = stopped(tmp_path)
    ledger = load_ledger(out)
    ledger.file(99).write_bytes(ledger.file(0).read_bytes())
    with pytest.raises(IncompleteError, match=r"99.json says that it is slice 0; delete it and resume the run"):
        load_ledger(out)
    check_resumed(out)


@pytest.mark.exhaustive
def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk, because a test cannot make a file system."""
    edges = random_edges(200, 80, 0.35, 3)
    source = write_edges(tmp_path / "g.parquet", edges)
    out = tmp_path / "out"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    command = [sys.executable, "-m", "bicliques", "mine", source, "-o", out, "--workers", "0", "--ids", "dense"]
    ended = subprocess.run(
        list(map(str, command)),
        env=environment(),
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    assert "(File too large); make room, then" in ended.stderr
    assert f"continue with: bicliques resume {out}" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (out / "manifest.json").exists()
    assert bicliques("resume", out, "--workers", "0", "--quiet").returncode == 0
    assert manifest_pair(out) == answer(edges)
    assert list(load_ledger(out).orphans()) == []


def test_a_full_disk_while_the_ledger_is_written(stopped, tmp_path, monkeypatch):
    out = stopped(tmp_path)

    def full(target: Path, flush_names: Any) -> None:
        raise ResourceError(f"cannot write {target} (No space left on device)")

    with monkeypatch.context() as patch:
        patch.setattr(store, "whole_file", full)
        with pytest.raises(ResourceError, match="No space left"):
            bq.resume(out, max_results=None, workers=0, slice_seconds=0.01, progress=False, report=False)
    check_resumed(out)
