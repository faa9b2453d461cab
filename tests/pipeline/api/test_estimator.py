"""The estimator finds what the definition says, keeps scikit-learn's contract, and ends before memory does.

The tests import scikit-learn, and not the module, because every process imports all modules of tests.
"""

import pickle
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import bicliques as bq
from bicliques.schemas.errors import InputError
from tests.support.oracles import Pairs, cliques
from tests.support.runs import QUIET, ROOT, environment

TABLE = (np.random.default_rng(7).random((13, 9)) < 0.45).astype(np.int64)
FORMS = {
    "integers": lambda table: table,
    "booleans": lambda table: table.astype(bool),
    "floats": lambda table: table.astype(np.float32),
    "objects": lambda table: table.astype(object),
    "list": lambda table: table.tolist(),
    "columns first": np.asfortranarray,
    "csr": sp.csr_array,
    "csc matrix": sp.csc_matrix,
    "coo with zeros": lambda table: sp.coo_array((table.ravel(), np.indices(table.shape).reshape(2, -1)), table.shape),
    "frame": pd.DataFrame,
    "frame of booleans": lambda table: pd.DataFrame(table.astype(bool)),
}


def pairs(model) -> Pairs:
    found = {tuple(tuple(side.tolist()) for side in model.get_indices(k)) for k in range(len(model.rows_))}
    assert len(found) == len(model.rows_) == len(model.columns_), "none is there twice"
    return found


@pytest.mark.exhaustive
def test_it_is_an_estimator():
    """With a smallest weight, because these checks fit numbers of any size. None is expected to fail."""
    from sklearn.utils.estimator_checks import check_estimator

    estimator = bq.MaximalBicliques(min_weight=0.5, min_left=2, min_right=2, workers=0)
    checks = check_estimator(estimator, on_skip=None, on_fail=None)
    assert sum(check["status"] == "passed" for check in checks) >= 40
    wrong = [f"{check['check_name']}: {check['exception']!r}" for check in checks if check["status"] == "failed"]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_gives_the_bicliques_of_the_definition(form):
    model = bq.MaximalBicliques(workers=0).fit(FORMS[form](TABLE))
    assert pairs(model) == cliques(np.argwhere(TABLE))
    assert model.complete_
    assert (model.rows_.dtype, model.columns_.dtype) == (np.bool_, np.bool_)
    assert (model.rows_.shape[1], model.columns_.shape[1]) == TABLE.shape == (len(TABLE), model.n_features_in_)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_rows_are_in_the_biclusters_of_whose_columns_they_have_all(form):
    model = bq.MaximalBicliques(min_left=2, workers=0).fit(TABLE)
    other = (np.random.default_rng(1).random((30, 9)) < 0.7).astype(np.int64)
    expected = [[bool(row[columns].all()) for columns in model.columns_] for row in other]
    assert model.transform(form(other)).tolist() == expected
    assert 0 < np.mean(expected) < 1
    assert (model.transform(TABLE) == model.rows_.T).all(), "a maximal biclique has all rows that it can have"
    assert len(model.get_feature_names_out()) == len(model.rows_)
    with pytest.raises(InputError, match="min_weight"):
        model.transform(other * 3)
    weighed = bq.MaximalBicliques(min_left=2, min_weight=3, workers=0).fit(TABLE * 3)
    assert (weighed.transform(other * 3) == model.transform(other)).all()
    assert not weighed.transform(other * 2).any()


def test_the_label_of_a_row_is_its_best_bicluster():
    table = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]])
    assert bq.MaximalBicliques(workers=0).fit(table).labels_.tolist() == [0, 0, -1, 1]
    assert bq.MaximalBicliques(min_left=3, workers=0).fit(table).labels_.tolist() == [-1] * 4


@pytest.mark.parametrize("seed", range(5))
def test_thresholds_and_empty_rows_leave_numbers_of_rows_as_they_are(seed):
    table = np.random.default_rng(seed).random((14, 12)) < 0.4
    table[[0, 5]] = table[:, [3, 11]] = False
    every = cliques(np.argwhere(table))
    found = pairs(bq.MaximalBicliques(min_left=3, min_right=2, max_left=5, workers=0).fit(table))
    assert found == {(left, right) for left, right in every if 3 <= len(left) <= 5 and len(right) >= 2}
    for left, right in found:
        assert table[np.ix_(left, right)].all()


