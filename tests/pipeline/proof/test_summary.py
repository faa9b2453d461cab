"""The summary that the proof makes has the same numbers as a query over the files."""

import shutil
import threading
from collections import Counter
from contextlib import suppress

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.proof import verification
from bicliques.pipeline.proof.summary import Summary, read_largest
from bicliques.pipeline.run.folder import RunFolder
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.hashes import hashes_of_ids
from bicliques.schemas.sizes import SizeCounts
from tests.support.runs import QUIET, random_edges, write_edges

EDGES = random_edges(60, 40, 0.3, 11)


@pytest.mark.parametrize("strings", [False, True])
def test_the_summary_agrees_with_the_files(tmp_path, strings):
    source = write_edges(tmp_path / "g.parquet", EDGES, strings)
    results = bq.mine(source, tmp_path / "out", **QUIET, max_results=500)
    results = bq.resume(tmp_path / "out", **QUIET, max_results=None)
    frame = results.to_pandas()
    summary = Summary.read(RunFolder(results.path))
    assert summary.sizes == SizeCounts.of(frame.n_left.to_numpy(), frame.n_right.to_numpy())
    for side in ("left", "right"):
        counted = Counter(label for members in frame[side] for label in members)
        table = pd.read_parquet(results.path / "summary" / f"{side}.parquet")
        assert dict(zip(table.label, table.bicliques, strict=True)) == counted
        assert getattr(summary, side).tolist() == table.bicliques.tolist()


def test_batches_of_any_length_add_up():
    rng = np.random.default_rng(4)
    pairs = [(rng.permutation(50)[: rng.integers(1, 50)], rng.permutation(9)[: rng.integers(1, 9)]) for _ in range(60)]
    hashes = hashes_of_ids(100_000, 9)
    total = Summary(100_000, 9)
    for start, stop in ((0, 1), (1, 2), (2, 60), (60, 60)):
        total.add(Bicliques.from_pairs([(list(a), list(b)) for a, b in pairs[start:stop]]), hashes)
    whole = Summary.of([total.compact(), Summary(100_000, 9), Summary(100_000, 9).compact()], 100_000, 9)
    assert whole.left.tolist() == np.bincount(np.concatenate([a for a, _ in pairs]), minlength=100_000).tolist()
    assert whole.right.tolist() == np.bincount(np.concatenate([b for _, b in pairs]), minlength=9).tolist()
    assert whole.sizes.total == 60


@pytest.mark.parametrize("unknown", [-1, 9])
def test_an_id_that_no_vertex_has_is_refused(unknown):
    batch = Bicliques.from_pairs([([0, 3], [1]), ([2], [0, unknown, 1])])
    with pytest.raises(IncompleteError, match=f"a row holds the id {unknown}, which no vertex has"):
        Summary(4, 9).add(batch, hashes_of_ids(4, 9))


@pytest.mark.parametrize("step", [1009, pytest.param(61, marks=pytest.mark.exhaustive)])
def test_a_damaged_summary_is_refused(tmp_path, step):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = bq.mine(source, tmp_path / "out", **QUIET)
    largest = results.top(5)
    for name in ("left.parquet", "largest.parquet"):
        file = results.path / "summary" / name
        whole = file.read_bytes()
        file.write_bytes(b"PAR1")
        with pytest.raises(IncompleteError, match="summary cannot be read"):
            Summary.read(RunFolder(results.path))
        file.write_bytes(whole)
    places = read_largest(RunFolder(results.path), results.manifest, "edges", 5)
    for k in range(0, len(whole) * 8, step):  # of a damaged file nothing is believed
        flipped = bytearray(whole)
        flipped[k // 8] ^= 1 << k % 8
        file.write_bytes(flipped)
        with suppress(IncompleteError):  # where the rows of `top` are; without them it looks at all rows
            assert read_largest(RunFolder(results.path), results.manifest, "edges", 5) in (places, None)
    pq.write_table(pa.table({"by": ["edges"]}), file)  # of other columns
    with pytest.raises(IncompleteError, match=r"summary cannot be read .*mend it with: bicliques\.resume"):
        results.top(5)
    shutil.rmtree(results.path / "summary")
    assert results.top(5).equals(largest)


def test_verification_compares_it_with_the_rows(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = bq.mine(source, tmp_path / "out", **QUIET)
    for name, column in (("sizes", "count"), ("left", "bicliques"), ("right", "bicliques"), ("largest", "row")):
        file = results.path / "summary" / f"{name}.parquet"
        whole = file.read_bytes()
        table = pq.read_table(file)
        k = table.column_names.index(column)
        pq.write_table(table.set_column(k, column, pc.add(table[column], 1)), file)
        with pytest.raises(IncompleteError, match="summary is not of these rows; delete it"):
            bq.verify(results.path, progress=False)
        file.write_bytes(whole)
    of_before = table.filter(pc.equal(table["by"], "edges")).slice(0, 50)  # a summary of an earlier version has fewer
    pq.write_table(of_before, file)
    assert bq.verify(results.path, progress=False).count == len(results)
    pq.write_table(of_before.slice(1), file)
    with pytest.raises(IncompleteError, match="summary is not of these rows; delete it"):
        bq.verify(results.path, progress=False)
    file.unlink()
    assert bq.verify(results.path, progress=False).count == len(results)
    shutil.rmtree(results.path / "summary")
    assert bq.verify(results.path, progress=False).count == len(results)


def test_rows_that_several_threads_have_verified_are_summed_up_together(tmp_path, monkeypatch):
    """Two threads read a part each, because each waits until the other has one."""
    source = write_edges(tmp_path / "g.parquet", EDGES)
    bq.mine(source, tmp_path / "out", **QUIET, max_results=500)
    results = bq.resume(tmp_path / "out", **QUIET, max_results=None)
    read, both = verification._Reading._read, threading.Barrier(2)

    def with_another(self, piece):
        if piece.part < 2:
            both.wait(timeout=30)
        return read(self, piece)

    monkeypatch.setattr(verification._Reading, "_read", with_another)
    monkeypatch.setattr(verification, "count_cores", lambda: 2)
    assert bq.verify(results.path, progress=False).count == len(results)


def test_too_few_largest_rows_are_found_anew_and_wrong_parts_refused(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = bq.mine(source, tmp_path / "out", **QUIET)
    expected, file = results.top(60), results.path / "summary" / "largest.parquet"
    table = pq.read_table(file)
    pq.write_table(table.slice(0, 50), file)
    assert results.top(60).equals(expected)
    pq.write_table(table.set_column(5, "file", pc.add(table["file"], 1)), file)
    with pytest.raises(IncompleteError, match="it names a part that is not there"):
        results.top(60)


def test_a_summary_of_an_earlier_version_lacks_the_largest(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = bq.mine(source, tmp_path / "out", **QUIET)
    largest, file = results.top(5), results.path / "summary" / "largest.parquet"
    file.unlink()
    assert Summary.read(RunFolder(results.path)).largest == {}
    assert results.top(5).equals(largest)


def test_a_run_that_only_counted_has_no_summary(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = bq.mine(source, tmp_path / "out", count_only=True, **QUIET)
    assert not (results.path / "summary").exists()
