"""Ids that pandas has turned into floats are refused, with the way out."""

import re
from decimal import Decimal
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.schemas.errors import InputError, UnknownIdError
from tests.support.commands import run
from tests.support.runs import QUIET, random_edges, write_edges


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ids")
    source = write_edges(folder / "g.parquet", random_edges(9, 9, 0.4, 1), strings=True)
    bq.mine(source, folder / "out", **QUIET)
    return folder / "out"


@pytest.fixture
def results(out):
    return bq.open_run(out)


LOST = (
    "a float has lost digits of it, as in pandas after a join that left gaps: before the join make the column id Int64"
)


def test_an_id_that_went_through_a_float_is_refused_with_the_way_out(results, out, capsys):
    groups = results.to_pandas(columns=["id", "n_left"]).head(1)
    whole = int(groups["id"][0])
    joined = pd.DataFrame({"key": [0, 1]}).merge(groups, how="left", left_on="key", right_index=True)
    lost = joined["id"][0]
    assert isinstance(lost, float), "what a left join does to ids"
    for ask in (results.members, results.explain, results.plot):
        for wrong in (lost, np.float32(lost), pa.scalar(lost), str(lost), f" {lost:.6E} ", "12.0", 7.0):
            with pytest.raises(InputError, match=re.escape(LOST)):
                ask(cast(int, wrong))
        with pytest.raises(UnknownIdError, match=re.escape(LOST)):
            ask(int(lost))
    for command in ("explain", "plot"):
        code, _, told = run(capsys, command, out, f"--id={lost}")
        assert (code, LOST in told, told.count("\n")) == (2, True, 1)
    for dtype in ("Int64", "int64[pyarrow]", "str"):
        kept = joined[["key"]].merge(groups.astype({"id": dtype}), how="left", left_on="key", right_index=True)["id"][0]
        assert results.members(kept).id == whole


@pytest.mark.parametrize("wrong", [float("nan"), pd.NA, None, "nan", "seven", "1_0", "9" * 20, Decimal(7), True])
def test_what_never_was_a_float_is_not_said_to_have_lost_digits(results, wrong):
    with pytest.raises(InputError, match="an id is a") as ended:
        results.members(wrong)
    assert "float" not in str(ended.value)
