"""The command that goes on with a run, which errors and results name."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

__all__ = ["how_to_resume"]


def how_to_resume(path: Path | str | os.PathLike[str], outcome: str = "") -> str:
    """The command that goes on with the run in `path`, to be pasted into a shell whatever the folder is called.

    Parameters
    ----------
    path : path
    outcome : str
        How the run ended: a limit on the number of results that was reached would be reached again at once, and is
        lifted.
    """
    return f"bicliques resume {shlex.quote(str(path))}{' --max-results none' if outcome == 'max_results' else ''}"
