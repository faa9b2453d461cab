"""Runs that follow one another, and what changed between them, by sets of Python."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.compare import in_run
from tests.support.runs import QUIET

Edges = set[tuple[Any, Any]]
Biclique = tuple[tuple[Any, ...], tuple[Any, ...]]


def stored(file: Path, edges: Edges, names: tuple[str, str] = ("user", "film")) -> Path:
    """Edges in a file. Labels are of a type that Arrow knows, one per side."""
    pq.write_table(pa.table(dict(zip(names, zip(*sorted(edges), strict=True), strict=True))), file)
    return file


def night(folder: Path, edges: Edges, names: tuple[str, str] = ("user", "film"), **options: Any) -> Path:
    """Mine edges, which are beside the folder then."""
    return bq.mine(stored(folder.with_suffix(".parquet"), edges, names), folder, **QUIET | options).path


def noted_comparisons(patch: pytest.MonkeyPatch) -> list[Path]:
    """The run before of every comparison in a run that is made from now on."""
    made, diff = list[Path](), in_run.diff
    patch.setattr(in_run, "diff", lambda *given, **how: made.append(given[0]) or diff(*given, **how))
    return made


def maximal_bicliques(edges: Edges) -> set[Biclique]:
    """All maximal bicliques of a small graph, as closures of sets of left vertices."""
    neighbours: dict[Any, set[Any]] = {}
    for left, right in edges:
        neighbours.setdefault(left, set()).add(right)
    closed: set[frozenset[Any]] = set()
    for own in map(frozenset, neighbours.values()):
        closed |= {own} | {own & other for other in closed}
    return {
        (tuple(sorted(u for u, own in neighbours.items() if rights <= own)), tuple(sorted(rights)))
        for rights in closed
        if rights
    }


def rows_of(rows: Any) -> set[Biclique]:
    """The bicliques of `Rows` or `Results`."""
    table = rows.to_arrow(columns=["left", "right"])
    found = [tuple(tuple(row[side]) for side in ("left", "right")) for row in table.to_pylist()]
    assert len(set(found)) == len(found)
    return set(found)  # type: ignore[arg-type]


def two(rng: np.random.Generator, least: int = 1) -> tuple[Edges, Edges]:
    """A small random graph, and what is left of it when pairs of vertices are joined or parted."""
    n_left, n_right = rng.integers(least, 8, 2).tolist()
    density, share = rng.uniform(0.1, 0.95), rng.choice([0.03, 0.15, 0.6])
    was = rng.random((n_left, n_right)) < density
    now = np.where(rng.random(was.shape) < share, rng.random(was.shape) < density, was)
    return {tuple(e) for e in np.argwhere(was).tolist()}, {tuple(e) for e in np.argwhere(now).tolist()}


def of_sizes(rows: set[Biclique], least: tuple[int, int], most: tuple[int, int]) -> set[Biclique]:
    return {(a, b) for a, b in rows if least[0] <= len(a) <= most[0] and least[1] <= len(b) <= most[1]}


def changes(was: set[Biclique], now: set[Biclique]) -> dict[str, list[tuple[Any, ...]]]:
    """By side: label, before, after, gone and new of every vertex that is in a biclique that is gone or new."""
    found = {}
    for k, side in enumerate(("left", "right")):
        counts = [Counter(label for row in rows for label in row[k]) for rows in (was, now, was - now, now - was)]
        labels = sorted(set(counts[2]) | set(counts[3]))
        found[side] = [(label, *(count[label] for count in counts)) for label in labels]
    return found
