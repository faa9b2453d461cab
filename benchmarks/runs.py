"""Graphs for benchmarks: read into arrays, or prepared as a run in a temporary folder, with all roots or a share."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.pipeline.api import steps
from bicliques.pipeline.ingest.gpu.ingest_on import IngestOn
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.plan import Plan
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import CallOptions, IngestOptions, RunLimits, RunOptions


class Edges(NamedTuple):
    """The normalised edge list of a graph.

    Parameters
    ----------
    left, right : ndarray, shape (n_edges,), int32
        Dense ids in the order of the labels, sorted by (left, right).
    n_left, n_right : int
        Numbers of vertices. Every vertex has an edge, because the graph was read from an edge list.
    """

    left: np.ndarray
    right: np.ndarray
    n_left: int
    n_right: int


class Bounds(NamedTuple):
    """Fewest members on the left and on the right."""

    left: int
    right: int

    @classmethod
    def of(cls, word: str) -> Bounds:
        """The bounds of ``LEFTxRIGHT``.

        Raises
        ------
        InputError
            If `word` is something else.
        """
        found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", word)
        if found is None:
            raise InputError(f"a bound is LEFTxRIGHT, such as 10x10, not {word!r}")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.left}x{self.right}"


NO_BOUNDS = Bounds(1, 1)


def read(source: Path, options: IngestOptions | None = None, ingest_on: IngestOn = "auto") -> Edges:
    """Ingest a graph as a run would.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        choice = RunOptions(source=str(source), ingest=options or IngestOptions())
        run = steps.start(source, Path(temporary) / "run", choice, RunLimits(), False, CallOptions(ingest_on=ingest_on))
        table = pa.concat_tables(map(pq.read_table, run.folder.edge_files()))
        left, right = (table[name].to_numpy() for name in table.column_names[:2])
    return Edges(left, right, int(left.max()) + 1, int(right.max()) + 1)


@contextmanager
def prepared_run(source: Path, options: RunOptions | None = None, place: Path | None = None) -> Iterator[RunFolder]:
    """A run of `source` up to its plan, in a folder below `place` that is removed after the block."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=place) as temporary:
        path = Path(temporary) / "run"
        steps.start(source, path, options or RunOptions(source=str(source)), RunLimits(), False)
        steps.prepare(path, False)
        yield RunFolder(path)


def keep_share(folder: RunFolder, share: float, seed: int = 0) -> int:
    """Keep only a share of the roots in the plan of a run, drawn at random. Returns how many are kept.

    The run then finds exactly the bicliques whose first root is kept. This set has one count and one fingerprint,
    whatever engine mines it, and ledger and proof work as in any run.
    """
    plan = Plan.read(folder)
    n = max(1, round(share * len(plan.roots)))
    kept = np.sort(np.random.default_rng(seed).permutation(len(plan.roots))[:n])
    np.save(folder.plan / "roots.npy", plan.roots[kept])
    np.save(folder.plan / "weights.npy", plan.weights[kept])
    folder.finish("plan", folder.need("plan") | {"n_roots": n}, folder.plan.iterdir())
    return n
