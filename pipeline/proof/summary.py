"""The summary of a run: the number of bicliques of each size, the largest, and the number that each vertex is in.

The proof makes the summary, because it reads every row anyway. ``summary/*.parquet`` keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.pipeline.proof.coded_groups import SummedGroup
from bicliques.pipeline.proof.selection import Largest, Place, add_rows, places_of
from bicliques.pipeline.run.files import disk_errors, whole_file
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.labels import open_labels
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.store import store_of
from bicliques.pipeline.run.tables import open_table
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.dtypes import COUNT
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.hashes import VertexHashes, mixed
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.regular_files import regular
from bicliques.schemas.search import MEASURES, By
from bicliques.schemas.sizes import SizeCounts, SizedRows

#: How many of the largest bicliques the summary has by each measure.
LARGEST = 300

LARGEST_FILE = "largest.parquet"
#: Sizes that a `Summary` keeps before it adds them up.
_MANY_SIZES = 1 << 17
#: The files of a run in ``summary/``.
_FILES = ("sizes.parquet", LARGEST_FILE, "left.parquet", "right.parquet")
#: Columns of `pipeline.proof.selection.Largest.best`.
_LARGEST_COLUMNS = ("key", "edges", "n_left", "id", "file", "row_group", "row")
_LARGEST_SCHEMA = pa.schema([("by", pa.string()), *((name, pa.int64()) for name in _LARGEST_COLUMNS)])


class Summary:
    """The summary of a run, or of some of its rows. Summaries add up.

    Parameters
    ----------
    n_left, n_right : int
        Numbers of vertices.

    Attributes
    ----------
    left, right : ndarray, int64
        Number of bicliques that each vertex is in: by dense id, or of `ids`.
    ids : (ndarray, ndarray) or None
        Dense ids of the vertices of `left` and of `right`, ascending. None: all have a number. See `compact`.

    Notes
    -----
    Memory: 8 bytes per dense id, and some 50 bytes per row of a batch that is added. Several threads can each use one
    of their own without waiting for one another.
    """

    def __init__(self, n_left: int, n_right: int):
        self._sizes = [SizeCounts.empty()]
        self.left, self.right = np.zeros(n_left, COUNT), np.zeros(n_right, COUNT)
        self.ids: tuple[np.ndarray, np.ndarray] | None = None
        self._largest = {by: Largest(LARGEST, by) for by in MEASURES}

    @classmethod
    def of(cls, parts: Iterable[Summary], n_left: int, n_right: int) -> Summary:
        """The sum of `parts`. One of them is in memory at a time."""
        total = cls(n_left, n_right)
        for part in parts:
            total += part
        return total

    @property
    def sizes(self) -> SizeCounts:
        """Number of bicliques of each size."""
        self._sizes = [SizeCounts.merge(self._sizes)]
        return self._sizes[0]

    @property
    def largest(self) -> dict[By, np.ndarray]:
        """The largest bicliques by measure, as `pipeline.proof.selection.Largest.best`."""
        return {by: found.best for by, found in self._largest.items()}

    def add(self, batch: Bicliques, known: VertexHashes, file: int = 0, group: int = 0) -> np.ndarray:
        """Add a batch, and return the hashes of its rows.

        Raises `IncompleteError` if the batch has a dense id that no vertex has.

        Parameters
        ----------
        known : VertexHashes
            `schemas.hashes.vertex_hashes` of both sides.
        file, group : int
            Numbers of the file and of the row group that the batch comes from. `largest` names them.

        Returns
        -------
        ndarray, shape (rows,), uint64
            One hash per biclique. Their sum modulo 2**64 is the fingerprint of the batch.
        """
        left = _sums(batch.left, batch.left_indptr, known[0], self.left)
        right = _sums(batch.right, batch.right_indptr, known[1], self.right)
        n_left, n_right = np.diff(batch.left_indptr), np.diff(batch.right_indptr)
        return self.add_hashed(n_left, n_right, mixed(left, right), file, group)

    def add_coded(self, found: SummedGroup, file: int = 0, group: int = 0) -> np.ndarray:
        """Add a row group that is summed up already, and return the hashes of its rows. Numbers are as of `add`."""
        for total, (ids, counts) in ((self.left, found.left), (self.right, found.right)):
            np.add.at(total, ids, counts)
        return self.add_hashed(found.n_left, found.n_right, found.hashes, file, group)

    def add_hashed(
        self,
        n_left: np.ndarray,
        n_right: np.ndarray,
        hashes: np.ndarray,
        file: int = 0,
        group: int = 0,
        counted: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Add rows that a device has hashed, and return their hashes.

        Parameters
        ----------
        n_left, n_right : ndarray, shape (rows,)
            Numbers of members of each row.
        hashes : ndarray, shape (rows,), uint64
        file, group : int
            As of `add`.
        counted : (ndarray, ndarray) or None
            In how many rows each left and each right vertex is, by dense id. None: this was added before.
        """
        if counted is not None:
            self.left += counted[0]
            self.right += counted[1]
        sized = SizedRows(n_left, n_right)
        self._add_sizes(sized.counts)
        add_rows(list(self._largest.values()), sized, lambda: hashes, file, group)
        return hashes

    def __iadd__(self, other: Summary) -> Summary:
        self._add_sizes(other.sizes)
        left, right = other.ids or (slice(None), slice(None))
        self.left[left] += other.left
        self.right[right] += other.right
        for by, best in other.largest.items():
            self._largest[by].merge(best)
        return self

    def _add_sizes(self, sizes: SizeCounts) -> None:
        """Keep the sizes of a row group. They are added up when many have come together, because that sorts them."""
        self._sizes.append(sizes)
        if sum(map(len, self._sizes)) > _MANY_SIZES:
            self._sizes = [SizeCounts.merge(self._sizes)]

    def compact(self) -> Summary:
        """The same with the numbers of the vertices alone that are in rows, because it is going to be sent."""
        self.ids = np.flatnonzero(self.left), np.flatnonzero(self.right)
        self.left, self.right = self.left[self.ids[0]], self.right[self.ids[1]]
        return self

    def renumber(self, files: np.ndarray) -> None:
        """Give every file another number: `files` has the new ones, int64."""
        for found in self._largest.values():
            found.renumber(files)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Summary):
            return NotImplemented
        arrays = [(self.left, other.left), (self.right, other.right)]
        for by in self.largest.keys() & other.largest.keys():  # a summary of an earlier version has fewer, or none
            n = min(len(self.largest[by]), len(other.largest[by]))
            arrays.append((self.largest[by][:n], other.largest[by][:n]))
        return self.sizes == other.sizes and all(np.array_equal(*pair) for pair in arrays)

    __hash__ = None  # type: ignore[assignment]

    def write(self, folder: RunFolder) -> None:
        """Write ``sizes.parquet``, ``largest.parquet`` and a table per side into ``summary/`` of a run.

        Raises `ResourceError` if the disk is full, or a file cannot be written for another reason.
        """
        target = folder.summary
        with disk_errors(target):
            target.mkdir(exist_ok=True)
            for name in _FILES:
                (target / name).unlink(missing_ok=True)
            _write(pa.table(vars(self.sizes)), target / "sizes.parquet")
            _write(_table_of(self.largest), target / LARGEST_FILE)
            for side, total in (("left", self.left), ("right", self.right)):
                columns = {"label": open_labels(folder, side), "bicliques": total}
                _write(pa.table(columns), target / f"{side}.parquet")

    @classmethod
    def read(cls, folder: RunFolder) -> Summary:
        """Read what `write` wrote.

        Raises `IncompleteError` if a file is missing or damaged.
        """
        with _reading(folder):
            columns = _read(folder.summary / "sizes.parquet")
            if columns.schema.types != [pa.int32(), pa.int32(), pa.int64()]:
                raise TypeError("sizes.parquet has other columns")
            found = cls(0, 0)
            found._sizes = [SizeCounts(*(column.to_numpy() for column in columns.columns))]
            found.left, found.right = (_totals(folder.summary / f"{side}.parquet") for side in ("left", "right"))
            known = _read_largest(folder)
            found._largest = {by: found._largest[by] for by in known}
            for by, best in known.items():
                found._largest[by].best = best
        return found


