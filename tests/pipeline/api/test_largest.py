"""The job of the few largest, end to end: mined, resumed, with workers, proven, verified, on the page."""

import json
import re
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.pipeline.api import steps
from bicliques.pipeline.cli.main import main
from bicliques.pipeline.mining import driver
from bicliques.pipeline.prepare.bands import reach_of
from bicliques.pipeline.prepare.build import read_edges
from bicliques.pipeline.prepare.members import restricted
from bicliques.pipeline.proof.certificate import certify, count_above
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import line
from bicliques.pipeline.slices.worker import SliceDone, SliceTask
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.search import MEASURES, By, measure
from bicliques.schemas.totals import measured
from tests.support.emulated import runnable
from tests.support.runs import OWN, QUIET, load_ledger, random_edges, rewrite_record, write_edges

EDGES = random_edges(40, 30, 0.35, 8)
K = 12


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_edges(tmp_path_factory.mktemp("largest") / "g.parquet", EDGES)


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    return bq.mine(source, tmp_path_factory.mktemp("whole") / "out", **QUIET)


def rows(results: bq.Results) -> list[Any]:
    return sorted((sorted(row["left"]), sorted(row["right"])) for row in results.to_arrow().to_pylist())


def expected(whole: bq.Results, by: By = "edges") -> list[Any]:
    return sorted((sorted(row["left"]), sorted(row["right"])) for row in whole.top(K, by).to_pylist())


@pytest.mark.values
@pytest.mark.parametrize("by", MEASURES)
@pytest.mark.parametrize("engine", ["cpu", "reference", "bitmatrix"])
def test_they_are_the_first_of_all(source, whole, tmp_path, by, engine):
    how = {"engine": engine, **QUIET}
    with runnable(engine):
        found = bq.largest(source, tmp_path / "out", top=K, by=by, **how)
    assert (found.complete, len(found)) == (True, K)
    assert rows(found) == expected(whole, by)
    for column in ("n_left", "n_right"):
        assert found.top(K, by)[column].equals(whole.top(K, by)[column])
    assert found.manifest.mining["seen"] <= len(whole), "what is below the bound is not looked at"
    files = list((tmp_path / "out" / "bicliques").iterdir())
    assert len(pd.concat(map(pd.read_parquet, files))) == K, "the folder holds no others"


def test_verified_and_on_the_page(source, tmp_path):
    out = tmp_path / "out"
    found = bq.largest(source, out, top=K, **OWN)
    found_again = bq.verify(out, progress=False)
    assert found_again.count == K
    assert any("by counting, without a bound" in statement for statement in found_again.proven)
    unsure = bq.verify(out, bound_time=0.0, progress=False)
    assert any("0 of " in statement and "rests on the ledger" in statement for statement in unsure.not_proven)
    assert not any("by counting" in statement for statement in unsure.proven)
    page = (out / "report.html").read_text()
    assert "largest groups by edges" in page
    assert bq.status(out).state == "complete"
    dataset = cast(ds.FileSystemDataset, found.dataset())
    assert dataset.files == [str(file) for file in found.files], "a complete run is read from its files"
    assert found.sizes().total == K


@pytest.mark.parametrize("limit", [{"max_right": 3}, {"max_left": 3}], ids=str)
def test_a_much_larger_block_beyond_a_limit_is_no_objection(tmp_path, limit):
    block = np.argwhere(np.ones((20, 8)) if "max_right" in limit else np.ones((8, 20)))
    source = write_edges(tmp_path / "g.parquet", np.concatenate([block, random_edges(40, 30, 0.2, 8) + 20]))
    found = bq.largest(source, tmp_path / "out", top=3, **limit, **QUIET)
    again = bq.verify(found.path, progress=False)
    assert again.count == 3
    assert any("by counting, without a bound" in statement for statement in again.proven)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_stopped_and_resumed(source, whole, tmp_path, workers):
    out = tmp_path / "out"
    how = {"progress": False, "report": False}
    for seconds in (0.02, 0.1, 0.5):  # a busy machine finds nothing in the first slice if that is short
        limits = {"time_limit": 1e-6, "slice_seconds": seconds, "overwrite": True}
        stopped = bq.largest(source, out, top=K, engine="reference", workers=0, **limits, **how)
        assert not stopped.complete
        if len(stopped):
            break
    assert 0 < len(stopped) == len(rows(stopped)) <= K
    assert not list((out / "bicliques").iterdir()), "rows are written once it is known which they are"
    first = next(iter(stopped))
    assert stopped.members(first.id) == first
    with pytest.raises(IncompleteError, match=r"not complete, and so has no manifest yet; resume it$"):
        stopped.explain(first.id)
    found = bq.resume(out, time_limit=None, slice_seconds=0.02, workers=workers, **how)
    assert rows(found) == expected(whole)
    assert found.explain(found[0].id).count == K


