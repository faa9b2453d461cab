r"""The largest bicliques: how long `bicliques.largest` takes, with its steps, where the answers are published.

    python -m benchmarks.largest
    python -m benchmarks.largest youtube --engine bitmatrix
    python -m benchmarks.largest --record

Each question is asked of its file --repeats times, after one time that warms up, and the run with the median time is
kept: the seconds of the whole call without the page, those of its steps, the bound that was found first, and the bands.
The answer must have the known sizes. The published times are those of the fastest program that a paper names; they were
measured on the authors' machines, with one core.

``--record`` replaces the numbers of this kind of machine. Questions that are not asked keep their numbers if these are
of the same commit.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import bicliques as bq
from benchmarks.command import add_data, add_output, add_repeats, begun, chosen, new_parser, output_file, run, write
from benchmarks.commands import kind_of_machine
from benchmarks.facts import Graph
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.search import By


class Question(NamedTuple):
    """What is asked of a graph: the largest by a measure with at least so many members on either side.

    `sizes` are those of the answer, None if there is none. `published` is what the papers say in seconds.
    """

    by: By
    least: int
    sizes: tuple[int, int] | None
    published: str | None = None


#: Published are iMEBS (Dai et al., SIGMOD 2025) for youtube, all six questions together, and movielens_100k, and for
#: the others MBC (Lyu et al., PVLDB 2020).
QUESTIONS = {
    "youtube": (
        Question("edges", 3, (313, 3), "0.024 to 0.053"),
        Question("edges", 5, (71, 5), "0.024 to 0.053"),
        Question("edges", 7, (30, 7), "0.024 to 0.053"),
        Question("edges", 9, (9, 20), "0.024 to 0.053"),
        Question("edges", 11, (11, 15), "0.024 to 0.053"),
        Question("edges", 13, None, "0.024 to 0.053"),
    ),
    "marvel": (
        Question("edges", 4, (4, 588), "31, or 0.035 with an index that takes 65"),
        Question("vertices", 4, (4, 588)),
        Question("balance", 4, (16, 15)),
    ),
    "dbpedia_writers": (
        Question("edges", 4, (34, 4), "19, or 0.009 with an index that takes 0.29"),
        Question("vertices", 4, (34, 4)),
        Question("balance", 4, (9, 6)),
    ),
    "movielens_100k": (Question("edges", 13, (96, 13), "96"), Question("edges", 3, (181, 7), "101")),
}


def asked(graph: Graph, question: Question, repeats: int, engine: str) -> dict[str, Any]:
    """The run with the median time.

    Raises
    ------
    ResourceError
        If the answer has other sizes than the known ones.
    """
    runs = [_once(graph, question, engine) for _ in range(repeats + 1)][1:]
    return sorted(runs, key=lambda entry: entry["seconds"])[(repeats - 1) // 2]


def _once(graph: Graph, question: Question, engine: str) -> dict[str, Any]:
    least = {"min_left": question.least, "min_right": question.least}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        began = time.perf_counter()
        found = bq.largest(
            graph.path, Path(folder) / "run", by=question.by, engine=engine, report=False, progress=False, **least
        )
        seconds = time.perf_counter() - began
        rows = found.to_arrow().select(["n_left", "n_right"]).to_pylist()
        manifest = found.manifest
    sizes = [(row["n_left"], row["n_right"]) for row in rows]
    if sizes != ([question.sizes] if question.sizes else []):
        raise ResourceError(f"the largest of {graph.name} by {question.by} has the sizes {sizes}, not {question.sizes}")
    sessions = manifest.mining["sessions"]
    return {
        "sizes": sizes,
        "seconds": seconds,
        "steps": manifest.seconds,
        "busy_s": sum(session["busy_seconds"] for session in sessions),
        "first_bound": manifest.graph["bound"],
        "bands": len(manifest.graph["bands"]),
        "published_s": question.published,
    }


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("largest", __doc__)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help=f"of {', '.join(QUESTIONS)} (default: all)")
    add_data(parser)
    add_repeats(parser, 3, "runs of each")
    parser.add_argument("--engine", default="auto", metavar="NAME", help="(default: auto)")
    add_output(parser, "largest.json")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the file after each question."""
    words = parser().parse_args(arguments)
    graphs, output = chosen(words, tuple(QUESTIONS), tuple(QUESTIONS)), output_file(words, "largest")
    unknown = [graph.name for graph in graphs if graph.name not in QUESTIONS]
    if unknown:
        raise InputError(f"nothing is known of the largest of {', '.join(unknown)}; ask of {', '.join(QUESTIONS)}")
    kind = kind_of_machine(words.engine)
    recorded, result = begun(words, output, kind, {"repeats": words.repeats, "engine": words.engine})
    for graph in graphs:
        for question in QUESTIONS[graph.name]:
            entry = asked(graph, question, words.repeats, words.engine)
            name = f"{question.by}, both sides at least {question.least}"
            result["graphs"].setdefault(graph.name, {})[name] = entry
            published = "" if question.published is None else f", published {question.published} s"
            print(f"{graph.name} {name}: {entry['seconds']:.2f} s{published}", flush=True)
            write(output, recorded | {kind: result})
    print(f"numbers: {output}")


if __name__ == "__main__":
    run(main)