@pytest.mark.parametrize("by", ["edges", "vertices", "balance", "left", "right"])
def test_the_best_come_first_and_top_takes_these(by, tmp_path):
    every = bq.MaximalBicliques(by=by, workers=0).fit(TABLE)
    source = [tuple(edge) for edge in np.argwhere(TABLE).tolist()]
    results = bq.mine(source, tmp_path / "out", **QUIET)
    rows = results.top(len(results), by=by).to_pylist()
    listed = [every.get_indices(k) for k in range(len(rows))]
    assert [(left.tolist(), right.tolist()) for left, right in listed] == [(row["left"], row["right"]) for row in rows]
    best = bq.MaximalBicliques(by=by, top=4, workers=0).fit(TABLE)
    assert np.array_equal(best.rows_, every.rows_[:4])
    assert np.array_equal(best.columns_, every.columns_[:4])


def test_shapes_and_parts_of_the_table_are_those_of_a_bicluster_of_ones():
    model = bq.MaximalBicliques(min_left=2, min_right=2, workers=0).fit(TABLE)
    assert len(model.rows_) > 5
    for k in range(len(model.rows_)):
        shape = model.get_shape(k)
        part = model.get_submatrix(k, TABLE)
        assert part.shape == shape == (model.rows_[k].sum(), model.columns_[k].sum())
        assert part.all()
    assert model.biclusters_[0] is model.rows_
    assert model.biclusters_[1] is model.columns_


def test_planted_bicliques_are_found():
    from sklearn.metrics import consensus_score

    table, rows, columns = np.zeros((60, 40), bool), np.zeros((4, 60), bool), np.zeros((4, 40), bool)
    for k in range(4):
        rows[k, 12 * k : 12 * k + 9 + k] = columns[k, 9 * k : 9 * k + 6] = True
        table |= np.outer(rows[k], columns[k])
    model = bq.MaximalBicliques(workers=0).fit(table)
    assert consensus_score(model.biclusters_, (rows, columns)) == 1.0
    noisy = table | (np.random.default_rng(1).random(table.shape) < 0.05)
    assert consensus_score(bq.MaximalBicliques(top=4, workers=0).fit(noisy).biclusters_, (rows, columns)) > 0.8


def test_it_can_be_cloned_pickled_set_and_put_behind_a_step():
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Binarizer

    model = bq.MaximalBicliques(min_left=2, top=3, by="balance", workers=0).fit(TABLE)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.rows_, model.rows_)
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "rows_")
    assert len(fresh.set_params(top=1).fit(TABLE).rows_) == 1
    line = make_pipeline(Binarizer(threshold=0.5), bq.MaximalBicliques(workers=0)).fit(TABLE * 3.5)
    assert pairs(line[-1]) == cliques(np.argwhere(TABLE))


def test_names_of_columns_are_kept():
    model = bq.MaximalBicliques(workers=0).fit(pd.DataFrame(TABLE, columns=list("abcdefghi")))
    assert model.feature_names_in_.tolist() == list("abcdefghi")
    names = model.feature_names_in_[model.get_indices(0)[1]]
    assert names.tolist() == ["abcdefghi"[k] for k in np.flatnonzero(model.columns_[0])]


def test_a_table_without_ones_has_no_biclusters():
    for table in (np.zeros((3, 4)), sp.csr_array((3, 4))):
        model = bq.MaximalBicliques().fit(table)
        assert (model.rows_.shape, model.columns_.shape, model.complete_) == ((0, 3), (0, 4), True)
    stored = sp.csr_array((np.zeros(2), ([0, 1], [1, 2])), (3, 4))
    assert bq.MaximalBicliques(min_weight=-1).fit(stored).rows_.shape == (0, 3)
    assert bq.MaximalBicliques(min_weight=9).fit(TABLE).rows_.shape == (0, 13)
    assert bq.MaximalBicliques(min_left=13, workers=0).fit(TABLE).rows_.shape == (0, 13)


