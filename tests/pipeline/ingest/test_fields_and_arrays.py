"""A field of structs is refused with code that makes a column of it; arrays side by side are columns of edges."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bicliques.schemas.errors import InputError
from tests.support.inputs import read_edges

ORDERS = pa.table(
    {
        "order": [1, 2],
        "lines": [[{"sku": "tea", "n": 1}], [{"sku": "milk", "n": 2}, {"sku": "tea", "n": 2}]],
        "ship": [{"to": "oslo"}, {"to": "rome"}],
    }
)
BOUGHT = [(1, "tea"), (2, "milk"), (2, "tea")]
#: What somebody gives, and the names that the advised code has.
SOURCES: dict[str, Any] = {
    "pandas": ("frame", lambda: ORDERS.to_pandas()),
    "polars": ("frame", lambda: pl.DataFrame(ORDERS)),
    "lazy": ("frame", lambda: pl.DataFrame(ORDERS).lazy()),
    "arrow": ("table", lambda: ORDERS),
    "file": ("", None),
}


def _followed(sentence: str, names: dict[str, Any]) -> pd.DataFrame:
    """The frame that the advised code makes."""
    code = re.search(r"(frame = .*?)(?: if it has lists)?, then (frame\[.*\]) \(pandas\)", sentence)
    assert code is not None, sentence
    for line in code.groups():
        exec(line, names)
    return names["frame"]


@pytest.mark.parametrize("kind", SOURCES)
def test_the_code_for_a_field_of_structs_can_be_followed(kind: str, tmp_path: Path) -> None:
    name, make = SOURCES[kind]
    source: Any = make() if make is not None else tmp_path / "orders.parquet"
    if make is None:
        pq.write_table(ORDERS, source)
    for options, field, wanted in (
        ({}, "sku", BOUGHT),
        ({"left": "order", "right": "lines"}, "sku", BOUGHT),
        ({"left": "order", "right": "ship"}, "to", [(1, "oslo"), (2, "rome")]),
    ):
        with pytest.raises(
            InputError, match=r"column '(lines|ship)' has structs, and labels are integers or"
        ) as refused:
            read_edges(source, tmp_path / "no", **options)
        frame = _followed(str(refused.value), {"pandas": pd, "pyarrow": pa, name: source})
        assert read_edges(frame, tmp_path / "out", left="order", right=field)[0] == wanted


def test_a_path_to_a_field_says_how_to_make_a_column_of_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no column 'lines.sku'; .*; if 'lines' has fields, make a column of") as said:
        read_edges(ORDERS, tmp_path, left="order", right="lines.sku")
    frame = _followed(str(said.value), {"frame": ORDERS.to_pandas()})
    assert read_edges(frame, tmp_path / "out", left="order", right="sku")[0] == BOUGHT
    with pytest.raises(InputError, match=r"no column 'line\.sku'") as said:
        read_edges(ORDERS, tmp_path, left="order", right="line.sku")
    assert "fields" not in str(said.value)


def test_a_name_with_a_dot_is_a_name(tmp_path: Path) -> None:
    table = pa.table({"order": [1], "lines": ["x"], "lines.sku": ["tea"]})
    assert read_edges(table, tmp_path, left="order", right="lines.sku")[0] == [(1, "tea")]


@pytest.mark.parametrize("labels", [["x", "y", "x", "z"], [5, 6, 5, 7]])
def test_arrays_side_by_side_are_columns_of_edges(labels: list, tmp_path: Path) -> None:
    left, right = np.array([1, 2, 2, 1]), np.array(labels)
    assert read_edges((left, right), tmp_path)[0] == sorted(zip([1, 2, 2, 1], labels, strict=True))
    with_weights = read_edges((left, right, np.array([0.5, 2, 3, 0.5])), tmp_path / "weights", min_weight=1)
    assert with_weights[0] == sorted(zip([2, 2], labels[1:3], strict=True))
    assert read_edges((left[:1], right[:1]), tmp_path / "one")[0] == [(1, labels[0])]


def test_two_arrays_of_two_may_be_columns_or_edges(tmp_path: Path) -> None:
    arrays = np.array([1, 2]), np.array([3, 3])
    with pytest.raises(InputError, match="2 arrays of 2 may be columns or edges; give ") as refused:
        read_edges(arrays, tmp_path)
    columns, edges = re.findall(r"list\(.*?\)\)|list\(.*?\)(?= if each)", str(refused.value))
    assert read_edges(eval(columns, {"arrays": arrays}), tmp_path / "columns")[0] == [(1, 3), (2, 3)]
    assert read_edges(eval(edges, {"arrays": arrays}), tmp_path / "edges")[0] == [(1, 2), (3, 3)]


@pytest.mark.parametrize("arrays", [([1, 2, 3], [4, 5]), ([1, 2, 3],), ([[1, 2], [3, 4]], [[1, 2], [3, 4]])])
def test_arrays_that_are_no_columns_are_refused(arrays: tuple, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"at pair 1"):
        read_edges(tuple(map(np.array, arrays)), tmp_path)
