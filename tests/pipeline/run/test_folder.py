"""The folder of a run. It is made whole or not at all, one driver holds it, and steps run alone or together."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.kernels import engines
from bicliques.kernels.compiled.jit import code_folder
from bicliques.kernels.graph.prepare import prepare
from bicliques.pipeline.api import steps
from bicliques.pipeline.run.files import disk_errors, read_json, write_json
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.new_run import new_run
from bicliques.pipeline.run.progress import Progress, line, size, to_callback
from bicliques.pipeline.run.session import sessions
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import IncompleteError, InputError, ResourceError
from bicliques.schemas.jobs import AllMaximal
from bicliques.schemas.manifest import PLAN, LedgerEntry, Manifest, Part, SliceResult
from bicliques.schemas.options import BuildOptions, IngestOptions, RunLimits, RunOptions
from bicliques.schemas.search import Search
from bicliques.schemas.stats import EngineStats, SliceStats
from bicliques.schemas.totals import Found
from bicliques.schemas.work import Subtrees
from tests.support.engines import registered, unable
from tests.support.runs import answer, ledger_entry, manifest_pair, random_edges, rewrite_record, write_edges

EDGES = random_edges(40, 30, 0.3, 4)
OPTIONS = RunOptions(
    source="x.csv",
    search=Search("fingerprint", min_left=2, min_right=3, max_left=None, max_right=9),
    build=BuildOptions(root_side="left", order="id"),
    ingest=IngestOptions(format="csv", left=0, right=1),
    engine="reference",
    ids="dense",
)


def test_options_survive_the_folder(tmp_path: Path) -> None:
    with new_run(tmp_path / "out") as new:
        folder = new.folder
        folder.write_options(OPTIONS, RunLimits(max_results=7, time_limit_s=1.5))
    first = folder.origin()
    assert folder.options() == OPTIONS
    assert folder.limits() == RunLimits(max_results=7, time_limit_s=1.5)
    folder.write_options(OPTIONS, RunLimits(), "another", "2026-01-31")
    assert folder.origin() == first
    assert folder.limits() == RunLimits()


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("2026-10-01", "2026-10-01"),
        ("day=2026-10-01.again", "2026-10-01"),
        ("2026-99-99", None),
        ("2026-10-01_2026-10-02", None),
        ("12026-10-01", None),
        ("out", None),
    ],
)
def test_a_run_stands_for_the_day_in_the_name_of_its_folder(tmp_path: Path, name: str, day: str | None) -> None:
    with new_run(tmp_path / name) as new:
        folder = new.folder
        folder.write_options(OPTIONS, RunLimits(), "nightly.csv")
    origin = folder.origin()
    assert (origin.series, origin.date) == ("nightly.csv", day)
    moved = (tmp_path / name).rename(tmp_path / "moved")
    assert RunFolder(moved).origin() == origin
    assert origin.moment.startswith(day or origin.created[:10])


@pytest.mark.parametrize("limits", [(1.5, None), (True, None), (0, None), (2**63, None), (None, "9"), (None, -1.0)])
def test_odd_limits_are_refused(limits: tuple[Any, Any]) -> None:
    """A budget of 1.5 rows would never be used up."""
    with pytest.raises(InputError, match=r"max_results must be|time_limit must be"):
        RunLimits(max_results=limits[0], time_limit_s=limits[1])


def test_a_run_that_fails_to_begin_leaves_nothing(tmp_path: Path) -> None:
    def begin() -> None:
        with new_run(tmp_path / "a" / "out") as new:
            folder = new.folder
            folder.write_options(OPTIONS, RunLimits())
            (folder.path / "edges").mkdir()
            (folder.path / "edges" / "edges.parquet").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("mine")
    with pytest.raises(InputError, match="not empty"), new_run(tmp_path):
        raise AssertionError("it was taken")
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


def test_a_second_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with new_run(tmp_path / "out") as new:
        folder = new.folder
        with pytest.raises(InputError, match="is being worked on by process"), new_run(tmp_path / "out"):
            raise AssertionError("both have it")
        folder.write_options(OPTIONS, RunLimits())
    assert folder.options() == OPTIONS


@pytest.mark.parametrize(("most", "state"), [(None, "complete"), (5, "unfinished")])
def test_a_folder_with_a_run_says_of_which_input(tmp_path: Path, most: int | None, state: str) -> None:
    source, out = write_edges(tmp_path / "g.parquet", random_edges(12, 9, 0.4, 1)), tmp_path / "out"
    bq.mine(source, out, workers=0, progress=False, report=False, max_results=most)
    with pytest.raises(InputError) as refused, new_run(out):
        raise AssertionError("it was taken")
    remedy = "" if most is None else f", or continue the run in it with: bicliques.resume({str(out)!r})"
    assert str(refused.value) == (
        f"the output folder {out} is not empty: it holds the {state} run of {source}; name another one{remedy}"
    )


@pytest.mark.parametrize("ask", [bq.verify, lambda out: bq.open_run(out).manifest])
def test_a_run_that_a_limit_ended_is_continued_beyond_it(tmp_path: Path, ask: Callable[[Path], Any]) -> None:
    source, out = write_edges(tmp_path / "g.parquet", random_edges(12, 9, 0.4, 1)), tmp_path / "out"
    bq.mine(source, out, workers=0, progress=False, report=False, max_results=5)
    with pytest.raises(IncompleteError, match=r"bicliques\.resume\(\S+, max_results=None\)$|resume it without its"):
        ask(out)


def test_a_folder_that_another_process_makes_first_is_left_alone(tmp_path, monkeypatch):
    def make(folder: Path, *args: Any, **kwargs: Any) -> None:
        os.mkdir(folder)  # noqa: PTH102
        (folder / "options.json").write_text("theirs")

    monkeypatch.setattr(Path, "mkdir", make)
    with pytest.raises(InputError, match="is not empty; name another one, or continue"), new_run(tmp_path / "out"):
        raise AssertionError("it was taken")
    assert (tmp_path / "out" / "options.json").read_text() == "theirs"


@pytest.mark.parametrize(("number", "remedy"), [(errno.EDQUOT, "make room"), (errno.EACCES, "see that it can be")])
def test_a_disk_error_has_its_own_remedy(tmp_path: Path, number: int, remedy: str) -> None:
    reason = os.strerror(number)
    with pytest.raises(ResourceError, match=rf"\({reason}\); {remedy}"), disk_errors(tmp_path):
        raise OSError(number, reason)


def test_json_files_are_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_json(tmp_path / "x.json", {"a": 1})

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResourceError, match=r"cannot write .*x\.json \(No space left on device\); make room"):
        write_json(tmp_path / "x.json", {"a": 2})
    assert read_json(tmp_path / "x.json") == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_steps_can_be_called_one_by_one(tmp_path: Path) -> None:
    source, out = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "out"
    steps.start(source, out, RunOptions(source=str(source)), RunLimits(), False)
    assert steps.ingest(out, False)["n_edges"] == len(EDGES)
    with pytest.raises(IncompleteError, match=r"step build of .* is not done"):
        steps.mine(out, WorkerOptions(workers=0), progress=False)
    first = steps.build(out, False)
    assert steps.build(out, False) == first, "a step that is done is not done again"
    assert steps.plan(out, False)["n_roots"] > 0
    assert steps.mine(out, WorkerOptions(workers=0), progress=False).outcome == "complete"
    assert steps.prove(out, progress=False).count == answer(EDGES)[0]
    assert manifest_pair(out) == answer(EDGES)
    assert steps.run(out, WorkerOptions(workers=0), RunLimits(), False) is None
    again = steps.mine(out, WorkerOptions(workers=0), progress=False)
    assert (again.outcome, again.count) == ("complete", answer(EDGES)[0])
    assert len(sessions(RunFolder(out))) == 1, "a proven run is not mined again"


def test_resume_uses_the_limits_of_the_last_time(tmp_path: Path) -> None:
    source, out = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "out"
    bq.mine(source, out, max_results=5, workers=0, progress=False, report=False)
    bq.resume(out, max_results=9, workers=0, progress=False, report=False)
    assert RunFolder(out).limits() == RunLimits(max_results=9)
    assert len(bq.resume(out, workers=0, progress=False, report=False)) == 9


def test_a_run_of_another_schema_version_is_not_touched(tmp_path: Path) -> None:
    source, out = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "out"
    bq.mine(source, out, max_results=5, workers=0, progress=False, report=False)
    rewrite_record(out / "options.json", schema_version=9, version="7.0.1")
    with pytest.raises(
        InputError, match=r"schema version 9, .* reads versions 2 and 3; use version 7\.0\.1 of the package$"
    ):
        bq.resume(out)
    rewrite_record(out / "options.json", schema_version=1, version="0.1.0")
    for call in (bq.resume, bq.open_run, bq.verify):
        with pytest.raises(
            InputError, match=r"schema version 1, .* mine again .* or read the Parquet files in .*bicli"
        ):
            call(out)


def test_an_object_in_memory_cannot_be_read_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    table = pa.table({"left": EDGES[:, 0], "right": EDGES[:, 1]})
    bq.mine(table, out, workers=0, max_results=1, progress=False, report=False)
    (out / "steps" / "ingest.json").unlink()
    with pytest.raises(InputError, match="start the run anew"):
        steps.ingest(out, False)


def test_a_ledger_entry_survives_json() -> None:
    left_over = Subtrees.of_roots(np.array([3, 1]))
    listing, counting = AllMaximal(Search()), AllMaximal(Search("count"))
    report = SliceResult(
        slice=4,
        attempt=1,
        parts=(Part("part-000004-0123456789ab-0.parquet", 10, 99),),
        total=Found(10, 2**64 - 1),
        n_left_over=2,
        began=1.7e9,
        seconds=1.5,
        worker="h:1",
        stats=SliceStats(EngineStats(seconds=1.0, counters={"tests": 5}), joules=2.5),
        timed=((7, 0.5),),
    )
    entry = LedgerEntry(report, ((PLAN, 0, 2), (3, 5, 9)), 2.5)
    again, packed = LedgerEntry.from_json(json.loads(json.dumps(entry.to_json(left_over.to_bytes()))), listing)
    assert again == entry
    assert Subtrees.from_bytes(packed).path.tolist() == [3, 1]
    nothing = ledger_entry(0)
    assert LedgerEntry.from_json(json.loads(json.dumps(nothing.to_json(b""))), counting)[0] == nothing


def test_a_manifest_survives_json(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "g.parquet", EDGES)
    manifest = bq.mine(source, tmp_path / "out", workers=0, progress=False, report=False).manifest
    assert Manifest.from_json(json.loads(json.dumps(manifest.to_json()))) == manifest
    with pytest.raises(IncompleteError, match="it is damaged"):
        Manifest.from_json({"count": 3})
    with pytest.raises(InputError, match="is not the folder of a run"):
        RunFolder(tmp_path).options()


def test_engines_are_chosen_by_name_and_say_why() -> None:
    with registered(unable("bitmatrix", "it rains")):
        assert engines.choose("auto") == ("cpu", "the fastest that can run here; bitmatrix cannot: it rains", True)
        assert engines.choose("reference") == ("reference", "asked for", False)
        with pytest.raises(InputError, match="there is no engine 'gpu'; choose one of auto, bitmatrix, cpu"):
            engines.choose("gpu")
        with pytest.raises(
            ResourceError, match=r"^engine bitmatrix cannot run here: it rains; choose another one, or auto$"
        ):
            engines.choose("bitmatrix")
        none = r"no engine can run here: bitmatrix .* rains; cpu cannot: the sun shines"
        with registered(unable("cpu", "the sun shines")), pytest.raises(ResourceError, match=none):
            engines.choose("auto")
    with registered(unable("bitmatrix", None)):
        assert engines.choose("auto") == ("bitmatrix", "the fastest that can run here", False)


def test_an_engine_is_there_until_the_end_of_the_block() -> None:
    before = engines.kinds()
    with registered(unable("another", None)), registered(unable("cpu", "it rains")):
        assert [kind.name for kind in engines.kinds()] == [*(kind.name for kind in before), "another"]
        assert engines.kind("cpu").why_not() == "it rains"
        assert engines.choose("another").reason == "asked for"
    assert engines.kinds() == before
    with pytest.raises(InputError, match="there is no engine 'another'"):
        engines.kind("another")


def test_the_fallback_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bicliques.pipeline.api.choices.has_gpu", lambda: True)
    source = write_edges(tmp_path / "g.parquet", random_edges(10, 8, 0.4, 1))
    notes: list[str] = []
    with registered(unable("bitmatrix", "it rains")):
        bq.count(source, workers=0, progress=lambda moment: notes.append(moment.note))
    assert [note for note in notes if note] == ["engine cpu: the fastest that can run here; bitmatrix cannot: it rains"]


def test_every_engine_that_runs_on_a_gpu_says_what_it_needs_of_main_memory() -> None:
    graph, _ = prepare(*random_edges(10, 8, 0.4, 1).T, 10, 8, BuildOptions())
    for kind in engines.kinds():
        needs = {mode: kind.workspace_bytes(graph, Search(mode=mode)) for mode in ("count", "list")}
        assert 0 < needs["count"] <= needs["list"], kind.name


def test_compiling_is_announced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for search in (Search(), Search(min_right=3)):
        engines.compile_engine("cpu", search)
        assert not engines.kind("cpu").will_compile(search)
        assert not engines.kind("reference").will_compile(search)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    code_folder().mkdir()
    assert engines.kind("cpu").will_compile(Search())
    (code_folder() / "bicliques.kernels.cpu.explore.explore-i8-n.o").touch()
    assert not engines.kind("cpu").will_compile(Search())
    assert engines.kind("cpu").will_compile(Search(min_right=3))
    (code_folder() / "bicliques.kernels.cpu.explore.explore_with_thresholds-i8-n.o").touch()
    assert not engines.kind("cpu").will_compile(Search(min_right=3))


class Terminal:
    def __init__(self, is_terminal: bool):
        self.is_terminal, self.text = is_terminal, ""

    def isatty(self) -> bool:
        return self.is_terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def test_progress_is_a_bar_on_a_terminal_and_a_few_lines_elsewhere() -> None:
    for is_terminal in (True, False):
        stream = Terminal(is_terminal)
        report = to_callback(None if is_terminal else True, stream)  # type: ignore[arg-type]
        for k in range(1001):
            report(Progress("mine", k / 1000, 5 * k, 3.0, 2_500_000, 2, "2 local workers", 1.0))
        assert ("\r" in stream.text) == is_terminal
        assert ("####" in stream.text) == is_terminal
        assert stream.text.count("mining") < 10, "throttled"
        assert stream.text.endswith("100.0 % of the work  5,000 bicliques  3/s  2.5 MB  2 local workers\n")
    silent = Terminal(False)
    to_callback(None, silent)(Progress("mine"))  # type: ignore[arg-type]
    to_callback(False, silent)(Progress("mine"))  # type: ignore[arg-type]
    assert silent.text == ""
    assert line(Progress("ingest")).strip() == "reading"
    assert [size(n) for n in (999, 1_500, 2.5e9, 3e13)] == ["999 B", "1.5 kB", "2.5 GB", "30.0 TB"]