def test_numbers_count_from_the_smallest_weight_on():
    ratings = TABLE * np.arange(1, 10)
    for form in (np.asarray, sp.csr_array):
        model = bq.MaximalBicliques(min_weight=4, workers=0).fit(form(ratings))
        assert pairs(model) == cliques(np.argwhere(ratings >= 4))
    negative = bq.MaximalBicliques(min_weight=-2, workers=0).fit(TABLE)
    assert pairs(negative) == cliques(np.argwhere(TABLE)), "an entry of 0 is no edge"
    with pytest.raises(InputError, match=r"has the entry 4, but entries are 0 and 1.* with min_weight$"):
        bq.MaximalBicliques().fit(ratings)
    twice = sp.coo_array((np.ones(2), ([0, 0], [1, 1])), (2, 2))
    with pytest.raises(InputError, match=r"has the entry 2.0"):
        bq.MaximalBicliques().fit(twice)


def test_a_limit_ends_the_search_and_is_told():
    model = bq.MaximalBicliques(max_results=5, workers=0).fit(TABLE)
    assert (len(model.rows_), model.complete_) == (5, False)
    assert pairs(model) < cliques(np.argwhere(TABLE))


def test_masks_that_do_not_fit_are_refused_before_all_bicliques_are_found():
    """This table has 2**60 - 2 bicliques, so the search has to end by itself."""
    table = ~np.eye(60, dtype=bool)
    sentence = re.escape(
        "of more than 100 bicliques of a table of 60 rows and 60 columns take more than 12.0 kB; raise"
    )
    with pytest.raises(InputError, match=sentence):
        bq.MaximalBicliques(max_bytes=12_000, workers=0).fit(table)
    with pytest.raises(InputError, match=sentence):
        bq.MaximalBicliques(max_bytes=12_000, max_results=101, workers=0).fit(table)
    assert len(bq.MaximalBicliques(max_bytes=12_000, max_results=100, workers=0).fit(table).rows_) == 100
    n = len(bq.MaximalBicliques(workers=0).fit(TABLE).rows_)
    exactly = n * sum(TABLE.shape)
    assert len(bq.MaximalBicliques(max_bytes=exactly, workers=0).fit(TABLE).rows_) == n
    for wish in ({}, {"top": 1000}):
        with pytest.raises(InputError, match=f"of more than {n - 1} bicliques"):
            bq.MaximalBicliques(max_bytes=exactly - 1, workers=0, **wish).fit(TABLE)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"min_left": 0}, "min_left must be at least 1"),
        ({"by": "size"}, "not by 'size'"),
        ({"top": 2, "max_results": 2}, "leave max_results or top out"),
        ({"max_bytes": 0}, "max_bytes must be a whole number of at least 1"),
        ({"max_bytes": np.int64(3)}, "take more than 3 B;"),
        ({"workers": -1}, "workers must be 0 or more"),
        ({"min_weight": "4"}, "min_weight must be a number"),
        ({"engine": "gpu"}, "gpu"),
    ],
)
def test_a_wrong_parameter_is_refused_when_it_is_used(wrong, sentence):
    with pytest.raises(InputError, match=sentence) as ended:
        bq.MaximalBicliques(**wrong).fit(TABLE)
    assert "--" not in str(ended.value)


def test_masks_are_filled_in_pieces(monkeypatch):
    from bicliques.pipeline.api import estimator
    from bicliques.pipeline.rows import tabular

    monkeypatch.setattr(estimator, "_MEMBERS", 40)
    monkeypatch.setitem(tabular.FEW_AT_A_TIME, "batch_size", 7)
    assert pairs(bq.MaximalBicliques(workers=0).fit(TABLE)) == cliques(np.argwhere(TABLE))


def test_scikit_learn_is_imported_when_the_estimator_is_asked_for():
    program = (
        "import sys, bicliques as bq; from bicliques import *; assert 'MaximalBicliques' in dir(bq)\n"
        "print('sklearn' in sys.modules, bq.MaximalBicliques.__name__, 'sklearn' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "MaximalBicliques", "True"]
    assert bq.MaximalBicliques is bq.MaximalBicliques


def test_the_programs_of_the_document_run(monkeypatch, capsys):
    text = (ROOT / "docs" / "scikit-learn.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(programs) == 2
    monkeypatch.chdir(ROOT)
    for program in programs:
        exec(program, {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"# prints (.*)$", text, flags=re.MULTILINE)