def test_rows_of_the_run_that_are_changed_are_not_proven(source, tmp_path):
    out = tmp_path / "out"
    bq.largest(source, out, top=K, **QUIET)
    ledger = load_ledger(out)
    file = ledger.file(min(ledger.entries))
    data = json.loads(file.read_text())
    rewrite_record(file, count=data["count"] + 1)
    (out / "manifest.json").unlink()
    with pytest.raises(IncompleteError, match="its rows are not the"):
        steps.prove(out, progress=False)
    found = bq.resume(out, **QUIET)
    assert (found.complete, len(found)) == (True, K)


def test_proving_again_leaves_no_other_parts(source, tmp_path):
    out = tmp_path / "out"
    bq.largest(source, out, top=K, **QUIET)
    (out / "manifest.json").unlink()
    assert bq.resume(out, **QUIET).complete
    assert len(list((out / "bicliques").iterdir())) == 1


def test_more_than_there_are(source, whole, tmp_path):
    found = bq.largest(source, tmp_path / "out", top=10**6, **QUIET)
    assert (len(found), found.manifest.fingerprint) == (len(whole), whole.manifest.fingerprint)


def test_the_command(source, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["largest", str(source), "-o", str(out), "--top", "3", "--by", "balance", "--workers", "0"]) == 0
    printed = capsys.readouterr().out
    assert "3, the largest by balance" in printed
    assert len(printed.partition("members\n")[2].splitlines()) == 3, "one line for each"
    assert main(["largest", str(source), "--quiet", "--workers", "0", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["count"], len(told["rows"])) == (1, 1)
    assert not Path(told["folder"]).exists(), "nothing is kept without a folder"
    assert main(["largest", str(source), "--quiet", "--workers", "0", "--min-left", "39"]) == 0
    assert "none: " in capsys.readouterr().out


@pytest.mark.parametrize("by", ["edges", "vertices", "balance"])
def test_the_incumbent_is_shown(source, whole, tmp_path, by, monkeypatch):
    """It rises to the largest measure, the bound falls to it, and no biclique is ever above the bound."""
    told = []
    search = driver.mine_slice

    def begin_without_time(task: SliceTask) -> SliceDone:
        """On a quick machine the first slice may do all before anything is told, so it gets no time."""
        return search(task if task.slice else replace(task, limits=replace(task.limits, seconds=0.0)))

    monkeypatch.setattr(driver, "mine_slice", begin_without_time)
    how = {"engine": "reference", "slice_seconds": 0.02, "workers": 0, "report": False}
    bq.largest(source, tmp_path / "out", by=by, progress=told.append, **how)
    gaps = [progress.gap for progress in told if progress.step == "mine" and not progress.note]
    best = measure(by, *whole.top(1, by).select(["n_left", "n_right"]).to_pylist()[0].values())
    assert None not in gaps
    assert [gap.best for gap in gaps] == sorted(gap.best for gap in gaps)
    assert [gap.bound for gap in gaps] == sorted((gap.bound for gap in gaps), reverse=True)
    assert gaps[0].bound > best
    assert all(gap.bound >= best for gap in gaps)
    assert gaps[-1] == (best, best)
    assert f"largest {best:,}, and none is larger" in line(next(progress for progress in told[::-1] if progress.gap))


def test_the_incumbent_of_a_run_that_was_stopped(source, whole, tmp_path, capsys):
    """The command, its status and the page say how large the largest is, and how large one may be."""
    out = tmp_path / "out"
    words = ["--engine", "reference", "--time-limit", "0.000001", "--workers", "0", "--quiet"]
    assert main(["largest", str(source), "-o", str(out), *words]) == 3
    told, now = capsys.readouterr().out, bq.status(out)
    best = whole.top(1)["n_left"][0].as_py() * whole.top(1)["n_right"][0].as_py()
    assert 0 < now.gap.best <= best < now.gap.bound
    assert f"so far: {now.gap}" in told
    assert main(["status", str(out)]) == 3
    assert f"so far: {now.gap}" in capsys.readouterr().out
    assert now.to_json()["gap"] == {"best": now.gap.best, "bound": now.gap.bound}
    bq.report(out)
    page = (out / "report.html").read_text()
    assert f". By edges: {now.gap}." in page
    assert "The rows are written when the search is over." in page
    assert "are listed" not in re.sub(r"(?s)<script.*?</script>", "", page)
    bq.resume(out, time_limit=None, **QUIET)
    assert bq.status(out).gap is None


@pytest.fixture(scope="module", params=["edges", "vertices", "balance"])
def of(request):
    """The measure that the largest go by."""
    by = request.param
    return by


@pytest.fixture(scope="module", params=["reference", "cpu", "bitmatrix"])
def made(of, source, tmp_path_factory, request):
    """A complete run, whose engine stays runnable."""
    engine = request.param
    how = {**QUIET, "slice_seconds": 0.02, "engine": engine}
    with runnable(engine):
        yield bq.largest(source, tmp_path_factory.mktemp("made") / "out", top=K, by=of, min_left=2, **how).path


@pytest.mark.values
class TestCertificate:
    """A certificate does not hold for other rows, bands or slices than its own."""

    @pytest.fixture
    def out(self, made, tmp_path):
        """A copy of it that may be damaged."""
        return Path(shutil.copytree(made, tmp_path / "out"))

    def test_what_it_says(self, out):
        found = bq.open_run(out)
        told, graph = found.manifest.certificate, found.manifest.graph
        search = found.manifest.options["search"]
        assert (told["measure"], told["top"], told["rows"]) == (search["by"], K, K)
        sizes = found.to_arrow().select(["n_left", "n_right"]).to_pydict()
        key = measured(*(np.array(sizes[side], np.int64) for side in ("n_left", "n_right")), search["by"]).min()
        assert (told["key"], told["first_bound"] <= key) == (key, True)
        assert [band["n_roots"] for band in told["bands"]] == [band["n_roots"] for band in graph["bands"]]
        assert all(band["taken"] == band["n_roots"] for band in told["bands"])
        assert sum(band["slices"] for band in told["bands"]) == found.manifest.mining["slices"]
        assert sum(band["seen"] for band in told["bands"]) == found.manifest.mining["seen"]
        assert bq.verify(out, progress=False).count == K

    def test_a_manifest_with_another_one_is_refused(self, out):
        told = json.loads((out / "manifest.json").read_text())["certificate"]
        first = told["bands"][0]
        for change in (
            {"bands": told["bands"][1:]},
            {"key": told["key"] - 1},
            {"rows": told["rows"] + 1},
            {"bands": [first | {"last": first["last"] + 1}, *told["bands"][1:]]},
        ):
            rewrite_record(out / "manifest.json", certificate=told | change)
            with pytest.raises(IncompleteError, match=r"the certificate of .* is not that of its ledger"):
                bq.verify(out, progress=False)
        rewrite_record(out / "manifest.json", certificate=told | {"rows": "all"})
        with pytest.raises(IncompleteError, match=r"certificate\.rows is 'all', not a whole number"):
            bq.open_run(out)
        rewrite_record(out / "manifest.json", certificate=told)
        assert bq.verify(out, progress=False).count == K

    def test_a_run_without_its_last_band_is_refused(self, out):
        """Also if plan, ledger and manifest agree that there is no such band."""
        run, total = Run.at(out), load_ledger(out).total
        bands, by, kept = run.built["bands"], run.options.search.by, restricted(run, *read_edges(run.folder))
        run.built["bands"] = bands[:-1]
        is_needed = measure(by, bands[-1]["last"], reach_of(kept).right) >= total.least
        with pytest.raises(IncompleteError, match="the bands leave something out") if is_needed else nullcontext():
            certify(run, run.ledger())

    def test_a_bound_that_was_too_high_is_refused(self, out):
        run, total = Run.at(out), load_ledger(out).total
        run.built["bound"] = total.least + 1
        with pytest.raises(IncompleteError, match="which the rows do not reach"):
            certify(run, run.ledger())

    def test_a_run_without_one_of_its_slices_is_refused(self, out):
        ledger = load_ledger(out)
        ledger.file(max(ledger.entries)).unlink()
        with pytest.raises(IncompleteError, match=r"nodes? of .* (is|are) not mined yet"):
            bq.verify(out, progress=False)

    def test_a_run_without_one_of_its_rows_is_refused(self, out):
        [part] = (out / "bicliques").iterdir()
        pq.write_table(pq.read_table(part).slice(1), part)
        with pytest.raises(IncompleteError):
            bq.verify(out, progress=False)
        assert bq.resume(out, **QUIET).complete
        assert bq.verify(out, progress=False).count == K

    def test_a_row_that_the_ledger_lost_is_counted(self, out, monkeypatch):
        """The largest row is taken out of all entries, so that the rows and the ledger agree."""
        ledger, run = load_ledger(out), Run.at(out)
        by, rows = run.options.search.by, ledger.total.rows.to_pairs()
        best = max(rows, key=lambda row: measure(by, *map(len, row)))
        if by == "balance":  # all rows are equal, and nothing is above them
            assert measure(by, *map(len, best)) == ledger.total.least
            return
        less = replace(ledger.total, rows=Bicliques.from_pairs([row for row in rows if row != best]), k=K - 1)
        done = count_above(run, ledger.total, 60.0, lambda progress: None).done
        assert done > 0
        with pytest.raises(IncompleteError, match="the rows are not the largest"):
            count_above(run, less, 60.0, lambda progress: None)
        mine = CpuEngine.mine
        monkeypatch.setattr(  # as if the time was over just before the end
            CpuEngine,
            "mine",
            lambda engine, graph, work, *rest: replace(mine(engine, graph, work, *rest), unfinished=work),
        )
        assert count_above(run, ledger.total, 60.0, lambda progress: None).done < done
        with pytest.raises(IncompleteError, match="the rows are not the largest"):  # too many were found by then
            count_above(run, less, 60.0, lambda progress: None)
