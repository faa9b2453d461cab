"""Results go to other processes, as tasks of Dask and joblib send them: by the place of their run, without rows."""

import copy
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.results.results import Results, open_results
from bicliques.schemas.errors import IncompleteError, InputError
from tests.support.runs import QUIET, environment, random_edges, write_edges
from tests.support.stored import machines_with_a_bucket, source_in

EDGES = random_edges(20, 14, 0.4, 2)
IN_ANOTHER_PROCESS = """
import pickle, sys
found = pickle.load(sys.stdin.buffer)
print(repr(found), len(list(found)), found.top(1)["id"][0].as_py(), sep="\\n")
"""


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Opened by a path that another process has not."""
    monkeypatch.chdir(tmp_path)
    write_edges(tmp_path / "g.parquet", EDGES, strings=True)
    return bq.mine("g.parquet", "out", **QUIET)


def test_another_process_opens_the_run(results, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    command, data = [sys.executable, "-c", IN_ANOTHER_PROCESS], pickle.dumps(results)
    ended = subprocess.run(command, input=data, capture_output=True, check=True, cwd="elsewhere", env=environment())
    shown, count, best = ended.stdout.decode().splitlines()
    assert shown == f"<{len(results):,} maximal bicliques in {tmp_path / 'out'}, complete>"
    assert (int(count), int(best)) == (len(results), results.top(1)["id"][0].as_py())
    assert len(data) < 1000, "no rows"


def test_what_is_loaded_speaks_the_words_of_its_package(results):
    opened = bq.open_run("out")
    for again in (pickle.loads(pickle.dumps(opened)), copy.copy(opened), copy.deepcopy(opened)):
        assert isinstance(again, Results)
        assert list(again) == list(results)
        twice = pickle.loads(pickle.dumps(again))
        assert type(twice) is type(again) is type(opened)
    plain = open_results(Path("out"))
    assert type(pickle.loads(pickle.dumps(plain))) is Results


def test_a_run_that_is_not_complete_is_loaded_as_it_is_then(results):
    begun = bq.mine("g.parquet", "begun", max_results=5, **QUIET)
    data = pickle.dumps(begun)
    assert (len(pickle.loads(data)), pickle.loads(data).complete) == (5, False)
    bq.resume("begun", max_results=None, **QUIET)
    assert (len(pickle.loads(data)), pickle.loads(data).complete) == (len(results), True)
    assert len(begun) == 5


def test_another_run_in_the_place_is_not_taken_for_it(results, tmp_path):
    data = pickle.dumps(results)
    shutil.rmtree("out")
    with pytest.raises(InputError, match=f"^{tmp_path / 'out'} is not the folder of a run"):
        pickle.loads(data)
    bq.mine("g.parquet", "out", **QUIET)
    with pytest.raises(InputError, match="out holds another run now than when its results were pickled; open it with"):
        pickle.loads(data)


def test_results_of_a_run_that_was_begun_anew_say_so(results):
    bq.mine("g.parquet", "out", min_left=2, overwrite=True, **QUIET)
    with pytest.raises(
        IncompleteError, match=r"\(it is missing\); another run was made in its folder, so open that again"
    ):
        results.head()
    (file, *_) = bq.open_run("out").files
    again = bq.open_run("out")
    file.unlink()
    with pytest.raises(IncompleteError, match=r"\(it is missing\); mend it with: bicliques.resume"):
        again.head()


def test_a_run_in_a_store_is_opened_at_its_address(tmp_path, monkeypatch):
    with machines_with_a_bucket(tmp_path, monkeypatch) as machines:
        results = bq.mine(source_in(tmp_path), machines.url, **QUIET)
        data, rows = pickle.dumps(results), list(results)
        machines.change()
        assert list(pickle.loads(data)) == rows


def test_rows_explanations_and_comparisons_are_pickled_too(results, monkeypatch):
    row = results[0]
    for again in (pickle.loads(pickle.dumps(row)), copy.copy(row), copy.deepcopy(row)):
        assert (again, again.id) == (row, row.id)
    explained = results.explain(row.id)
    assert pickle.loads(pickle.dumps(explained)).to_json() == explained.to_json()
    write_edges(Path("h.parquet"), EDGES[:-4], strings=True)
    bq.mine("h.parquet", "less", **QUIET)
    found = bq.diff("out", "less", output="changes")
    data, gone = pickle.dumps((found, found.gone)), list(found.gone)
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    difference, changed = pickle.loads(data)
    assert list(difference.gone) == list(changed) == gone
