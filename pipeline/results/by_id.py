"""What the results of a run say of one biclique, which is asked for by its id."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.proof.selection import Place, place_of_id, rows_at
from bicliques.pipeline.proof.summary import Summary, place_in_summary
from bicliques.pipeline.rows.collection import Biclique, Rows, bicliques_of
from bicliques.schemas.errors import InputError, UnknownIdError
from bicliques.schemas.values import as_index, whole

if TYPE_CHECKING:
    from bicliques.pipeline.results.explanation import Explanation
    from bicliques.pipeline.results.picture import Picture
    from bicliques.pipeline.run.opened import Run
    from bicliques.schemas.manifest import Manifest
    from bicliques.schemas.sizes import SizeCounts

#: In the place of an id, that of the biclique with most edges.
LARGEST = "largest"
#: An id, or a row that has it.
AnyId = int | str | Biclique | Mapping[str, Any]
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_FLOAT = re.compile(r"[-+]?[0-9]+(\.[0-9]*|(\.[0-9]*)?[eE][-+]?[0-9]+)")
#: Up to here every whole number is a float.
_EXACT = 2**53
_LOST = (
    "a float has lost digits of it, as in pandas after a join that left gaps: before the join make the column id Int64 "
    "or text, or read it with dtype_backend='pyarrow'"
)


class ById(Rows):
    """What `pipeline.results.results.Results` has by id.

    A row of a complete run that is one of the 300 largest by any measure is found through the summary. For others
    the column of ids is read until the row is found: 8 bytes per row.
    """

    _mined: Run
    _manifest: Manifest | None

    if TYPE_CHECKING:  # what `Results` has besides

        @property
        def manifest(self) -> Manifest: ...  # noqa: D102
        def sizes(self) -> SizeCounts: ...  # noqa: D102
        def _refuse_count_only(self) -> None: ...

    def members(self, id: AnyId) -> Biclique:
        """The members of the biclique with an id.

        Parameters
        ----------
        id : int, str, Biclique or dict
            As in the column ``id``, or the same number as text; or a row, as ``results[0]`` and tables give rows.

        Returns
        -------
        Biclique
            A pair of two lists: ``left, right = results.members(id)``.

        Raises
        ------
        UnknownIdError
            If no biclique of the run has this id. It is a `KeyError`, too.
        InputError
            If `id` is no whole number, or the run only counted.
        IncompleteError
            If a part or the summary is damaged.

        Notes
        -----
        The id is found as this class says, and then one row group is read up to the row.
        """
        number = as_id(id)
        place = self._place(number)
        if place is not None:
            rows = rows_at(self.files, [place], self.schema)
        else:  # the rows are in the ledger, or there is none
            rows = self.dataset().to_table(filter=pc.field("id") == pa.scalar(number)) if not self.files else []
        if not len(rows):
            raise self._unknown(number)
        (found,) = bicliques_of(rows.slice(0, 1).to_batches())
        return found

    def explain(self, id: AnyId = LARGEST, missing: int = 1, n: int = 20) -> Explanation:
        """Explain one biclique: its members, who nearly belongs, what overlaps it, and how large and surprising it is.

        Parameters
        ----------
        id : int, str, Biclique or dict
            As of `members`, or "largest": the biclique with most edges.
        missing : int
            A vertex nearly belongs if it is joined to a member and misses at most so many members of the other side.
        n : int
            The most vertices of each side that nearly belong, the most overlapping bicliques, and the most members that
            the text shows. The tables have all members.

        Returns
        -------
        Explanation
            It prints as text; see there for its tables.

        Raises
        ------
        UnknownIdError
            If no biclique of the run has this id. It is a `KeyError`, too.
        InputError
            If a parameter is wrong, or the run only counted.
        IncompleteError
            If a part, the edge table or the summary is missing or damaged; or the run searches the largest, and is not
            complete.

        Notes
        -----
        The edges of the input are read twice, some row groups at a time. Rows are read once: the two size columns of
        each row group whose statistics allow as much overlap as those that were found, and the rest of it if a size
        does. Memory: 50 bytes per vertex, `n` bytes per member, and one row group per thread.
        """
        missing = whole(missing, "the number of members that a vertex may miss", 0)
        n = whole(n, "the number of bicliques and vertices to show", 1)
        number = as_id(self._largest() if isinstance(id, str) and id == LARGEST else id)
        place = self._place(number)
        if place is None:
            if not self.files and len(self):
                _ = self.manifest  # says that the run is not complete: until then its rows are in the ledger
            raise self._unknown(number)
        from bicliques.pipeline.results.explaining import explained  # here, because it imports compiled code

        folder = self._mined.folder
        has_summary = self._manifest is not None and folder.store.local(folder.summary).exists()
        summary = Summary.read(folder) if has_summary else None
        sizes = self.sizes() if summary is None else summary.sizes
        return explained(self._mined, self.files, self.schema, place, summary, sizes, missing, n)

    def plot(self, id: AnyId = LARGEST, missing: int = 1, n: int = 8) -> Picture:
        """Draw one biclique: its edges, the vertices that nearly belong with what they miss, and what overlaps it.

        Parameters
        ----------
        id : int, str, Biclique or dict
            As of `members`, or "largest": the biclique with most edges.
        missing, n : int
            As of `explain`.

        Returns
        -------
        Picture
            A matrix as SVG, which a notebook shows, and whose `save` writes it to a file. Of a side with more than 30
            members 30 are drawn.

        Raises
        ------
        UnknownIdError
            If no biclique of the run has this id. It is a `KeyError`, too.
        InputError
            If a parameter is wrong, or the run only counted.
        IncompleteError
            As of `explain`.

        Notes
        -----
        It takes as long as `explain`, and reads the edges once more.
        """
        from bicliques.pipeline.results.picture import picture_of  # here, because it imports compiled code

        return picture_of(self._mined, self.explain(id, missing, n))

    def _largest(self) -> Any:
        """The id of the biclique with most edges."""
        self._refuse_count_only()
        if not len(self):
            raise InputError(f"{self.path} has no biclique; resume it, or mine with smaller thresholds")
        return self.top(1)["id"][0]

    def _place(self, id: int) -> Place | None:
        """Where the biclique is. None if it is in none of the files."""
        self._refuse_count_only()
        if self._manifest is not None:
            found = place_in_summary(self._mined.folder, self._manifest, id)
            if found is not None:
                return found
        return place_of_id(self.files, id)

    def _unknown(self, id: int) -> UnknownIdError:
        # one in a thousand ids is a float by chance, but this one is unknown
        why = f"; {_LOST}" if abs(id) >= _EXACT and int(float(id)) == id else ""
        return UnknownIdError(
            f"{self.path} has no biclique with the id {id}; the column id of its rows has all ids{why}"
        )


def as_id(id: AnyId) -> int:
    """An id as a number: of a row, too, as results and tables give rows."""
    id = id["id"] if isinstance(id, Mapping) and "id" in id else getattr(id, "id", id)
    try:
        number = int(id) if isinstance(id, str) and _NUMBER.fullmatch(id.strip()) else as_index(id)
    except TypeError:
        why = f"; {_LOST}" if _is_float(id) else ""
        raise InputError(f"an id is a whole number as in the column id, not {id!r:.60}{why}") from None
    if not -(2**63) <= number < 2**63:
        raise InputError(f"an id is a number of 64 bits with a sign, and {number} is none")
    return number


def _is_float(id: object) -> bool:
    """Whether something is a float, or text of one, as a spreadsheet writes it. A gap (NaN) is none."""
    if isinstance(id, str):
        return _FLOAT.fullmatch(id.strip()) is not None
    number = id.as_py() if isinstance(id, pa.Scalar) else id
    return not isinstance(number, bool) and isinstance(number, Real) and math.isfinite(number)
