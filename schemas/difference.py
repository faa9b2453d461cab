"""The record of a comparison of two runs, ``diff.json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.records import read_as
from bicliques.schemas.totals import fingerprint_from


@dataclass(frozen=True)
class Counted:
    """A set of bicliques.

    Parameters
    ----------
    fingerprint : int
        Sum of the ids modulo 2**64. A decimal string in JSON.
    """

    count: int
    fingerprint: int


@dataclass(frozen=True)
class ComparedRun:
    """One of the two runs.

    Parameters
    ----------
    folder : str
        Where it was when it was compared.
    run : str
        The name that no other run has.
    created : str
        When it was proven, in UTC, ISO 8601.
    digest : str
        Of the input.
    left, right : str
        What the input calls the sides.
    found : Counted or None
        All its bicliques. None if it is an edge list that was not mined, and nothing tells their number.
    """

    folder: str
    run: str
    created: str
    source: str
    digest: str
    left: str
    right: str
    found: Counted | None


@dataclass(frozen=True)
class Record:
    """What is known of a comparison beside its rows.

    Parameters
    ----------
    schema_version : int
        Version of the rows.
    version : str
        Version of the package.
    created : str
        When the comparison was made, in UTC, ISO 8601.
    gone, new : Counted
        The bicliques that only the old run has, and those that only the new run has.
    unchanged : int or None
        Number of bicliques that both runs have. None if neither was mined.
    vertices_left, vertices_right : int
        Number of vertices that are in a biclique that is gone or new.
    notes : tuple of str
        In which way the questions of the two runs differ.
    """

    schema_version: int
    version: str
    created: str
    old_run: ComparedRun
    new_run: ComparedRun
    gone: Counted
    new: Counted
    unchanged: int | None
    vertices_left: int
    vertices_right: int
    notes: tuple[str, ...]
    proven: tuple[str, ...]
    seconds: float

    @property
    def share(self) -> float | None:
        """Of the bicliques that are in any of the two runs, the share that is in one of them only, 0 to 1.

        None if neither was mined.
        """
        if self.unchanged is None:
            return None
        changed = self.gone.count + self.new.count
        return changed / max(changed + self.unchanged, 1)

    def to_json(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        data: dict[str, Any] = asdict(self)
        for counted in (data["gone"], data["new"], data["old_run"]["found"], data["new_run"]["found"]):
            if counted is not None:
                counted["fingerprint"] = str(counted["fingerprint"])
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Record:
        """Inverse of `to_json`.

        Raises
        ------
        IncompleteError
            If a field is missing or damaged.
        """
        try:
            sets = {name: _counted(data[name]) for name in ("gone", "new")}
            runs = {name: data[name] | {"found": _counted(data[name]["found"])} for name in ("old_run", "new_run")}
        except (KeyError, TypeError, ValueError) as error:
            raise IncompleteError(f"it is damaged ({type(error).__name__}: {error})") from error
        return read_as(cls, data | sets | runs, "the comparison")


def _counted(data: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if data is None else data | {"fingerprint": fingerprint_from(data["fingerprint"])}