def _sums(ids: np.ndarray, indptr: np.ndarray, hashes: np.ndarray, occurrences: np.ndarray) -> np.ndarray:
    from bicliques.kernels.compiled.lists import sum_lists  # imported only here, because most commands read no parts

    sums = np.empty(len(indptr) - 1, np.uint64)
    unknown = sum_lists(ids, indptr, hashes, occurrences, sums)
    if unknown >= 0:
        raise IncompleteError(f"a row holds the id {ids[unknown]}, which no vertex has")
    return sums


def read_largest(folder: RunFolder, manifest: Manifest, by: By, n: int) -> list[Place] | None:
    """The places of the `n` largest bicliques of a complete run, the largest first. None if its summary has fewer.

    Raises `IncompleteError` if the summary is damaged.
    """
    with _reading(folder):
        best = _read_largest(folder).get(by)
    if best is None or len(best) < min(n, manifest.count):
        return None
    return _places(folder, manifest, best[:n])


def place_in_summary(folder: RunFolder, manifest: Manifest, id: int) -> Place | None:
    """The place of the biclique of a complete run that has an id. None if it is none of the largest by any measure.

    Raises `IncompleteError` if the summary is damaged.
    """
    with _reading(folder):
        known = list(_read_largest(folder).values())
    found = [_places(folder, manifest, best[best[:, 3] == id]) for best in known]
    return next((places[0] for places in found if places), None)


