"""Known counts and fingerprints of real graphs.

The counts were given by at least two independent published programs each; the fingerprints by this
project's engines from both root sides. One graph ships with the project; the others are read from
``$BICLIQUES_DATA`` (default: ``../shared/data``) as ``NAME.parquet`` with columns u and v, when there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kernels.cpu.engine import CpuEngine
from kernels.graph.prepare import prepare
from schemas.options import BuildOptions
from schemas.work import Search
from tests.oracles import run

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "examples", Path(os.environ.get("BICLIQUES_DATA", ROOT.parent / "shared" / "data")))
GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())
SHIPPED = {"debian12_package_tag"}


def dense_edges(path: Path) -> np.ndarray:
    """Edges with ids in sorted label order, shape (n, 2), int32, sorted."""
    table = pq.read_table(path, columns=["u", "v"])
    sides = []
    for name in ("u", "v"):
        labels = table[name].combine_chunks()
        sides.append(pc.index_in(labels, labels.unique().sort()).to_numpy().astype(np.int32))
    order = np.lexsort(sides[::-1])
    return np.column_stack(sides)[order]


def golden_graphs():
    for name in GOLDEN:
        marks = [] if name in SHIPPED else [pytest.mark.golden]
        yield pytest.param(name, marks=marks, id=name)


@pytest.mark.parametrize("name", list(golden_graphs()))
def test_count_and_fingerprint(name):
    path = next((f / f"{name}.parquet" for f in FOLDERS if (f / f"{name}.parquet").exists()), None)
    if path is None:
        assert name not in SHIPPED
        pytest.skip(
            f"{name}.parquet is in none of {', '.join(map(str, FOLDERS))}: its licence does not allow shipping it"
        )
    edges = dense_edges(path)
    sizes = (int(edges[:, 0].max()) + 1, int(edges[:, 1].max()) + 1)
    graph, _ = prepare(*map(np.ascontiguousarray, edges.T), *sizes, BuildOptions())
    outcome = run(CpuEngine(), graph, Search("prove"))
    assert outcome.count == GOLDEN[name]["bicliques"]
    assert outcome.fingerprint == int(GOLDEN[name]["fingerprint"])
