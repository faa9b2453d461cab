"""Graphs whose maximal bicliques are known, from ``tests/golden/golden.json``, and where their files are.

A file is ``NAME.parquet`` with columns u and v. Those that may be redistributed are here, in examples/ and
tests/data/graphs/; the others are read from ``$BICLIQUES_DATA`` (default: ``../shared/data``), when there.
"""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
HERE = (ROOT / "examples", ROOT / "tests" / "data" / "graphs")
FOLDERS = (*HERE, Path(os.environ.get("BICLIQUES_DATA", ROOT.parent / "shared" / "data")))
GOLDEN = json.loads((ROOT / "tests" / "golden" / "golden.json").read_text())
#: Names of the graphs that ship.
SHIPPED = {path.stem for folder in HERE for path in folder.glob("*.parquet")}
#: Why another one is not here.
NOT_HERE = "its licence does not allow shipping it; BICLIQUES_DATA names a folder that has it"


def known_graph(name: str) -> Path | None:
    """The file of a graph; None when it does not ship and is not there."""
    return next((folder / f"{name}.parquet" for folder in FOLDERS if (folder / f"{name}.parquet").exists()), None)


def dense_edges(path: Path) -> np.ndarray:
    """Edges with ids in sorted label order, shape (n, 2), int32, sorted."""
    sides = []
    for column in pq.read_table(path).columns[:2]:
        labels = column.combine_chunks()
        sides.append(pc.index_in(labels, labels.unique().sort()).to_numpy().astype(np.int32))
    order = np.lexsort(sides[::-1])
    return np.column_stack(sides)[order]
