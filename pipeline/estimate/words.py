"""What an estimate says in words: ranges with two digits, and the table of thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from bicliques.pipeline.estimate.table import FEW, Cell, Guess, proposed

Units = tuple[tuple[float, str], ...]
COUNTS: Units = ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"), (0.0, ""))
BYTES: Units = ((1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (0.0, " B"))
TIMES: Units = ((365 * 86400.0, " years"), (86400.0, " d"), (3600.0, " h"), (60.0, " min"), (1.0, " s"))


def threshold_table(cells: Sequence[Cell], workers: int | None) -> str:
    """The table and, if there are many bicliques, thresholds that leave about as many as people read."""
    n = workers or 1
    at = {(cell.min_left, cell.min_right): cell for cell in cells}
    left, right = (sorted({getattr(cell, f"min_{side}") for cell in cells}) for side in ("left", "right"))
    rows = [["left \\ right", *map(str, right)]]
    rows += [[str(a), *(_words(at[a, b], n) for b in right)] for a in left]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "bicliques with at least so many members, and the time to mine them "
        "(~ estimated, >= at least, <= at most, . none):",
        "",
    ]
    lines += ["  ".join(text.rjust(w) for text, w in zip(row, widths, strict=True)) for row in rows]
    cell = proposed(cells, n)
    if cell is not None:
        asked = f"--min-left {cell.min_left} --min-right {cell.min_right}"
        lines += ["", f"nearest to {FEW} groups: {asked} gives {_words(cell, n, ' in ')}"]
    return "\n".join(lines)


def _words(cell: Cell, workers: int, between: str = " ") -> str:
    """The bicliques and the time of a cell. A time of which nothing is known is left out."""
    count, seconds = cell.bicliques, cell.seconds * (1 / workers)
    if cell.exact:
        counted = f"{count.value:.0f}" if count.value < 1000 else short(count.value, COUNTS)
        return f"{counted}{between}{short(seconds.value, TIMES)}" if count.value else "."
    if count.high is not None and count.value < 0.5:
        most = "" if seconds.high is None else f"{between}<={short(seconds.high, TIMES)}".replace("<=<", "<")
        return f"<={short(count.high, COUNTS)}{most}"
    if count.high is None and count.value <= count.low:
        least = f"{between}>={short(seconds.low, TIMES)}" if seconds.low >= 1.0 else ""
        return f">={short(count.low, COUNTS)}{least}"
    return f"~{short(count.value, COUNTS)}{between}{short(seconds.value, TIMES)}"


def in_range(guess: Guess, units: Units) -> str:
    """A guess with its range, or the bound that is known instead."""
    low, value = short(guess.low, units), short(guess.value, units)
    if guess.high is None:
        return f"at least {low}" if guess.value <= guess.low else f"about {value} (at least {low})"
    high = short(guess.high, units)
    if low != high:
        return f"about {value} ({low} to {high})"
    return value if value.startswith("<") else f"about {value}"


def short(value: float, units: Units) -> str:
    """Two digits and a unit, and <1 of a time below the smallest one."""
    for least, name in units:
        if value >= least:
            number = float(f"{value / (least or 1.0):.2g}")
            return f"{number:.1f}{name}" if number < 10 and least else f"{number:,.0f}{name}"
    return f"<1{units[-1][1]}"
