"""The facts of a run in words, which are the same on the command line, on the page and in Prefect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bicliques.pipeline.run.progress import number, size
from bicliques.pipeline.run.store import store_at
from bicliques.schemas.facts import side_names
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.options import RunOptions
from bicliques.schemas.reading import Reading
from bicliques.schemas.records import read_as
from bicliques.schemas.search import Search, search_words

if TYPE_CHECKING:
    from bicliques.pipeline.results.results import Results


def _answer(manifest: Manifest, search: Search) -> str:
    """The number of rows, and what they are."""
    if search.largest is None:
        return f"{manifest.count:,}, all of them"
    return f"{manifest.count:,}, the largest by {search.by}"


def _certificate(told: Mapping[str, Any]) -> str:
    bands = number(len(told["bands"]), "band")
    if "key" not in told:
        return f"there are no others: {bands} searched to the end"
    return f"no other has more than {told['key']:,} by {told['measure']}: {bands} searched to the end"


def root_side_words(graph: Mapping[str, Any], least: tuple[int, int]) -> str:
    """Which side the roots are on, and the work that each promises; see `kernels.graph.wedges.root_side_of`."""
    work = [f"{graph[f'wedges_{each}']:,} wedges x {n:,}" for each, n in zip(("left", "right"), least, strict=True)]
    return f"{graph['root_side']} (left {work[0]}, right {work[1]})"


def _root_side(manifest: Manifest, search: Search) -> str:
    roots = number(manifest.plan["n_roots"], "root")
    if "bands" not in manifest.graph:
        return f"{root_side_words(manifest.graph, search.fewest_neighbours)}, {roots}"
    sides = [band["root_side"] for band in manifest.graph["bands"]]
    each = " and ".join(f"{side} in {sides.count(side)}" for side in ("left", "right") if side in sides)
    return f"{each or 'none'} of {number(len(sides), 'band')}, {roots}"


_LEFT_OUT = (
    ("duplicates", "duplicate", "removed"),
    ("skipped_lines", "bad line", "left out"),
    ("light_rows", "edge", "below the smallest weight left out"),
)


def input_words(facts: Mapping[str, Any]) -> str:
    """What was read, from the facts of the step ``ingest``."""
    extra = "".join(f", {number(facts[key], what)} {gone}" for key, what, gone in _LEFT_OUT if facts.get(key))
    left, right = (
        f"{facts[f'n_{side}']:,} {name}" + ("" if name == side else f" ({side})")
        for side, name in zip(("left", "right"), side_names(facts), strict=True)
    )
    vertices, n_edges = f"{left}, {right}", facts["n_edges"]
    if facts.get("undirected"):
        vertices, n_edges = number(facts["n_left"], "vertex", "vertices"), n_edges // 2
    notes = "".join(f"; note: {note}" for note in facts.get("notes", ()))
    return f"{facts['source']}: {vertices}, {number(n_edges, 'edge')}{extra}{notes}"


def input_rows(facts: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    """What was read, and what it was taken for. Runs of earlier versions do not say that."""
    yield "input", input_words(facts)
    if "reading" in facts:
        yield "read as", read_as(Reading, facts["reading"], "reading")


def reduced_words(graph: Mapping[str, Any]) -> str:
    """The size of the graph that is left to search, from the facts of the step ``build``."""
    edges = number(graph["merged_edges"], "edge")
    return f"{graph['merged_left']:,} left, {graph['merged_right']:,} right, {edges}"


def why_none(facts: Mapping[str, Any], graph: Mapping[str, Any], search: Search) -> str:
    """Why no biclique was found, in one clause, from the facts of reading and building."""
    if "nothing" in graph:
        return str(graph["nothing"])
    for side, least in zip(("right", "left"), search.fewest_neighbours, strict=True):
        most, name = graph["profile"][side]["max"], facts.get(f"{side}_name", side)
        if most < least:
            vertex = f"{side} vertex" if name == side else name
            return f"no {vertex} has {least:,} neighbours; the most is {most:,}"
    if graph["merged_edges"] == 0:
        with_members = "with the given members, " if search.is_containing else ""
        return f"{with_members}the two thresholds together leave nothing of the graph"
    return "no maximal biclique has the sizes that were asked for"


def memory_words(peak: dict[str, Any]) -> str:
    """The most main memory that the processes took, from `pipeline.run.accounts.peak_rss_of`."""
    workers = max(peak["workers"].values(), default=0)
    text = f"at most {size(peak['driver'])}"
    return text if workers <= peak["driver"] else f"{text} in the driver, {size(workers)} in a worker"


def run_facts(results: Results) -> Iterable[tuple[str, object]]:
    """The facts of a complete run, as pairs of name and value."""
    manifest = results.manifest
    mining, seconds = manifest.mining, manifest.seconds
    search = RunOptions.from_json(manifest.options).search
    none = why_none(manifest.input, manifest.graph, search)
    yield "bicliques", _answer(manifest, search) if manifest.count else f"none: {none}"
    yield "fingerprint", f"{manifest.fingerprint}{' (the same from Parquet)' if manifest.proven_rows else ''}"
    yield from input_rows(manifest.input)
    yield "after reduction", reduced_words(manifest.graph)
    if wanted := search_words(search):
        yield "only with", wanted
    yield "root side", _root_side(manifest, search)
    if manifest.certificate is not None:
        yield "certificate", _certificate(manifest.certificate)
    if (parent := manifest.parent) is not None:
        yield "refreshed from", f"{parent.folder}: {parent.count:,} - {parent.gone:,} gone + {parent.new:,} new"
    else:
        yield "engine", manifest.options["engine"]
        yield (
            "mined by",
            f"{number(len(mining['workers']), 'worker')} in {number(mining['slices'], 'slice')}, "
            f"busy {share(mining['busy_ratio'])}",
        )
    yield "seconds", seconds_words(seconds)
    if manifest.peak_rss:
        yield "memory", memory_words(manifest.peak_rss)
    if manifest.parts:
        files = number(len(manifest.parts), "Parquet file")
        yield "files", f"{store_at(results.path).shown('bicliques')}: {files}, {size(manifest.bytes)}"
    if search.per_vertex:
        yield "vertices", store_at(results.path).shown("vertices")
    yield "manifest", store_at(results.path).shown("manifest.json")
    if store_at(results.path).local(results.path / "report.html").exists():
        yield "report", store_at(results.path).shown("report.html")


def seconds_words(seconds: dict[str, float]) -> str:
    """The seconds of each step in words."""
    return ", ".join(f"{step} {value:.2f}" for step, value in seconds.items())


def share(value: float) -> str:
    """A share from 0 to 1 as percent."""
    return f"{100 * value:.1f} %"
