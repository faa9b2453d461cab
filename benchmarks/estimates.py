"""Compares the estimates of a dry run with the true numbers of bicliques, for all thresholds of its table.

The truth is counted by the CPU engine on one core, by size, without thresholds. If that takes longer than
``--patience``, it is counted with thresholds, the largest first, as far as that ends in time. Thresholds that no count
covers are left out. The estimate of a pair of thresholds is right if it is within a factor of 3 of the truth.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import bicliques as bq
from benchmarks.command import add_data, add_output, chosen, new_parser, output_file, run, write
from benchmarks.facts import Graph, commit, machine
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.sizes import SizeCounts

#: Graphs whose numbers are recorded: all of which counts are known or can be made.
RECORDED = (
    "unicode_languages",
    "ucforum",
    "moreno_crime",
    "dbpedia_writers",
    "dbpedia_locations",
    "dbpedia_countries",
    "escorts",
    "marvel",
    "movielens_ti",
    "movielens_ui",
    "movielens_ut",
    "movielens_100k",
    "youtube",
    "douban_movie_actor",
    "dblp4_paper_author",
    "bookcrossing_core",
    "anime_ratings",
    "steam_purchase",
    "github2009_repo_language",
    "github2009_mini",
    "fimi_mushroom",
    "fimi_chess",
    "fimi_t10i4d100k",
    "cp4im_primary_tumor",
    "cp4im_vote",
    "cp4im_heart_cleveland",
    "cp4im_kr_vs_kp",
    "hyper_ndc_substances",
    "hyper_email_eu",
    "hyper_tags_ask_ubuntu",
    "debian12_package_tag",
    "debian12_package_depends",
)
#: Thresholds with which the truth is counted where a count of all takes too long.
FALLBACKS = ((50, 50), (20, 50), (50, 20), (20, 20), (10, 20), (20, 10), (10, 10), (5, 5))
#: The factor within which an estimate is right.
FACTOR = 3.0


def truths(graph: Graph, patience: float) -> list[tuple[int, int, SizeCounts]]:
    """Counts by size of the bicliques that are large enough, each with its thresholds."""
    found: list[tuple[int, int, SizeCounts]] = []
    too_long: list[tuple[int, int]] = []
    for left, right in ((1, 1), *FALLBACKS):
        if any(left <= a and right <= b for a, b in too_long):
            continue
        one = {"engine": "cpu", "workers": 0, "progress": False, "sizes": True, "time_limit": patience}
        counted = bq.count(graph.path, min_left=left, min_right=right, **one)  # type: ignore[arg-type]
        if counted.complete:
            assert counted.sizes is not None
            found.append((left, right, counted.sizes))
            if (left, right) == (1, 1):
                break
        elif (left, right) != (1, 1):
            too_long.append((left, right))
    return found


def truth_of(left: int, right: int, counted: list[tuple[int, int, SizeCounts]]) -> int | None:
    """The true number of bicliques for a pair of thresholds. None if it is not known."""
    for a, b, sizes in counted:
        if left >= a and right >= b:
            return sizes.pick((sizes.n_left >= left) & (sizes.n_right >= right)).total
    return None


def compare(graph: Graph, known: list[tuple[int, int, SizeCounts]], sample_time: float) -> dict[str, Any]:
    """How far the estimates of one dry run are from the truth.

    Pairs of thresholds without bicliques are left out if the dry run says so, too, because nobody doubts that.

    Raises
    ------
    IncompleteError
        If a pair was counted wrongly.
    """
    began = time.perf_counter()
    dry = bq.dry_run(graph.path, engine="cpu", count_only=True, sample_time=sample_time, progress=False)
    taken = time.perf_counter() - began
    assert dry.estimate is not None
    counted, guessed = 0, []
    for cell in dry.estimate.table:
        truth, told = truth_of(cell.min_left, cell.min_right, known), cell.bicliques
        if truth is None or (truth == 0 and told.value == 0):
            continue
        if cell.exact:
            if told.value != truth:
                raise IncompleteError(f"{graph.name}: {told.value} bicliques were counted, and there are {truth}")
            counted += 1
            continue
        factor = max(told.value / truth, truth / told.value) if truth and told.value else None
        guessed.append(
            {
                "thresholds": f"{cell.min_left} x {cell.min_right}",
                "truth": truth,
                "estimate": round(told.value, 1),
                "factor": None if factor is None else round(factor, 3),
                "in_range": told.low <= truth * (1 + 1e-9) and truth <= told.high * (1 + 1e-9),
            }
        )
    return {"seconds": round(taken, 2), "counted": counted, "estimated": guessed}


def summary(found: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Number of pairs that were counted and that were estimated, and of the latter those right and in their range."""
    every = list(found)
    guessed = [pair for one in every for pair in one["estimated"]]
    return {
        "counted": sum(one["counted"] for one in every),
        "estimated": len(guessed),
        "right": sum(pair["factor"] is not None and pair["factor"] <= FACTOR for pair in guessed),
        "in_range": sum(pair["in_range"] for pair in guessed),
    }


def table(recorded: dict[str, Any], seconds: str) -> list[str]:
    """A table of one time: a line per graph with pairs that were estimated, and one for all others together."""
    lines = ["| graph | counted | estimated | within a factor of 3 | in the range |", "|---|--:|--:|--:|--:|"]
    by_graph = {name: found[seconds] for name, found in recorded["graphs"].items()}
    rows = [(name, [found]) for name, found in by_graph.items() if found["estimated"]]
    others = [found for found in by_graph.values() if found["counted"] and not found["estimated"]]
    for name, found in (*rows, (f"{len(others)} others", others), ("all", list(by_graph.values()))):
        lines.append(f"| {name} | {' | '.join(str(number) for number in summary(found).values())} |")
    return lines


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = new_parser("estimates", __doc__)
    made.add_argument("graphs", nargs="*", help="files, or names of graphs (default: the graphs that ship)")
    add_data(made)
    add_output(made, "estimates.json")
    made.add_argument("--sample-times", type=float, nargs="+", default=[1.0, 10.0], metavar="SECONDS")
    made.add_argument("--patience", type=float, default=120.0, metavar="SECONDS", help="for each true count")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a line per graph and time, and write the numbers."""
    words = parser().parse_args(arguments)
    file, graphs = output_file(words, "estimates"), chosen(words, RECORDED)
    result: dict[str, Any] = {
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "patience": words.patience,
        "graphs": {},
    }
    for graph in graphs:
        known = truths(graph, words.patience)
        result["graphs"][graph.name] = {
            f"{seconds:g}": compare(graph, known, seconds) for seconds in words.sample_times
        }
        for seconds, found in result["graphs"][graph.name].items():
            print(graph.name, f"{seconds} s:", summary([found]), flush=True)
        write(file, result)
    for seconds in words.sample_times:
        print(f"\n{seconds:g} s", *table(result, f"{seconds:g}"), sep="\n")


if __name__ == "__main__":
    run(main)
