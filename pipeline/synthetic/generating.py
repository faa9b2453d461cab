"""The call `generate` of the Python API, and of the command so named."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.process.cores import count_cores
from pipeline.process.in_order import in_order
from pipeline.run.files import PathLike, disk_errors, whole_file, write_json
from pipeline.run.names import UNFINISHED_FILE, refuse_url
from pipeline.run.outside import refuse_inside_run
from pipeline.run.own_folder import fill_folder, names_in, refuse_strangers
from pipeline.run.progress import OnProgress, Progress, to_callback
from pipeline.run.version import __version__
from pipeline.synthetic.drawers import DeviceDrawer, Drawer, HostDrawer
from pipeline.synthetic.generate_on import WORTH_EDGES, choose_drawer
from pipeline.synthetic.generated import (
    PLANTED_FILE,
    TRUTH_FILE,
    Generated,
    is_of_graph,
    part_name,
    remove_graph,
)
from pipeline.synthetic.labels import label_array, relabellings
from pipeline.synthetic.models import Part, RandomGraph, random_graph
from pipeline.synthetic.wanted import Labels, Model, Wanted, wanted
from schemas.errors import InputError
from schemas.option import as_option
from schemas.options import Where

__all__ = ["PART_EDGES", "Estimate", "estimate", "generate"]

#: Edges of a part, about.
PART_EDGES = 1 << 22
#: Rows that are compressed and read together.
_GROUP = 1 << 20
#: Bytes of memory of the process, and for an edge and a vertex of a part that is being written; bytes of a file for an
#: edge; edges of a core per second. docs/lab/generate.md has what was measured.
_PROCESS_BYTES = 256 << 20
_EDGE_BYTES: dict[Labels, int] = {"integers": 24, "text": 75}
_VERTEX_BYTES = 60
_DISK: dict[Labels, float] = {"integers": 4.2, "text": 4.5}
_RATE: dict[Labels, float] = {"integers": 3.8e6, "text": 2.4e6}
#: The same where a GPU draws, somewhat less than an H100 beside 16 cores gave for 10^9 integers and for text.
_RATE_BESIDE_GPU: dict[Labels, float] = {"integers": 1.0e7, "text": 2.9e6}


def generate(
    output: PathLike,
    *,
    n_left: int,
    n_right: int,
    edges: int,
    model: Model = "chung-lu",
    left_exponent: float | str | None = None,
    right_exponent: float | str | None = None,
    max_left_degree: int | None = None,
    max_right_degree: int | None = None,
    quadrants: Sequence[float | str] | None = None,
    plant: Iterable[tuple[int, int]] = (),
    noise: float | str = 0,
    labels: Labels = "integers",
    seed: int = 0,
    part_edges: int = PART_EDGES,
    threads: int | None = None,
    generate_on: Where = "auto",
    overwrite: bool = False,
    progress: OnProgress | bool | None = None,
) -> Generated:
    """Generate a random bipartite graph into a folder of Parquet files, with planted bicliques.

    Parameters
    ----------
    output : path
        Folder that is empty, does not exist yet, or has a generated graph. `pipeline.mine` reads it as one graph.
    n_left, n_right : int
        Vertices of both sides, 1 to 2**31 - 1.
    edges : int
        Number of edges, exactly. Those of planted bicliques are among them.
    model : "chung-lu" or "rmat"
        ``chung-lu`` gives both sides degrees by power laws, and every left vertex exactly its degree. ``rmat`` lets
        edges fall into quadrants of the matrix, again and again.
    left_exponent, right_exponent : float or str or None
        Exponents of the degrees, 1.01 to 10. Of ``chung-lu`` alone; None is 2.5.
    max_left_degree, max_right_degree : int or None
        Largest degrees beside planted edges. Of ``chung-lu`` alone. None is the root of the edges, but at least twice
        the mean degree, and no more than there is room for.
    quadrants : sequence of four float or str, or None
        Probabilities with the sum 1. Of ``rmat`` alone; None is 0.57, 0.19, 0.19, 0.05.
    plant : iterable of (int, int)
        Left and right sizes of bicliques to plant. No two share a vertex.
    noise : float or str
        Share of the edges of each planted biclique that are removed, 0 to 1.
    labels : "integers" or "text"
        Integers from 0, in random order, or text of 20 bytes.
    seed : int
        0 to 2**64 - 1. Equal options and seeds give equal graphs, on any machine and with any number of threads.
    part_edges : int
        Edges of a file, about. Memory follows from it. The graph does not.
    threads : int or None
        None: as many as there are cores.
    generate_on : "auto", "cpu" or "gpu"
        Where the edges are drawn. The files are the same. ``auto`` is the GPU for a large graph.
    overwrite : bool
        Whether a graph that is there is removed first.
    progress : callable, bool or None
        As for `pipeline.mine`.

    Returns
    -------
    Generated
        If the folder has this very graph already, that one.

    Raises
    ------
    InputError
        If there is no such graph, or the folder cannot be used. Nothing is written then.
    ResourceError
        If the disk is full, or a GPU fails while it draws. Nothing is left then. Or if a GPU was asked for and cannot
        be used. Then a graph that is there stays.

    Notes
    -----
    ``_truth.json`` is written last, so a folder without it has no whole graph; the same call begins it anew. Until then
    no reader takes the folder, because ``_unfinished.json`` is in it. Edges are
    drawn in integer arithmetic: see `kernels.compiled.random_edges`. A thread needs memory for `part_edges` edges and
    for the largest degree, and all together 8 bytes per right vertex.

    Examples
    --------
    >>> import pipeline
    >>> graph = pipeline.generate("GRAPH", n_left=300, n_right=200, edges=3000, plant=[(9, 12)], seed=1)
    >>> graph.edges, graph.planted[0]["n_left"]
    (3000, 9)
    >>> pipeline.count("GRAPH", min_left=9, min_right=12, progress=False).count
    1
    """
    graph = wanted(
        n_left=n_left,
        n_right=n_right,
        edges=edges,
        model=model,
        left_exponent=left_exponent,
        right_exponent=right_exponent,
        max_left_degree=max_left_degree,
        max_right_degree=max_right_degree,
        quadrants=quadrants,
        plant=plant,
        noise=noise,
        labels=labels,
        seed=seed,
    )
    threads = _threads(threads, part_edges)
    place = Path(output)
    options = graph.to_json() | {"part_edges": part_edges}
    drawn = random_graph(graph)
    if (there := _looked_into(place, options, overwrite)) is not None:
        return there
    parts = drawn.parts(part_edges)
    choice, on_progress = choose_drawer(generate_on, graph, parts), to_callback(progress)
    if generate_on == "auto" and edges >= WORTH_EDGES:
        on_progress(Progress("generate", note=f"drawn on {choice.text}"))
    # before the folder is filled, because a device that cannot be used must not cost the graph that is there
    drawer = HostDrawer(drawn) if choice.device is None else DeviceDrawer(drawn, choice.device)
    with fill_folder(place, remove_graph):
        write_json(place / UNFINISHED_FILE, options)
        _write(drawn, parts, drawer, place, options, threads, on_progress)
        _finish(place)
    return Generated(place)


@dataclass(frozen=True)
class Estimate:
    """What generating a graph would take, about.

    Parameters
    ----------
    edges, parts, disk_bytes, memory_bytes : int
    seconds : float
    threads : int
    drawn_on : str
        Where the edges are drawn, and why there.
    device_bytes : int
        Device memory, besides what CUDA takes.
    """

    edges: int
    parts: int
    disk_bytes: int
    memory_bytes: int
    seconds: float
    threads: int
    drawn_on: str
    device_bytes: int


def estimate(
    threads: int | None = None, part_edges: int = PART_EDGES, generate_on: Where = "auto", **options: Any
) -> Estimate:
    """What `generate` would take with these options. Nothing is drawn or written.

    Raises
    ------
    InputError
        If there is no such graph.
    ResourceError
        If a GPU was asked for and cannot be used.
    """
    graph, threads = wanted(**options), _threads(threads, part_edges)
    parts = random_graph(graph).parts(part_edges)
    busy = min(threads, len(parts))
    memory = _PROCESS_BYTES + 8 * graph.n_right + sum(nlargest(busy, (_part_bytes(part, graph) for part in parts)))
    disk = round(graph.edges * _DISK[graph.labels])
    choice = choose_drawer(generate_on, graph, parts)
    rate = (_RATE if choice.device is None else _RATE_BESIDE_GPU)[graph.labels]
    seconds = graph.edges / rate / busy
    return Estimate(graph.edges, len(parts), disk, memory, seconds, threads, choice.text, choice.device_bytes)


def _threads(threads: int | None, part_edges: int) -> int:
    """How many parts are drawn at a time."""
    for name, number in (("part_edges", part_edges), ("threads", 1 if threads is None else threads)):
        if number < 1:
            raise InputError(f"{as_option(name)} is {number}; it has to be at least 1")
    return count_cores() if threads is None else threads


def _part_bytes(part: Part, graph: Wanted) -> int:
    """Memory that a part takes while it is drawn and written, without planted edges."""
    return part.edges * _EDGE_BYTES[graph.labels] + min(part.stop - part.first, part.edges) * _VERTEX_BYTES


def _looked_into(place: Path, options: dict[str, Any], overwrite: bool) -> Generated | None:
    """The graph that is in the folder if it is the wanted one. Refuse a folder that must not be changed."""
    refuse_url(place)
    refuse_inside_run(place)
    there = names_in(place)
    refuse_strangers(place, there, is_of_graph)
    if TRUTH_FILE not in there or overwrite:
        return None
    found = Generated(place)
    before = found.truth["options"]
    other = next((name for name in options if before.get(name) != options[name]), None)
    if other is not None:
        raise InputError(
            f"the output folder {place} holds a graph with {as_option(other)} {before.get(other)}, not "
            f"{options[other]}; name another folder, or replace it with --overwrite"
        )
    _finish(place)  # a process may have been killed just before that
    return found


def _finish(place: Path) -> None:
    """Let readers take a graph that is whole."""
    with disk_errors(place):
        (place / UNFINISHED_FILE).unlink(missing_ok=True)


@dataclass(frozen=True, eq=False)
class _Written:
    """A part that was written: its entry in the truth, its neighbours, and numbers of its left vertices."""

    entry: dict[str, Any]
    neighbours: np.ndarray
    with_edges: int
    largest: int


def _write(
    drawn: RandomGraph,
    parts: list[Part],
    drawer: Drawer,
    place: Path,
    options: dict[str, Any],
    threads: int,
    on_progress: OnProgress,
) -> None:
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
