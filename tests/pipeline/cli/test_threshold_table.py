"""The table of a dry run in words: short numbers, times with units, what is counted, estimated, unseen or none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bicliques.pipeline.cli.cards import threshold_table, time_words
from bicliques.pipeline.estimate.table import Cell, Guess, guess


def cell(left: int, right: int, count: float, seconds: float, exact: bool = False) -> Cell:
    return Cell(left, right, guess(count, 0.1), guess(seconds, 0.1), exact)


def table(*cells: Cell, workers: int | None = None) -> list[str]:
    dry: Any = SimpleNamespace(estimate=SimpleNamespace(table=cells), workers=workers)
    return threshold_table(dry).splitlines()


CELLS = (
    *(cell(1, 1, 7.3e12, 40 * 86400), cell(1, 5, 2.0e9, 7300)),
    *(cell(5, 1, 1.24e6, 12.0), Cell(5, 5, Guess(0.0, 0.0, 1e6), guess(0.5, 0.1), False)),
    *(cell(20, 1, 96.0, 0.2, exact=True), cell(20, 5, 0.0, 0.0, exact=True)),
)


def test_rows_are_left_thresholds_and_columns_right_ones() -> None:
    title, _, head, *rows, _, proposal = table(*CELLS)
    assert "(~ estimated, ? not seen, . none)" in title
    assert head.split() == ["left", "\\", "right", "1", "5"]
    assert [row.split("  ")[-2:] for row in rows[:1]] == [["~7.3 T 40 d", "~2.0 G 2.0 h"]]
    assert [" ".join(row.split()) for row in rows[1:]] == ["5 ~1.2 M 12 s ? <1 s", "20 96 <1 s ."]
    assert len({len(line) for line in (head, *rows)}) == 1, "columns stand below one another"
    assert proposal == "with --min-left 5 --min-right 1 about 1.2 M bicliques in about 12 s"


def test_workers_share_the_time() -> None:
    assert "~7.3 T 20 d" in table(*CELLS, workers=2)[3]
    assert table(*CELLS, workers=2)[-1].endswith("in about 6.0 s")


def test_nothing_is_proposed_for_a_short_run() -> None:
    assert len(table(cell(1, 1, 1000.0, 3.0))) == 4


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (99.0, "99.0 s"), (150.0, "2.5 min"), (7200.0, "2.0 h"), (9e5, "10 d"), (1e9, "32 years")],
)
def test_times_have_a_unit(seconds: float, words: str) -> None:
    assert time_words(seconds) == words
