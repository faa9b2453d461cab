"""The call `generate` of the Python API, and of the command so named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipeline.run.files import PathLike, disk_errors, write_json
from pipeline.run.names import UNFINISHED_FILE, refuse_url
from pipeline.run.outside import refuse_inside_run
from pipeline.run.own_folder import fill_folder, names_in, refuse_strangers
from pipeline.run.progress import OnProgress, Progress, to_callback
from pipeline.synthetic.drawers import DeviceDrawer, HostDrawer
from pipeline.synthetic.generate_on import WORTH_EDGES, choose_drawer
from pipeline.synthetic.generated import TRUTH_FILE, Generated, is_of_graph, remove_graph
from pipeline.synthetic.models import random_graph
from pipeline.synthetic.wanted import Labels, Model, wanted, whole
from pipeline.synthetic.writing import PART_EDGES, threads_of, write_graph
from schemas.errors import InputError
from schemas.option import as_option
from schemas.options import Where
from schemas.values import as_path

__all__ = ["generate"]


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
    plant: str | Iterable[str | tuple[int, int]] = (),
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
    part_edges = whole("part_edges", part_edges)
    threads = threads_of(threads, part_edges)
    place = as_path(output, "the folder of the graph")
    options = graph.to_json() | {"part_edges": part_edges}
    drawn = random_graph(graph)
    if (there := _looked_into(place, options, overwrite)) is not None:
        return there
    parts = drawn.parts(part_edges)
    choice, on_progress = choose_drawer(generate_on, graph, parts), to_callback(progress)
    if generate_on == "auto" and graph.edges >= WORTH_EDGES:
        on_progress(Progress("generate", note=f"drawn on {choice.text}"))
    # before the folder is filled, because a device that cannot be used must not cost the graph that is there
    drawer = HostDrawer(drawn) if choice.device is None else DeviceDrawer(drawn, choice.device)
    with fill_folder(place, remove_graph):
        write_json(place / UNFINISHED_FILE, options)
        write_graph(drawn, parts, drawer, place, options, threads, on_progress)
        _finish(place)
    return Generated(place)


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
