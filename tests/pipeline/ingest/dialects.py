"""Random small graphs in many dialects, read by the program: how often it is right, refuses, or is wrong.

python -m tests.pipeline.ingest.dialects --table --n 5000 --seed 1
python -m tests.pipeline.ingest.dialects --show "cross table of counts" --seed 1
"""

import argparse
import contextlib
import logging
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

from bicliques.pipeline.ingest import step
from bicliques.pipeline.ingest.table.normalise import EdgeTable, Labels
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from tests.pipeline.ingest import dialect_edges, dialect_objects, dialect_tables
from tests.pipeline.ingest.advice import advised
from tests.pipeline.ingest.dialect_graphs import DIALECTS, Case, case_of

RIGHT, REFUSED, WRONG = "right", "refused", "WRONG"
_WRITERS = (dialect_edges, dialect_tables, dialect_objects)  # they register their dialects

_seen: list[tuple[str, str]] = []


class _Seen(EdgeTable):
    """It keeps the edges that it gets, and writes nothing."""

    def add(self, batch: pa.RecordBatch) -> None:
        _seen.extend((str(u), str(v)) for u, v in zip(*(column.to_pylist() for column in batch.columns), strict=True))
        super().add(batch)

    def write(self, path: Path) -> None:
        pass


@contextlib.contextmanager
def only_reading() -> Iterator[None]:
    """Reading without writing tables, which takes most of the time of a small input. What it notes is not logged."""
    logging.disable(logging.WARNING)
    unwritten = mock.patch.object(Labels, "write", return_value=None)
    in_place = mock.patch.object(step, "all_or_nothing", contextlib.nullcontext)
    try:
        with mock.patch.object(step, "EdgeTable", _Seen), unwritten, in_place:
            yield
    finally:
        logging.disable(logging.NOTSET)


def read(source: Any, options: dict[str, Any], folder: Path) -> frozenset[tuple[str, str]]:
    """The edges that the program reads, inside `only_reading`.

    Raises
    ------
    InputError
    """
    _seen.clear()
    step.ingest(source, _options(options), folder, "cpu")
    return frozenset(_seen)


def _options(options: dict[str, Any]) -> IngestOptions:
    try:
        return IngestOptions(**options)
    except TypeError as error:
        raise InputError(f"there is no such option ({error})") from error


def judge(case: Case, folder: Path) -> tuple[str, str]:
    """RIGHT, REFUSED or WRONG, and the sentence of a refusal or what was read."""
    try:
        edges = read(case.put(folder), case.options, folder)
    except InputError as error:
        return REFUSED, error.written
    return (RIGHT if case.is_right(edges) else WRONG), f"read {sorted(edges)}, meant {sorted(case.edges or ())}"


def trapped(case: Case, sentence: str, folder: Path) -> str | None:
    """Advice of a refusal that leads to a wrong graph when it is followed literally, if none leads to the right one."""
    wrong = None
    for advice in advised(sentence):
        if advice.command:
            continue
        try:
            source, options = advice.applied(case.put(folder), case.options)
            edges = read(source, options, folder)
        except InputError:
            continue
        if case.is_right(edges):
            return None
        wrong = wrong or advice.text
    return wrong


def _table(n: int, seed: int) -> None:
    found: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as name, only_reading():
        for k in range(n):
            case = case_of(seed, k)
            verdict, sentence = judge(case, Path(name))
            found[case.tag, verdict] += 1
            found[case.tag, "plain"] += case.is_plain and verdict == REFUSED
            found[case.tag, "trap"] += verdict == REFUSED and trapped(case, sentence, Path(name)) is not None
    columns = (RIGHT, REFUSED, WRONG, "plain", "trap")
    print(f"{'':46}{'right':>8}{'refused':>9}{'WRONG':>7}{'of these: plain, refused':>26}{'trap':>6}")  # noqa: T201
    total = ("all", *(sum(found[tag, column] for tag in DIALECTS) for column in columns))
    for tag, *counts in [*((tag, *(found[tag, column] for column in columns)) for tag in DIALECTS), total]:
        print(f"{tag:46}{counts[0]:8}{counts[1]:9}{counts[2]:7}{counts[3]:26}{counts[4]:6}")  # noqa: T201


def _show(tag: str, n: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as name, only_reading():
        for case in (case_of(seed, list(DIALECTS).index(tag) + k * len(DIALECTS)) for k in range(n)):
            verdict, sentence = judge(case, Path(name))
            trap = trapped(case, sentence, Path(name)) if verdict == REFUSED else None
            shown = repr(case.source) if case.source is not None else case.data.decode(errors="backslashreplace")
            print(f"== {case.name} {case.options}\n{shown}\n-- {verdict}: {sentence}\n-- trap: {trap}")  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--table", action="store_true", help="how many cases of each dialect are right, refused and wrong"
    )
    what.add_argument(
        "--show", metavar="DIALECT", choices=list(DIALECTS), help="cases of a dialect and what is made of them"
    )
    parser.add_argument("--n", type=int, help="cases (5000 in the table, 3 shown)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.table:
        _table(given.n or 5000, given.seed)
    else:
        _show(given.show, given.n or 3, given.seed)


if __name__ == "__main__":
    main()