def _places(folder: RunFolder, manifest: Manifest, best: np.ndarray) -> list[Place]:
    places = places_of(best)
    if any(not 0 <= file < len(manifest.parts) for file, _, _ in places):
        raise _damaged(folder, "it names a part that is not there")
    return places


@contextmanager
def _reading(folder: RunFolder) -> Iterator[None]:
    try:
        yield
    except (LookupError, MemoryError, OSError, pa.ArrowException, TypeError, ValueError) as error:
        raise _damaged(folder, str(error).partition("\n")[0].rstrip(".")) from error


def _damaged(folder: RunFolder, reason: str) -> IncompleteError:
    return IncompleteError(f"{folder.summary} cannot be read ({reason}); mend it with: {how_to_resume(folder.path)}")


def why_damaged(folder: RunFolder, manifest: Manifest) -> str | None:
    """Why the summary of a complete run cannot be used, in words. None if it agrees with the manifest."""
    try:
        found = Summary.read(folder)
    except IncompleteError as error:
        return f"{folder.summary} cannot be read ({str(error.__cause__ or error).partition(chr(10))[0]})"
    sizes = found.sizes
    members = [int((own.astype(COUNT) * sizes.count).sum()) for own in (sizes.n_left, sizes.n_right)]
    if [sizes.total, int(found.left.sum()), int(found.right.sum())] != [manifest.count, *members]:
        return f"{folder.summary} is not of the {manifest.count} bicliques of the manifest"
    return None


def _table_of(largest: dict[By, np.ndarray]) -> pa.Table:
    best = np.concatenate(list(largest.values()))
    measure = pa.array([by for by, found in largest.items() for _ in found], pa.string())
    return pa.table([measure, *(pa.array(column) for column in best.T)], schema=_LARGEST_SCHEMA)


def _read_largest(folder: RunFolder) -> dict[By, np.ndarray]:
    """The largest bicliques by measure. A run of an earlier version has none, or not by all measures."""
    if not folder.store.local(folder.summary / LARGEST_FILE).exists():
        return {}
    table = _read(folder.summary / LARGEST_FILE)
    schema = table.schema.remove_metadata()
    if not schema.equals(_LARGEST_SCHEMA):
        raise TypeError(f"{LARGEST_FILE} has other columns")
    best = np.column_stack([table[name].to_numpy() for name in _LARGEST_COLUMNS])
    measure = np.array(table["by"].to_pylist(), dtype=object)
    return {by: best[measure == by] for by in MEASURES if by in measure}


def _totals(file: Path) -> np.ndarray:
    totals: np.ndarray = _read(file, ["bicliques"])["bicliques"].to_numpy()
    return totals


def _write(table: pa.Table, file: Path) -> None:
    with whole_file(file) as whole:
        pq.write_table(table, whole, compression="zstd", write_page_checksum=True)


def _read(file: Path, columns: list[str] | None = None) -> pa.Table:
    # not by `read_table`, which imports `pyarrow.dataset`
    with open_table(regular(store_of(file).local(file))) as table:
        return table.read(columns)
