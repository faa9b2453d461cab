"""The table of a dry run in words: short numbers, times with units, what is counted, estimated, unseen or none."""

import pytest

from bicliques.pipeline.cli.cards import _percent
from bicliques.pipeline.estimate.table import BYTES, COUNTS, TIMES, Cell, Guess, guess, in_range, short, threshold_table
from bicliques.schemas.errors import written


def cell(left: int, right: int, count: float, seconds: float, exact: bool = False) -> Cell:
    return Cell(left, right, guess(count, 0.1), guess(seconds, 0.1), exact)


def table(*cells: Cell, workers: int | None = None) -> list[str]:
    return written(threshold_table(cells, workers)).splitlines()


CELLS = (
    *(cell(1, 1, 7.33e12, 40 * 86400), cell(1, 5, 2.0e9, 7300)),
    *(cell(5, 1, 117e3, 99.0), Cell(5, 5, Guess(0.0, 0.0, 1.26e6), guess(0.5, 0.1), False)),
    *(cell(20, 1, 517.0, 0.2, exact=True), cell(20, 5, 0.0, 0.0, exact=True)),
)


def test_rows_are_left_thresholds_and_columns_right_ones():
    title, _, head, *rows, _, proposal = table(*CELLS)
    assert "(~ estimated, >= at least, <= at most, . none)" in title
    assert head.split() == ["left", "\\", "right", "1", "5"]
    assert [" ".join(row.split()) for row in rows] == [
        "1 ~7.3 T 40 d ~2.0 G 2.0 h",
        "5 ~120 k 1.6 min <=1.3 M <1 s",
        "20 517 <1 s .",
    ]
    assert len({len(line) for line in (head, *rows)}) == 1, "columns stand below one another"
    assert proposal == "nearest to 500 groups: --min-left 20 --min-right 1 gives 517 in <1 s"


def test_what_is_known_is_shown_as_a_bound():
    bound, unknown = Guess(57_123.0, 57_123.0, None), Guess(0.0, 0.0, None)
    cells = Cell(1, 1, bound, Guess(3.0, 3.0, None), False), Cell(1, 5, bound, unknown, False)
    more = (
        Cell(5, 1, Guess(0.2, 0.0, 9.0), guess(70.0, 0.0), False),
        Cell(5, 5, Guess(9e4, 57.0, None), guess(7.0, 0.1), False),
    )
    row, last = table(*cells, *more)[3:5]
    assert " ".join(row.split()) == "1 >=57 k >=3.0 s >=57 k"
    assert " ".join(last.split()) == "5 <=9 <=1.2 min ~90 k 7.0 s"


def test_workers_share_the_time():
    assert "~7.3 T 20 d" in table(*CELLS, workers=2)[3]
    slow = cell(1, 1, 1e9, 1e5), cell(5, 5, 500.0, 24.0, exact=True)
    assert table(slow[0], cell(1, 5, 1e9, 1e5), cell(5, 1, 1e9, 1e5), slow[1], workers=2)[-1].endswith("500 in 12 s")


def test_nothing_is_proposed_if_there_are_few():
    assert len(table(cell(1, 1, 1000.0, 3.0))) == 4


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "<1 s"),
        (1.0, "1.0 s"),
        (9.96, "10 s"),
        (59.0, "59 s"),
        (150.0, "2.5 min"),
        (7200.0, "2.0 h"),
        (9e5, "10 d"),
    ],
)
def test_times_have_a_unit(seconds, words):
    assert short(seconds, TIMES) == words
    assert short(1e10, TIMES) == "320 years"


def test_no_number_has_more_than_two_digits():
    assert in_range(Guess(10_306.0, 7_567.0, 14_037.0), COUNTS) == "about 10 k (7.6 k to 14 k)"
    assert in_range(Guess(729_212.0, 729_001.0, 993_100.0), BYTES) == "about 730 kB (730 kB to 990 kB)"
    assert in_range(Guess(123_456.0, 3_456.0, None), COUNTS) == "about 120 k (at least 3.5 k)"
    assert in_range(Guess(3_456.0, 3_456.0, None), COUNTS) == "at least 3.5 k"
    assert in_range(Guess(3_456.0, 3_451.0, 3_459.0), COUNTS) == "about 3.5 k"
    assert in_range(Guess(0.2, 0.1, 0.3), TIMES) == "<1 s"
    assert [short(n, COUNTS) for n in (0.0, 7.0, 173.0, 999.0, 1000.0)] == ["0", "7", "170", "1,000", "1.0 k"]


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.2, "20 %"), (0.999, "99 %"), (0.034, "3.4 %"), (0.00047, "0.047 %"), (1e-9, "less than 0.01 %")],
)
def test_a_share_is_never_written_with_an_exponent(share, words):
    assert _percent(share) == words
