"""A graph that was generated into a folder, and what is known of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bicliques.pipeline.run.files import PathLike, disk_errors, read_json, write_json
from bicliques.pipeline.run.names import UNFINISHED_FILE, temporary_name
from bicliques.pipeline.run.outside import names_in, remove_own
from bicliques.pipeline.run.progress import number
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.regular_files import regular
from bicliques.schemas.values import as_path

#: Files beside the parts. A folder is read as a graph without files whose names begin so.
TRUTH_FILE, PLANTED_FILE = "_truth.json", "_truth.parquet"
_PART, _SUFFIX = "part-", ".parquet"


def part_name(number: int) -> str:
    """The file of a part."""
    return f"{_PART}{number:05d}{_SUFFIX}"


def is_of_graph(name: str) -> bool:
    """Whether a generated graph has a file of this name, or had one while it was written."""
    plain = name.removeprefix(".").removesuffix(".tmp") if name.startswith(".") else name
    if name != plain and name != temporary_name(plain):
        return False
    is_part = plain.startswith(_PART) and plain.endswith(_SUFFIX) and plain[len(_PART) : -len(_SUFFIX)].isdecimal()
    return is_part or plain in (TRUTH_FILE, PLANTED_FILE, UNFINISHED_FILE)


def remove_graph(place: Path) -> None:
    """Remove the files of a graph from a folder that may not be there; first the one that says that it is whole.

    Until all others are gone, another one says that parts are missing, so the rest is not read as a graph.

    Raises
    ------
    ResourceError
        If one cannot be removed.
    """
    there = names_in(place)
    if UNFINISHED_FILE not in there and any(map(is_of_graph, there)):
        write_json(place / UNFINISHED_FILE, {})
    with disk_errors(place):
        (place / TRUTH_FILE).unlink(missing_ok=True)
        remove_own(place, lambda name: is_of_graph(name) and name != UNFINISHED_FILE)
        (place / UNFINISHED_FILE).unlink(missing_ok=True)


class Generated:
    """A graph that was generated as a whole.

    Parameters
    ----------
    path : Path
        The folder, which `bicliques.mine` and `bicliques.count` read as one graph.

    Attributes
    ----------
    truth : dict
        What ``_truth.json`` says; docs/generate.md explains it.
    edges : int
        Number of edges. No two are equal.
    fingerprint : int
        64 bits that follow from the set of edges alone.

    Raises
    ------
    IncompleteError
        If there is no graph, or not all of it.
    """

    def __init__(self, path: PathLike):
        self.path = path = as_path(path, "the folder of the graph")
        self.truth: dict[str, Any] = read_json(path / TRUTH_FILE)
        missing = [part["file"] for part in self.truth["parts"] if not (path / part["file"]).is_file()]
        if missing:
            raise IncompleteError(f"{path / missing[0]} is missing; generate the graph again with --overwrite")
        self.edges, self.fingerprint = int(self.truth["edges"]), int(self.truth["fingerprint"])

    @property
    def planted(self) -> list[dict[str, Any]]:
        """The planted bicliques: labels ``left`` and ``right``, ``n_left``, ``n_right``, and the ``edges`` in it."""
        import pyarrow.parquet as pq

        rows: list[dict[str, Any]] = pq.read_table(regular(self.path / PLANTED_FILE)).to_pylist()
        return rows

    def __repr__(self) -> str:
        return f"<generated graph of {number(self.edges, 'edge')} in {self.path}>"
