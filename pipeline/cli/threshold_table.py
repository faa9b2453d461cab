"""The table of a dry run: how many bicliques there would be with larger thresholds, and how long it would take."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.api.dry_running import DryRun
    from pipeline.estimate.table import Cell

__all__ = ["threshold_table", "time_words"]

_COUNTS = ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"))
_TIMES = ((365 * 86400.0, " years"), (86400.0, " d"), (3600.0, " h"), (60.0, " min"), (1.0, " s"))


def threshold_table(dry: DryRun) -> str:
    """The table and, if the run would be long, thresholds that make it short."""
    from pipeline.estimate.table import proposed  # here, because cards of other commands are made without it

    assert dry.estimate is not None
    cells, n = dry.estimate.table, dry.workers or 1
    at = {(cell.min_left, cell.min_right): cell for cell in cells}
    left, right = (sorted({getattr(cell, f"min_{side}") for cell in cells}) for side in ("left", "right"))
    rows = [["left \\ right", *map(str, right)]]
    rows += [[str(a), *(_words(at[a, b], n) for b in right)] for a in left]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "bicliques with at least so many members, and the time to mine them (~ estimated, ? not seen, . none):",
        "",
    ]
    lines += ["  ".join(text.rjust(w) for text, w in zip(row, widths, strict=True)) for row in rows]
    cell = proposed(cells, n)
    if cell is not None:
        count = f"{'' if cell.exact else 'about '}{_short(cell.bicliques.value, _COUNTS)}"
        noun = "biclique" if count == "1" else "bicliques"
        asked = f"with --min-left {cell.min_left} --min-right {cell.min_right}"
        lines += ["", f"{asked} {count} {noun} in about {_short(cell.seconds.value / n, _TIMES)}"]
    return "\n".join(lines)


def time_words(seconds: float) -> str:
    """A time with its unit."""
    return f"{seconds:,.1f} s" if seconds < 100 else _short(seconds, _TIMES)


def _words(cell: Cell, workers: int) -> str:
    if cell.exact and cell.bicliques.value == 0:
        return "."
    if not cell.exact and cell.bicliques.value == 0:
        return f"? {_short(cell.seconds.value / workers, _TIMES)}"
    mark = "" if cell.exact else "~"
    return f"{mark}{_short(cell.bicliques.value, _COUNTS)} {_short(cell.seconds.value / workers, _TIMES)}"


def _short(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """Two digits and a unit; all digits of a number below the smallest unit, and <1 of a time below it."""
    for size, name in units:
        if value >= size:
            number = value / size
            return f"{number:,.0f}{name}" if number >= 9.5 else f"{number:.1f}{name}"
    return f"<1{units[-1][1]}" if units is _TIMES else f"{value:.0f}"
