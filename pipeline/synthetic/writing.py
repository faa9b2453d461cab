"""Writes the parts of a random graph while they are drawn, and what is known of the graph."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.process.cores import count_cores
from pipeline.process.in_order import in_order
from pipeline.run.files import whole_file, write_json
from pipeline.run.progress import OnProgress, Progress
from pipeline.run.version import __version__
from pipeline.synthetic.drawers import Drawer
from pipeline.synthetic.generated import PLANTED_FILE, TRUTH_FILE, part_name
from pipeline.synthetic.labels import label_array, relabellings
from pipeline.synthetic.models import Part, RandomGraph
from pipeline.synthetic.wanted import Wanted, whole
from schemas.errors import InputError
from schemas.option import as_option

__all__ = ["PART_EDGES", "threads_of", "write_graph"]

#: Edges of a part, about.
PART_EDGES = 1 << 22
#: Rows that are compressed and read together.
_GROUP = 1 << 20


def threads_of(threads: int | None, part_edges: int) -> int:
    """How many parts are drawn at a time."""
    wanted = count_cores() if threads is None else whole("threads", threads)
    for name, number in (("part_edges", part_edges), ("threads", wanted)):
        if number < 1:
            raise InputError(f"{as_option(name)} is {number}; it has to be at least 1")
    return wanted


def write_graph(
    drawn: RandomGraph,
    parts: list[Part],
    drawer: Drawer,
    place: Path,
    options: dict[str, Any],
    threads: int,
    on_progress: OnProgress,
) -> None:
    """Draw all parts and write them into a folder, and last what is known of the graph.

    Parameters
    ----------
    drawn : RandomGraph
    parts : list of Part
        All parts of the graph.
    drawer : Drawer
        Draws their edges.
    place : Path
        An existing folder.
    options : dict
        What the graph follows from, for ``_truth.json``.
    threads : int
        Parts that are drawn and written at a time.
    on_progress : callable

    Raises
    ------
    ResourceError
        The disk is full, or a device fails.
    """
    graph, started = drawn.graph, time.monotonic()
    entries, fingerprint, with_edges, largest, done = [], 0, 0, 0, 0
    for part in in_order(partial(_write_part, drawer, graph, place), enumerate(parts), threads):
        drawer.count(part.neighbours)
        entries.append(part.entry)
        fingerprint = (fingerprint + int(part.entry["fingerprint"])) % 2**64
        with_edges, largest = with_edges + part.with_edges, max(largest, part.largest)
        done += part.entry["edges"]
        seconds = time.monotonic() - started
        on_progress(Progress("generate", done / graph.edges, done, done / max(seconds, 1e-3), seconds=seconds))
    degrees = drawer.right_degrees()
    _write_planted(drawn, place / PLANTED_FILE)
    write_json(
        place / TRUTH_FILE,
        {
            "version": __version__,
            "options": options,
            "edges": done,
            "fingerprint": str(fingerprint),
            "left": _side(graph.n_left, with_edges, largest),
            "right": _side(graph.n_right, int(np.count_nonzero(degrees)), int(degrees.max())),
            "planted": [
                {"n_left": p, "n_right": q, "edges": p * q - gone}
                for (p, q), gone in zip(graph.plant, graph.removed, strict=True)
            ],
            "parts": entries,
        },
    )


@dataclass(frozen=True, eq=False)
class _Written:
    """A part that was written: its entry in the truth, its neighbours, and numbers of its left vertices."""

    entry: dict[str, Any]
    neighbours: np.ndarray
    with_edges: int
    largest: int


def _side(vertices: int, with_edges: int, largest: int) -> dict[str, int]:
    return {"vertices": vertices, "with_edges": with_edges, "largest_degree": largest}


def _write_part(drawer: Drawer, graph: Wanted, place: Path, of: tuple[int, Part]) -> _Written:
    number, part = of
    edges = drawer.edges(part)
    columns = {"left": label_array(edges.left, graph, "left"), "right": label_array(edges.right, graph, "right")}
    _write_table(place / part_name(number), pa.table(columns))
    degrees = edges.left_degrees
    entry = {"file": part_name(number), "edges": len(edges.left), "fingerprint": str(edges.fingerprint)}
    return _Written(entry, edges.neighbours, int(np.count_nonzero(degrees)), int(degrees.max(initial=0)))


def _write_planted(drawn: RandomGraph, target: Path) -> None:
    """A row per planted biclique, with the names and the types of a result."""
    graph, found = drawn.graph, {}
    lists = zip(("left", "right"), relabellings(graph), (drawn.planted.left, drawn.planted.right), strict=True)
    for side, line, members in lists:
        flat = np.concatenate([np.zeros(0, np.int64), *(np.sort(line(own)) for own in members)]).astype(np.int32)
        offsets = np.cumsum([0, *map(len, members)]).astype(np.int64)
        labels = label_array(flat, graph, "left" if side == "left" else "right")
        found[side] = pa.LargeListArray.from_arrays(pa.array(offsets), labels)
        found[f"n_{side}"] = pa.array(np.diff(offsets))
    sizes = zip(graph.plant, graph.removed, strict=True)
    found["edges"] = pa.array([p * q - gone for (p, q), gone in sizes], pa.int64())
    _write_table(target, pa.table(found))


def _write_table(target: Path, table: pa.Table) -> None:
    with whole_file(target) as file:
        pq.write_table(table, file, row_group_size=_GROUP, compression="zstd", use_dictionary=["left"])
