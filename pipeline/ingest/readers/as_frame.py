"""The advice for a table of 0 and 1 that has a column per vertex: how Python makes a frame of booleans of it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AsFrame"]


@dataclass(frozen=True)
class AsFrame:
    """Python code that makes a pandas frame of a table. The defaults are of a file, however it is read.

    Parameters
    ----------
    frame : str
        Code for the frame.
    first : str
        Code for the name of its first column.
    has_texts : bool
        Whether 0 and 1 are stored as text. Python takes the text "0" as true, so numbers are made of it first.
    """

    frame: str = "frame"
    first: str = "frame.columns[0]"
    has_texts: bool = False

    def remedy(self, has_row_labels: bool = False) -> str:
        """What to do with the table. The first column of some holds the labels of the rows."""
        rows = f".set_index({self.first})" if has_row_labels else ""
        numbers = ".astype(int)" if self.has_texts else ""
        code = f"{self.frame}{rows}{numbers}.astype(bool)"
        return f"make an edge of every 1 (from Python, a pandas frame of booleans is read so: {code})"
