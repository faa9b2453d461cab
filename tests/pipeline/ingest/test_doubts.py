"""Text labels that look like lists or like floating-point numbers are read as they are, and doubted in a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pipeline.ingest import doubts
from schemas.errors import InputError
from tests.support.inputs import read_edges


def test_lists_in_text_are_doubted(tmp_path: Path) -> None:
    """As pandas writes them to CSV, and Dask makes of them."""
    frame = pd.DataFrame({"user": ["ann", "bob"], "item": [["x", "y"], ["x"]]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    (note,) = read_edges(tmp_path / "x.csv", tmp_path)[1].notes
    assert note == (
        """the item labels look like lists, such as "['x', 'y']", and each is taken as one label; give a row per """
        "member, or a column of lists in Parquet or Arrow"
    )
    assert doubts.form_doubt(pa.array(["[x]", "(a)\n(b)"], pa.large_string()), "left") is not None
    assert doubts.form_doubt(pa.array(["[x]", "y"], pa.large_string()), "left") is None
    assert read_edges(frame, tmp_path)[1].notes == ()


def test_floating_point_numbers_in_text_are_doubted(tmp_path: Path) -> None:
    """In a column that has a type they are refused."""
    (tmp_path / "x.csv").write_text("user,item\n1.0,7.5\n2.0,9\n")
    (note,) = read_edges(tmp_path / "x.csv", tmp_path)[1].notes
    assert (
        note
        == "the user labels look like floating-point numbers, such as '1.0', and are taken as text, digit for digit"
    )
    with pytest.raises(InputError, match="the left column is double, but labels are integers or strings; cast it"):
        read_edges(pd.DataFrame({"user": [1.0, 2.0], "item": np.arange(2)}), tmp_path)
