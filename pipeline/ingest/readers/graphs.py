"""Graphs and sparse matrices in memory, of scipy.sparse, networkx and igraph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import repeat
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa

from bicliques.pipeline.ingest.readers.base import NAN_REMEDY, SIDES, EdgeStream, to_batch
from bicliques.pipeline.ingest.readers.in_memory import is_whole, pairs_of, refuse_odd
from bicliques.pipeline.ingest.readers.labels import INTEGER
from bicliques.pipeline.ingest.readers.tables import ROWS, TableStream
from bicliques.pipeline.run.progress import number
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions


def open_scipy(matrix: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Open a scipy.sparse matrix or array. Labels are row and column numbers from 0."""
    if len(matrix.shape) != 2:
        raise InputError(
            f"{name} has {number(len(matrix.shape), 'dimension')}; a biadjacency matrix has rows and columns"
        )
    entries = matrix.tocoo()

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(entries.data), ROWS):
            part = slice(start, start + ROWS)
            if options.min_weight is None:
                _refuse_nan(name, entries, part)
            kept = entries.data[part] != 0
            columns = [pa.array(ids[part][kept], INTEGER) for ids in (entries.row, entries.col)]
            if options.min_weight is not None:
                columns.append(pa.array(entries.data[part][kept].astype(np.float64)))
            yield to_batch(*columns)

    return TableStream(name, "scipy", options, batches())


def _refuse_nan(name: str, entries: Any, part: slice) -> None:
    """Refuse NaN, which stands for a missing entry: a dense matrix with it is sparse in name alone."""
    missing = entries.data[part] != entries.data[part]
    if missing.any():
        k = part.start + int(missing.argmax())
        raise InputError(
            f"{name} has NaN in row {entries.row[k]}, column {entries.col[k]}, counted from 0; {NAN_REMEDY}"
        )


def open_networkx(graph: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Open a networkx graph whose nodes have the attribute ``bipartite``."""
    side = dict(graph.nodes(data="bipartite"))
    for node, value in side.items():
        if value not in (0, 1):
            found = "no attribute 'bipartite'" if value is None else f"bipartite={value!r}"
            raise InputError(f"{name}: node {node!r} has {found}; set it to 0 (left) or 1 (right) on every node")
    as_text = options.label_type == "string"
    for k, word in enumerate(SIDES):
        labels = [node for node, value in side.items() if value == k]
        if not (as_text and all(map(is_whole, labels))):
            refuse_odd(f"{name}: the {word} side", labels, "node", "relabel the nodes")

    edges = graph.edges(data=options.weight or "weight")
    return _open_edges(
        name, "networkx", options, edges, side, lambda node: node, "nodes with bipartite", "relabel the nodes"
    )


def _open_edges(
    name: str,
    format: str,
    options: IngestOptions,
    edges: Iterable[tuple[Any, Any, Any]],
    side: Any,
    label: Callable[[Any], Any],
    what: str,
    remedy: str,
) -> EdgeStream:
    """Open edges with their weights. `side` tells which side a vertex is of, and `label` what it is called."""

    def pairs() -> Iterator[tuple[Any, ...]]:
        for u, v, weight in edges:
            wrong = ""
            if options.min_weight is not None and not isinstance(weight, (Real, Decimal)):
                wrong = f"has {options.weight or 'weight'}={weight!r}, which is no number; set it on every edge"
            elif side[u] == side[v]:
                wrong = f"joins two {what}={side[u]}; remove it or correct the attribute"
            if wrong:
                raise InputError(f"{name}: the edge between {label(u)!r} and {label(v)!r} {wrong}")
            ends = (label(v), label(u)) if side[u] else (label(u), label(v))
            yield ends if options.min_weight is None else (*ends, float(weight))

    n = 2 if options.min_weight is None else 3
    batches = pairs_of(name, pairs(), "edge", remedy, n, options.label_type == "string")
    return TableStream(name, format, options, batches, unit="edge")


def _refuse_names_twice(name: str, label: Sequence[Any], side: Sequence[Any]) -> None:
    """Refuse two vertices of one side with one name, because they would be read as one vertex."""
    seen: set[tuple[Any, bool]] = set()
    for vertex, key in enumerate(zip(label, map(bool, side), strict=True)):
        if key in seen and key[0] is not None:
            raise InputError(
                f"{name}: vertex {vertex} is called {key[0]!r} as another one of its side; rename one, or delete the "
                "attribute 'name'"
            )
        seen.add(key)


def open_igraph(graph: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Open an igraph graph with the vertex attribute ``type``. Labels are names, or numbers of vertices."""
    known = graph.vs.attributes()
    if "type" not in known:
        raise InputError(
            f"{name}: the vertices have no attribute 'type'; set it to False (left) or True (right) on every vertex"
        )
    side = graph.vs["type"]
    for vertex, value in enumerate(side):
        if value not in (False, True):
            raise InputError(f"{name}: vertex {vertex} has type={value!r}; set it to False (left) or True (right)")
    label = graph.vs["name"] if "name" in known else range(len(side))
    _refuse_names_twice(name, label, side)

    what = options.weight or "weight"
    weights = graph.es[what] if what in graph.es.attributes() else repeat(None)
    edges = ((u, v, weight) for (u, v), weight in zip(graph.get_edgelist(), weights, strict=False))
    return _open_edges(
        name, "igraph", options, edges, side, label.__getitem__, "vertices with type", "rename the vertices"
    )
