"""`maximal_bicliques` gives what `mine` lists, keeps nothing, and says at once what is wrong."""

import gc
import inspect

import numpy as np
import pytest

import bicliques as bq
from bicliques.pipeline.api.iterating import _NOT_TAKEN
from bicliques.pipeline.api.table import entries_of
from bicliques.schemas.errors import InputError
from tests.support.runs import QUIET, random_edges

EDGES = random_edges(15, 12, 0.4, 1)


def pairs(found) -> set[tuple[frozenset[int], frozenset[int]]]:
    return {(frozenset(left), frozenset(right)) for left, right in found}


def test_they_are_those_that_mine_lists(source, tmp_path):
    found = list(bq.maximal_bicliques(source, folder=tmp_path, workers=0))
    assert len(found) == len(pairs(found)) > 50
    listed = bq.mine(source, tmp_path / "run", **QUIET)
    assert pairs(found) == pairs(listed)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.parquet", "run"]


@pytest.mark.parametrize("names", [np.arange(40) + 7, np.array([f"v{k}" for k in range(40)])], ids=["integers", "text"])
def test_arrays_in_give_the_same_as_arrays_out(names, tmp_path):
    left, right = names[EDGES[:, 0]], names[EDGES[:, 1]]
    found = bq.arrays(left, right, min_left=2, folder=tmp_path, workers=0)
    members = [
        [part.tolist() for part in np.split(values, starts[1:-1])]
        for starts, values in ((found.left_indptr, found.left), (found.right_indptr, found.right))
    ]
    assert found.left_indptr.dtype == found.right_indptr.dtype == np.int64
    assert pairs(zip(*members, strict=True)) == pairs(bq.maximal_bicliques((left, right), min_left=2, workers=0))
    assert len(members[0]) > 50
    assert list(tmp_path.iterdir()) == []


def test_arrays_of_which_none_is_large_enough_are_empty():
    found = bq.arrays([1, 2], [3, 4], min_left=2, workers=0)
    assert [each.tolist() for each in found] == [[0], [], [0], []]


@pytest.mark.parametrize("ends", [([1, 2], [3]), (5, [3]), ([[1]], [[2]])])
def test_arrays_that_are_no_ends_of_edges_are_refused(ends):
    with pytest.raises(InputError, match="of one dimension and one length, not of the shapes"):
        bq.arrays(*ends)
    with pytest.raises(TypeError, match="min_lft"):
        bq.arrays([1], [2], min_lft=2)


def test_thresholds_and_objects_in_memory_are_taken(tmp_path):
    edges = [(f"l{left}", right) for left, right in EDGES.tolist()]
    found = pairs(bq.maximal_bicliques(edges, min_left=3, min_right=2, folder=tmp_path, workers=0))
    every = pairs(bq.maximal_bicliques(edges, folder=tmp_path, workers=0))
    assert found == {(left, right) for left, right in every if len(left) >= 3 and len(right) >= 2}
    assert 0 < len(found) < len(every)
    assert len(list(bq.maximal_bicliques(edges, max_results=4, folder=tmp_path, workers=0))) == 4


@pytest.mark.parametrize("end", ["close", "forget", "exception"])
def test_the_folder_goes_however_the_iteration_ends(source, tmp_path, end):
    place = tmp_path / "place"
    place.mkdir()
    rows = bq.maximal_bicliques(source, folder=place, workers=0)
    assert list(place.iterdir()) == [], "mining begins when the first one is asked for"
    next(rows)
    assert len(list(place.iterdir())) == 1
    if end == "close":
        rows.close()
    elif end == "exception":
        with pytest.raises(RuntimeError):
            rows.throw(RuntimeError("from the loop"))
    del rows
    gc.collect()
    assert list(place.iterdir()) == []


def test_wrong_options_are_refused_at_once(source):
    with pytest.raises(InputError, match="min_left must be at least 1, not 0"):
        bq.maximal_bicliques(source, min_left=0)
    with pytest.raises(InputError, match="there is no engine 'quick'; choose one of auto"):
        bq.maximal_bicliques(source, engine="quick")
    with pytest.raises(InputError, match="progress must be True, False, None or a function, not 'loud'"):
        bq.maximal_bicliques(source, progress="loud")
    for name in ("min_lfet", *_NOT_TAKEN):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            bq.maximal_bicliques(source, **{name: 1})
    with pytest.raises(InputError, match="does not exist"):
        next(bq.maximal_bicliques("nothing.csv"))


def test_nothing_is_shown_unless_it_is_asked_for(source, capsys):
    list(bq.maximal_bicliques(source, workers=0))
    assert capsys.readouterr().err == ""
    list(bq.maximal_bicliques(source, workers=0, progress=True))
    assert "mining" in capsys.readouterr().err


def test_ctrl_c_is_one_and_leaves_nothing(source, tmp_path, monkeypatch):
    from bicliques.pipeline.api import steps

    complete = steps.complete_run

    def pressed(*given):
        session = complete(*given)
        object.__setattr__(session, "ctrl_c", True)
        return session

    monkeypatch.setattr(steps, "complete_run", pressed)
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(KeyboardInterrupt):
        next(bq.maximal_bicliques(source, folder=place, workers=0))
    assert list(place.iterdir()) == []


def test_what_is_not_taken_is_an_option_of_mine():
    assert {entry.name for entry in entries_of("mine")} >= _NOT_TAKEN
    assert inspect.isgeneratorfunction(bq.maximal_bicliques) is False
