"""The call `generate` of the Python API and of the command so named, its graph in a folder, and what it would take."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import partial
from heapq import nlargest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.kernels.compiled.lists import count_members
from bicliques.pipeline import __version__
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.run.files import PathLike, disk_errors, read_json, whole_file, write_json
from bicliques.pipeline.run.names import UNFINISHED_FILE, refuse_url, temporary_name
from bicliques.pipeline.run.outside import fill_folder, names_in, refuse_inside_run, refuse_strangers, remove_own
from bicliques.pipeline.run.progress import OnProgress, Progress, number, to_callback
from bicliques.pipeline.synthetic.drawing import Drawn, Part, RandomGraph
from bicliques.pipeline.synthetic.wanted import Labels, Wanted, wanted, whole
from bicliques.schemas.errors import IncompleteError, InputError, as_option
from bicliques.schemas.regular_files import regular
from bicliques.schemas.values import as_path

#: Files beside the parts. A folder is read as a graph without files whose names begin so.
TRUTH_FILE, PLANTED_FILE = "_truth.json", "_truth.parquet"
#: Edges of a part, about, and rows of it that are compressed and read together.
_PART_EDGES, _GROUP = 1 << 22, 1 << 20
#: Bytes of memory of the process, and for an edge and a vertex of a part that is being written; bytes of a file for an
#: edge; edges of a core per second. docs/lab/generate.md has what was measured.
_PROCESS_BYTES = 256 << 20
_EDGE_BYTES: dict[Labels, int] = {"integers": 24, "text": 75}
_VERTEX_BYTES = 60
_DISK: dict[Labels, float] = {"integers": 4.2, "text": 4.5}
_RATE: dict[Labels, float] = {"integers": 3.8e6, "text": 2.4e6}


def part_name(number: int) -> str:
    """The file of a part."""
    return f"part-{number:05d}.parquet"


def is_of_graph(name: str) -> bool:
    """Whether a generated graph has a file of this name, or had one while it was written."""
    plain = name.removeprefix(".").removesuffix(".tmp") if name.startswith(".") else name
    if name != plain and name != temporary_name(plain):
        return False
    is_part = re.fullmatch(r"part-\d+\.parquet", plain) is not None
    return is_part or plain in (TRUTH_FILE, PLANTED_FILE, UNFINISHED_FILE)


def remove_graph(place: Path) -> None:
    """Remove the files of a graph from a folder that may not be there; first the one that says that it is whole.

    Until all others are gone, another one says that parts are missing, so the rest is not read as a graph. Raises
    `ResourceError` if one cannot be removed.
    """
    there = names_in(place)
    if UNFINISHED_FILE not in there and any(map(is_of_graph, there)):
        write_json(place / UNFINISHED_FILE, {})
    with disk_errors(place):
        (place / TRUTH_FILE).unlink(missing_ok=True)
        remove_own(place, lambda name: is_of_graph(name) and name != UNFINISHED_FILE)
        (place / UNFINISHED_FILE).unlink(missing_ok=True)


class Generated:
    """A graph that was generated as a whole.

    Parameters
    ----------
    path : Path
        The folder, which `bicliques.mine` and `bicliques.count` read as one graph.

    Attributes
    ----------
    truth : dict
        What ``_truth.json`` says; docs/generate.md explains it.
    edges : int
        Number of edges. No two are equal.
    fingerprint : int
        64 bits that follow from the set of edges alone.

    Raises
    ------
    IncompleteError
        If there is no graph, or not all of it.
    """

    def __init__(self, path: PathLike):
        self.path = path = as_path(path, "the folder of the graph")
        self.truth: dict[str, Any] = read_json(path / TRUTH_FILE)
        missing = [part["file"] for part in self.truth["parts"] if not (path / part["file"]).is_file()]
        if missing:
            raise IncompleteError(
                f"{path / missing[0]} is missing; generate the graph again with {as_option('overwrite', True)}"
            )
        self.edges, self.fingerprint = int(self.truth["edges"]), int(self.truth["fingerprint"])

    @property
    def planted(self) -> list[dict[str, Any]]:
        """The planted bicliques: labels ``left`` and ``right``, ``n_left``, ``n_right``, and the ``edges`` in it."""
        rows: list[dict[str, Any]] = pq.read_table(regular(self.path / PLANTED_FILE)).to_pylist()
        return rows

    def __repr__(self) -> str:
        return f"<generated graph of {number(self.edges, 'edge')} in {self.path}>"


def generate(
    output: PathLike,
    *,
    n_left: int,
    n_right: int,
    edges: int,
    left_exponent: float | str | None = None,
    right_exponent: float | str | None = None,
    max_left_degree: int | None = None,
    max_right_degree: int | None = None,
    plant: str | Iterable[str | tuple[int, int]] = (),
    noise: float | str = 0,
    labels: Labels = "integers",
    seed: int = 0,
    part_edges: int = _PART_EDGES,
    threads: int | None = None,
    overwrite: bool = False,
    progress: OnProgress | bool | None = None,
) -> Generated:
    """Generate a random bipartite graph into a folder of Parquet files, with planted bicliques.

    Parameters
    ----------
    output : path
        Folder that is empty, does not exist yet, or has a generated graph. `bicliques.mine` reads it as one graph.
    n_left, n_right : int
        Vertices of both sides, 1 to 2**31 - 1. Every left vertex has exactly its degree, and both sides have degrees by
        power laws (Chung and Lu, PNAS 2002, doi:10.1073/pnas.252631999).
    edges : int
        Number of edges, exactly. Those of planted bicliques are among them.
    left_exponent, right_exponent : float or str or None
        Exponents of the degrees, 1.01 to 10. None is 2.5.
    max_left_degree, max_right_degree : int or None
        Largest degrees beside planted edges. None is the root of the edges, but at least twice the mean degree, and no
        more than there is room for.
    plant : iterable of (int, int) or str, or str
        Left and right sizes of bicliques to plant, as ``(60, 40)`` or ``"60x40"``. No two share a vertex.
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
    overwrite : bool
        Whether a graph that is there is removed first.
    progress : callable, bool or None
        As for `bicliques.mine`.

    Returns
    -------
    Generated
        If the folder has this very graph already, that one.

    Raises
    ------
    InputError
        If there is no such graph, or the folder cannot be used. Nothing is written then.
    ResourceError
        If the disk is full. Nothing is left then.

    Notes
    -----
    ``_truth.json`` is written last, so a folder without it has no whole graph; the same call begins it anew. Until then
    no reader takes the folder, because ``_unfinished.json`` is in it. Edges are drawn in integer arithmetic: see
    `kernels.compiled.random_edges`. A thread needs memory for `part_edges` edges and for the largest degree, and all
    together 8 bytes per right vertex.

    Examples
    --------
    >>> import bicliques
    >>> graph = bicliques.generate("GRAPH", n_left=300, n_right=200, edges=3000, plant=[(9, 12)], seed=1)
    >>> graph.edges, graph.planted[0]["n_left"]
    (3000, 9)
    >>> bicliques.count("GRAPH", min_left=9, min_right=12, progress=False).count
    1
    """
    given = locals()
    graph = wanted(**{each.name: given[each.name] for each in fields(Wanted)})
    part_edges, threads = _how(part_edges, threads)
    place = as_path(output, "the folder of the graph")
    options = graph.to_json() | {"part_edges": part_edges}
    drawn = RandomGraph(graph)
    if (there := _looked_into(place, options, overwrite)) is not None:
        return there
    with fill_folder(place, remove_graph):
        write_json(place / UNFINISHED_FILE, options)
        _write(drawn, drawn.parts(part_edges), place, options, threads, to_callback(progress))
        _finish(place)
    return Generated(place)


@dataclass(frozen=True)
class Estimate:
    """What generating a graph would take, about."""

    edges: int
    parts: int
    disk_bytes: int
    memory_bytes: int
    seconds: float
    threads: int


def estimate(threads: int | None = None, part_edges: int = _PART_EDGES, **options: Any) -> Estimate:
    """What `generate` would take with these options. Nothing is drawn or written.

    Raises `InputError` if there is no such graph.
    """
    graph, (part_edges, threads) = wanted(**options), _how(part_edges, threads)
    parts = RandomGraph(graph).parts(part_edges)
    busy, own = min(threads, len(parts)), (_part_bytes(part, graph) for part in parts)
    memory = _PROCESS_BYTES + 8 * graph.n_right + sum(nlargest(busy, own))
    disk, seconds = round(graph.edges * _DISK[graph.labels]), graph.edges / _RATE[graph.labels] / busy
    return Estimate(graph.edges, len(parts), disk, memory, seconds, threads)


def _part_bytes(part: Part, graph: Wanted) -> int:
    """Memory that a part takes while it is drawn and written, without planted edges."""
    return part.edges * _EDGE_BYTES[graph.labels] + min(part.stop - part.first, part.edges) * _VERTEX_BYTES


def _how(part_edges: int, threads: int | None) -> tuple[int, int]:
    """Edges of a part, and how many parts are drawn at a time."""
    return whole("part_edges", part_edges, 1), count_cores() if threads is None else whole("threads", threads, 1)


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
            f"the output folder {place} holds a graph with {as_option(other, before.get(other))}, not "
            f"{options[other]}; name another folder, or replace it with {as_option('overwrite', True)}"
        )
    _finish(place)  # a process may have been killed just before that
    return found


def _finish(place: Path) -> None:
    """Let readers take a graph that is whole."""
    with disk_errors(place):
        (place / UNFINISHED_FILE).unlink(missing_ok=True)


def _write(
    drawn: RandomGraph, parts: list[Part], place: Path, options: dict[str, Any], threads: int, on_progress: OnProgress
) -> None:
    """Draw all parts and write them, `threads` at a time, and last what is known of the graph."""
    graph, started = drawn.graph, time.monotonic()
    entries: list[dict[str, Any]] = []
    fingerprint, largest, done, right_degrees = 0, 0, 0, np.zeros(graph.n_right, np.int64)
    for name, edges in in_order(partial(_write_part, drawn, place), enumerate(parts), threads):
        count_members(edges.neighbours, right_degrees)
        entries.append({"file": name, "edges": len(edges.neighbours), "fingerprint": str(edges.fingerprint)})
        fingerprint, largest = (fingerprint + edges.fingerprint) % 2**64, max(largest, edges.largest_degree)
        done += len(edges.neighbours)
        seconds = time.monotonic() - started
        on_progress(Progress("generate", done / graph.edges, done, done / max(seconds, 1e-3), seconds=seconds))
    found = {
        "version": __version__,
        "options": options,
        "edges": done,
        "fingerprint": str(fingerprint),
        "left": _side(graph.n_left, graph.n_left, largest),
        "right": _side(graph.n_right, int(np.count_nonzero(right_degrees)), int(right_degrees.max())),
        "planted": _write_planted(drawn, place / PLANTED_FILE),
        "parts": entries,
    }
    write_json(place / TRUTH_FILE, found)


def _side(vertices: int, with_edges: int, largest: int) -> dict[str, int]:
    return {"vertices": vertices, "with_edges": with_edges, "largest_degree": largest}


def _write_part(drawn: RandomGraph, place: Path, of: tuple[int, Part]) -> tuple[str, Drawn]:
    name, edges = part_name(of[0]), drawn.drawn(of[1])
    columns = {"left": drawn.label_array(edges.left, "left"), "right": drawn.label_array(edges.right, "right")}
    _write_table(place / name, pa.table(columns))
    return name, edges._replace(left=edges.left[:0], right=edges.right[:0])


def _write_planted(drawn: RandomGraph, target: Path) -> list[dict[str, int]]:
    """A row per planted biclique, with the names and the types of a result. Returns the numbers of each."""
    found: dict[str, pa.Array] = {}
    for side, members in drawn.planted.items():
        flat = np.concatenate([np.zeros(0, np.int64), *(np.sort(drawn.labels_of(own, side)) for own in members)])
        offsets = pa.array(np.cumsum([0, *map(len, members)]).astype(np.int64))
        found[side] = pa.LargeListArray.from_arrays(offsets, drawn.label_array(flat.astype(np.int32), side))
        found[f"n_{side}"] = pa.array(list(map(len, members)), pa.int64())
    sizes = zip(drawn.graph.plant, drawn.graph.removed, strict=True)
    found["edges"] = pa.array([p * q - gone for (p, q), gone in sizes], pa.int64())
    table = pa.table(found)
    _write_table(target, table)
    return table.select(["n_left", "n_right", "edges"]).to_pylist()


def _write_table(target: Path, table: pa.Table) -> None:
    with whole_file(target) as file:
        pq.write_table(table, file, row_group_size=_GROUP, compression="zstd", use_dictionary=["left"])
