"""Says how far a run is: a record for callbacks, and for people a line on stderr or below the cell of a notebook."""

from __future__ import annotations

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TextIO

from bicliques.pipeline.process.logs import write_if_possible
from bicliques.schemas.errors import InputError, in_one_line
from bicliques.schemas.facts import BEFORE_MINING

Step = Literal["ingest", "build", "plan", "mine", "prove", "report", "compare", "generate", "publish", "sample"]

_WORDS: dict[Step, str] = {
    "ingest": "reading",
    "build": "building the graph",
    "plan": "weighing the roots",
    "mine": "mining",
    "prove": "proving",
    "report": "writing the report",
    "compare": "comparing",
    "generate": "drawing",
    "publish": "publishing",
    "sample": "sampling",
}

#: Seconds between two lines where nothing can be redrawn, and between two redraws of the bar.
_LINE_S, _BAR_S = 10.0, 0.2
_BAR_WIDTH = 24
#: Seconds of a step after which it is told how long it takes yet.
_TELLS_S = 5.0


class Gap(NamedTuple):
    """The measure of the largest biclique so far, and one that no biclique exceeds which is not found yet."""

    best: int
    bound: int

    def __str__(self) -> str:
        if self.bound <= self.best:
            return f"largest {self.best:,}, and none is larger"
        open_share = 100 * (self.bound - self.best) / self.bound
        return f"largest {self.best:,}, at most {self.bound:,} (gap {open_share:.0f} %)"


@dataclass(frozen=True)
class Progress:
    """How far a run is at one moment.

    Parameters
    ----------
    step : Step
        The step that runs now.
    share : float
        Share of the estimated work of the step that is done, 0 to 1.
    bicliques : int
        Bicliques of the whole run so far. While proving and comparing: rows read so far. While generating: edges.
    rate : float
        Bicliques per second, over this session.
    bytes : int
        Size of the parts written so far, in bytes. While publishing: of all files.
    running : int
        Number of slices that run now.
    workers : str
        The workers in a few words.
    seconds : float
        Seconds since the step began.
    of_seconds : float
        While sampling: seconds that it should take.
    gap : Gap or None
        While the largest are searched for: how large they are, and how large others may be.
    note : str
        A text that is shown once, such as that machine code is being compiled. Empty if there is none.
    """

    step: Step
    share: float = 0.0
    bicliques: int = 0
    rate: float = 0.0
    bytes: int = 0
    running: int = 0
    workers: str = ""
    seconds: float = 0.0
    of_seconds: float = 0.0
    gap: Gap | None = None
    note: str = ""


OnProgress = Callable[[Progress], None]


def to_callback(wish: OnProgress | bool | None, stream: TextIO | None = None) -> OnProgress:
    """The function to call with every `Progress`.

    Parameters
    ----------
    wish : callable, bool or None
        A callable is used as it is. True writes to `stream`. False writes nothing. None writes to `stream` if that is
        a terminal.
    stream : TextIO or None
        None takes the output of the cell in a notebook, and elsewhere stderr. In a notebook the output is rewritten,
        and on a terminal one line; elsewhere a line is written every 10 seconds.

    Notes
    -----
    Each of these functions has an output of its own in a notebook. So a call makes one, and hands it on.
    """
    if callable(wish):
        return wish
    if wish is False:
        return lambda progress: None
    if wish is not True and wish is not None:
        raise InputError(f"progress must be True, False, None or a function, not {wish!r}")
    if stream is None and _in_notebook():
        return _BelowCell()
    stream = stream or sys.stderr
    if wish is None and not stream.isatty():
        return lambda progress: None
    return _OnStream(stream)


