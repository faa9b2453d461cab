"""Output of the command line: run cards as ``key: value`` lines, and tables."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bicliques.kernels import engines
from bicliques.pipeline.results.binning import grid
from bicliques.pipeline.results.cliques import CliqueCounts
from bicliques.pipeline.results.facts import (
    input_rows,
    memory_words,
    reduced_words,
    root_side_words,
    run_facts,
    seconds_words,
    share,
    why_none,
)
from bicliques.pipeline.results.listing import aligned, shown
from bicliques.pipeline.results.pq import PqCounts, in_full
from bicliques.pipeline.results.run_status import status
from bicliques.pipeline.run.progress import number, size
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.store import store_at
from bicliques.schemas.errors import spoken, written
from bicliques.schemas.leaves import CLIQUES
from bicliques.schemas.options import RunOptions
from bicliques.schemas.search import search_words
from bicliques.schemas.sizes import SizeCounts

if TYPE_CHECKING:
    from bicliques.pipeline.api.dry_running import DryRun
    from bicliques.pipeline.proof.verification import Verification
    from bicliques.pipeline.results.by_community import Communities
    from bicliques.pipeline.results.counted import Count
    from bicliques.pipeline.results.results import Results

#: Rows and columns of the table of a count of all sizes.
_FIRST_SIZES = (6, 5)
_WHY = {
    "max_results": "the limit on the number of results was reached",
    "time_limit": "the time limit was reached",
    "interrupted": "it was stopped",
}


def run_card(results: Results, is_kept: bool = True, seconds: float | None = None) -> str:
    """About ten lines about a run. Without those about its files, if it is not kept.

    `seconds` are those of the whole command, with its page and all that belongs to no step.
    """
    if results.complete:
        said = {name: fact for name, fact in run_facts(results) if is_kept or name not in ("files", "manifest")}
        if seconds is not None:
            made = datetime.fromisoformat(results.manifest.created)
            was_there = datetime.now(UTC) - timedelta(seconds=seconds + 1) > made  # which has whole seconds
            why = ", because the run was complete already" if was_there else ""
            said["seconds"] = f"{said['seconds']}; this command {seconds:.2f}{why}"
        return _lines(said.items())
    why = _WHY.get(results.outcome, "it ended before it was done")
    facts: list[tuple[str, object]] = [("bicliques", f"{len(results):,} so far; not complete: {why}")]
    if (gap := status(results.path).gap) is not None:
        facts.append(("so far", gap))
    if is_kept:
        facts.append(("files", store_at(results.path).shown("bicliques")))
        facts.append(("go on with", spoken(how_to_resume(results.path, results.outcome))))
    return _lines(facts)


def run_json(results: Results) -> dict[str, Any]:
    """A run as a dictionary for JSON. It is the manifest, if there is one."""
    state = {"folder": str(store_at(results.path).address), "complete": results.complete, "outcome": results.outcome}
    if results.complete:
        return state | results.manifest.to_json()
    gap = status(results.path).gap
    state |= {} if gap is None else {"gap": gap._asdict()}
    return state | {"count": len(results), "resume": written(how_to_resume(results.path, results.outcome))}


def count_card(count: Count) -> str:
    """A few lines about a count."""
    options = RunOptions.from_json(count.options)
    of_cliques = options.search.pq == CLIQUES
    what = "cliques" if of_cliques else "bicliques"
    rows: list[tuple[str, object]] = [(what, in_full(count.count))]
    if not count.complete:
        rows = [(what, f"at least {count.count:,}"), ("not complete", _WHY[count.outcome])]
    elif count.count == 0:
        rows = [("bicliques", f"none: {why_none(count.input, count.graph, options.search)}")]
    if count.fingerprint is not None:
        rows.append(("fingerprint", count.fingerprint))
    if count.vertices or options.search.per_vertex:
        rows.append(("vertices", count.vertices or "not written, because not all bicliques were counted"))
    rows += input_rows(count.input)
    if not of_cliques:
        rows.append(("after reduction", reduced_words(count.graph)))
    if wanted := search_words(options.search):
        rows.append(("only with", wanted))
    if not of_cliques:
        rows.append(("root side", root_side_words(count.graph, options.search.fewest_neighbours)))
    rows.append(("engine", options.engine))
    rows += [("seconds", f"{seconds_words(count.seconds)}; {count.total_seconds:.2f} in all")]
    rows += [("memory", memory_words(count.peak_rss))]
    if count.pq is not None:
        table = clique_table(count.pq) if isinstance(count.pq, CliqueCounts) else pq_table(count.pq)
        return f"{_lines([*rows, ('as the input says', ', '.join(count.pq.checks))])}\n\n{table}"
    text = _lines(rows)
    return text if count.sizes is None else f"{text}\n\n{size_table(count.sizes)}"


def size_table(sizes: SizeCounts) -> str:
    """Bicliques by size, in bins from each power of two to the next. Rows are left sizes, columns right sizes."""
    if len(sizes) == 0:
        return "no bicliques"
    table = grid(sizes, per_doubling=1)
    down, across = (
        [f"{a}" if a + 1 == b else f"{a}-{b - 1}" for a, b in pairwise(edges.tolist())]
        for edges in (table.left, table.right)
    )
    rows = [["left \\ right", *across]]
    rows += [[name, *(f"{n:,}" if n else "." for n in line)] for name, line in zip(down, table.count, strict=True)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(text.rjust(w) for text, w in zip(row, widths, strict=True)) for row in rows)


def pq_table(counts: PqCounts) -> str:
    """The numbers of p x q bicliques: all that were asked for, and the first of all sizes."""
    table = counts.table(None if counts.up_to else _FIRST_SIZES)
    if not table:
        return "no bicliques"
    rows = [["left \\ right", *map(str, range(1, len(table[0]) + 1))]]
    rows += [[str(p), *map(in_full, row)] for p, row in enumerate(table, 1)]
    return "\n".join(aligned(rows, ">" * len(rows[0])))


def clique_table(counts: CliqueCounts) -> str:
    """The numbers of cliques of each number of vertices, and of motifs."""
    rows = [["vertices", "cliques"], *([str(k), in_full(n)] for k, n in enumerate(counts.table(), 1))]
    motifs = [["induced", "motifs"], *([name, in_full(n)] for name, n in counts.motifs.items())]
    return "\n".join([*aligned(rows, ">>"), "", *aligned(motifs, "<>")])


def communities_card(found: Communities) -> str:
    """How many communities there are, here and for higher settings."""
    rows = [["at", "bicliques", "communities", "largest", "its share"]]
    for left, right, *numbers in map(dict.values, found.settings):
        most = share(numbers[2] / max(numbers[0], 1))
        rows.append([f"{left}x{right}", *(f"{n:,}" for n in numbers), most])
    where = f"in {found.path}, with the fingerprint {found.fingerprint}; bicliques report puts the table on the page"
    return "\n".join([*aligned(rows, ">>>>>"), "", where])


def verify_card(found: Verification) -> str:
    """The facts that were proven, that were proven by a sample, and that were not proven."""
    text = [
        f"verified: {number(found.count, 'biclique')}, fingerprint {found.fingerprint}, in {found.seconds:.1f} s",
        "",
    ]
    for title, statements in (
        ("for all rows", found.proven),
        ("in the sample", found.sampled_only),
        ("not proven", found.not_proven),
    ):
        text += [f"{title}:", *(f"  - {statement}" for statement in statements)]
    return "\n".join(text)


def dry_run_card(dry: DryRun) -> str:
    """Profile, plan and estimates of a dry run."""
    from bicliques.pipeline.estimate import table  # here, because other commands do not import it

    graph, plan, guess = dry.graph, dry.plan, dry.estimate
    rows: list[tuple[str, object]] = [
        *input_rows(dry.input),
        *((f"degrees {side}", _degrees(graph["profile"][side])) for side in ("left", "right")),
        ("after reduction", reduced_words(graph)),
        ("root side", root_side_words(graph, (guess.table[0].min_left, guess.table[0].min_right) if guess else (1, 1))),
        (
            "plan",
            f"{number(plan['n_roots'], 'root')}; {share(plan['heaviest_share'])} of the estimated work in the "
            f"heaviest, {share(plan['top_share'])} in the heaviest hundredth",
        ),
        ("engine", f"{dry.engine.name} ({dry.engine.reason})"),
        ("memory", _dry_memory(dry)),
    ]
    if dry.memory.device or dry.memory.free:
        rows.append(("GPU memory", _dry_gpu_memory(dry)))
    if dry.input.get("pieces", 1) > 1 or graph.get("pieces", 1) > 1:
        rows.append(("GPU pieces", f"edges read in {dry.input.get('pieces', 1)}, graph built in {graph['pieces']}"))
    if guess is None:
        reason = graph.get("nothing", "the thresholds leave nothing of the graph")
        return _lines([*rows, ("bicliques", f"none: {reason}")])
    busy = ", if none of them ever waits" if (dry.workers or 1) > 1 else ""
    count = guess.bicliques
    rows += [
        ("bicliques", f"{count.value:,.0f}, counted" if guess.exact else table.in_range(count, table.COUNTS)),
        ("output", "none" if dry.count_only else table.in_range(guess.bytes, table.BYTES)),
        ("time", f"{table.in_range(dry.seconds or guess.seconds, table.TIMES)} for {_sharers(dry.workers)}{busy}"),
        (
            "estimated from",
            "all of the search" if guess.exact else f"{_percent(guess.share)} of the search, and samples",
        ),
    ]
    return f"{_lines(rows)}\n\n{spoken(table.threshold_table(guess.table, dry.workers))}"


def _dry_memory(dry: DryRun) -> str:
    most = max(dry.preparing.reading, dry.preparing.building)
    each = f"reading and building took {size(dry.peak_rss)}, and take at most {size(most)}; mining takes "
    each += f"at most {size(dry.memory.shared)} shared, and {size(dry.memory.worker)} per worker"
    if dry.total_memory is None:
        return each
    who = f"{_sharers(dry.workers)} and this process, on one machine" if dry.workers else _sharers(dry.workers)
    return f"{each}; {size(dry.total_memory)} for {who}"


def _dry_gpu_memory(dry: DryRun) -> str:
    free = f"{size(dry.memory.free)} that are" if dry.memory.free else "that is"
    preparing = f"reading and building may take all {free} free"
    if not dry.memory.device:
        return preparing
    scratch = size(dry.memory.scratch) if dry.memory.scratch else "60 % of the rest"
    return f"{size(dry.memory.device)} for graph and buffers, and up to {scratch} for the search; {preparing}"


def _sharers(workers: int | None) -> str:
    if workers == 0:
        return "this process"
    return "one worker" if workers in (None, 1) else f"{workers:,} workers"


#: What may be named as a source, and what it stands for.
_SOURCES = (
    ("a file, a folder, or a pattern 'in/*.csv'", "all files of one format, read as one (choose partitions: --where)"),
    ("https://, s3://, gs:// and others", "the same on other machines"),
    ("-", "standard input"),
    ("the folder of a run", "the edges that it has read; alone"),
)


def formats_table() -> str:
    """A table of formats, of sources and of engines."""
    from bicliques.pipeline.ingest.readers import formats  # not for the other cards: it imports every reader

    text = ["formats (also .gz, .bz2, .xz, .zst for text):"]
    text += [f"  {format.name:<14} {', '.join(format.patterns):<26} {format.description}" for format in formats()]
    text += ["", "a source is one or several of these:"]
    text += [f"  {words:<41} {meaning}" for words, meaning in _SOURCES]
    text += ["", "engines:"]
    for kind in engines.kinds():
        reason = kind.why_not()
        text.append(f"  {kind.name:<14} {kind.description}" + (f" (cannot run here: {reason})" if reason else ""))
    return "\n".join(text)


def _degrees(profile: dict[str, Any]) -> str:
    mean, median = f"mean {profile['mean']:.1f}", f"median {profile['median']:.0f}"
    return f"{mean}, {median}, max {profile['max']:,}, Gini {profile['gini']:.2f}"


def _percent(share: float) -> str:
    """Two digits, and never all if a part is left out."""
    return f"{min(100 * share, 99):.2g} %" if share >= 1e-4 else "less than 0.01 %"


def _lines(rows: Iterable[tuple[str, object]]) -> str:
    return "\n".join(f"{key}: {shown(value)}" for key, value in rows)