def pass_on(notes: Iterable[Progress], wish: OnProgress | bool | None) -> None:
    """Pass on notes that were kept back until the input was read without an error."""
    on_progress = to_callback(wish)
    for note in notes:
        on_progress(note)


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook. IPython is not imported for that."""
    find = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return find is not None and getattr(find(), "kernel", None) is not None


class _Line(ABC):
    """Says from time to time how far a step is. `redraws` is whether a line takes the place of the one before it."""

    def __init__(self, redraws: bool):
        self.redraws = redraws
        self.last = self.began = self.share = 0.0
        self.step = ""

    def __call__(self, progress: Progress) -> None:
        if progress.note:
            self._write(progress.note, keep=True)
            return
        untold = BEFORE_MINING if self.redraws else (*BEFORE_MINING, "report")
        if progress.step in untold and progress.share >= 1.0:
            return  # the line of the next step, or the result, shows that this step is done
        now = time.monotonic()
        new = progress.step != self.step or progress.share >= 1.0
        if not new and now - self.last < (_BAR_S if self.redraws else _LINE_S):
            return
        if progress.step != self.step:
            self.began, self.share = now, progress.share
        self.last, self.step = now, progress.step
        left = time_left(now - self.began, progress.share - self.share, 1.0 - progress.share)
        self._write(line(progress, self.redraws, self._columns(), left), keep=progress.share >= 1.0)

    def _columns(self) -> int | None:
        """How wide a line may be. None: as wide as it is."""
        return None

    @abstractmethod
    def _write(self, text: str, keep: bool) -> None:
        """Show a line. Without `keep`, the next line takes its place where that can be."""


class _OnStream(_Line):
    def __init__(self, stream: TextIO):
        super().__init__(stream.isatty())
        self.stream = stream

    def _columns(self) -> int | None:
        try:
            return os.get_terminal_size(self.stream.fileno()).columns - 1 if self.redraws else None
        except (AttributeError, OSError, ValueError):  # it has no descriptor, or none of a terminal
            return None

    def _write(self, text: str, keep: bool) -> None:
        text = in_one_line(text)
        line = f"\r\x1b[2K{text}" + ("\n" if keep else "") if self.redraws else f"{text}\n"
        write_if_possible(self.stream, line)


class _BelowCell(_Line):
    """One output of a cell, with the lines that stay and the one that is to be replaced. The first line makes it."""

    def __init__(self) -> None:
        super().__init__(redraws=True)
        self.kept: list[str] = []
        self.shown: Any = None

    def _write(self, text: str, keep: bool) -> None:
        from IPython.display import display  # it is there, because IPython runs this process

        data = {"text/plain": "\n".join([*self.kept, text.rstrip()])}
        if keep:
            self.kept.append(text.rstrip())
        if self.shown is None:
            self.shown = display(data, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self.shown.update(data, raw=True)


def time_left(seconds: float, done: float, left: float) -> str:
    """How long a step takes yet, given the share that was `done` in so many seconds. Empty as long as nobody knows."""
    if seconds < _TELLS_S or done <= 0 or left <= 0:
        return ""
    wanted = seconds * left / done
    unit, length = next((each for each in (("h", 3600), ("min", 60)) if wanted >= 1.5 * each[1]), ("s", 1))
    return f"about {wanted / length:.0f} {unit} left"


def line(progress: Progress, with_bar: bool = False, columns: int | None = None, left: str = "") -> str:
    """`progress` in one line of at most some 120 characters, or of so many columns. The last words go first."""
    if progress.step == "sample":
        return f"{_WORDS[progress.step]}, {progress.seconds:.0f} of {progress.of_seconds:g} s"[:columns]
    words = [f"{_WORDS[progress.step]:<9}"]
    if progress.step in ("mine", "prove", "compare", "generate", "publish"):
        width = _BAR_WIDTH if columns is None or columns >= 100 else _BAR_WIDTH // 2
        filled = int(progress.share * width)
        words += [f"[{'#' * filled}{'.' * (width - filled)}]"] if with_bar else []
        of_the_work = " of the work" if columns is None or columns >= 70 else ""
        words += [f"{100 * progress.share:5.1f} %{of_the_work}"]
        words += [left] if left else []
        what = "edge" if progress.step == "generate" else "biclique"
        if progress.step != "publish":
            words += [str(progress.gap) if progress.gap is not None else number(progress.bicliques, what)]
        words += [f"{progress.rate:,.0f}/s"] if progress.rate and progress.gap is None else []
        words += [size(progress.bytes)] if progress.bytes else []
        words += [progress.workers] if progress.workers else []
    while columns is not None and len(words) > 1 and len("  ".join(words)) > columns:
        words.pop()
    return "  ".join(words)[:columns]


def size(n_bytes: float) -> str:
    """A number of bytes in words, with a decimal unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"


def number(n: int, one: str, many: str = "") -> str:
    """A number with its noun in the singular or the plural, which ends in s unless it is given."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"
