"""What came out of a run, read when asked for and not before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from pipeline.output.part_writer import part_schema, to_batch
from pipeline.proof.selection import HashesOf, largest, rows_at, sampled
from pipeline.proof.summary import read_largest
from pipeline.run.folder import how_to_resume
from pipeline.run.labels import Tables
from pipeline.run.opened import Run
from pipeline.run.tables import LOCAL, open_part
from schemas.errors import IncompleteError, InputError
from schemas.manifest import Manifest, Outcome, Part
from schemas.sizes import SizeCounts
from schemas.totals import Best, By

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as ds

__all__ = ["Count", "Results", "open_results"]


@dataclass(frozen=True)
class Count:
    """How many maximal bicliques there are.

    Parameters
    ----------
    count : int
    outcome : Outcome
        "complete", or why there may be more than `count`.
    fingerprint : int or None
        Of the bicliques counted, if asked for and complete.
    total_seconds : float
        Wall time, everything included; of the command line since its process was started.
    sizes : SizeCounts or None
        How many there are of each size, if asked for.
    input, graph, options, seconds, peak_rss : dict
        As in `schemas.manifest.Manifest`.
    """

    count: int
    outcome: Outcome
    fingerprint: int | None
    total_seconds: float
    sizes: SizeCounts | None
    input: dict[str, Any]
    graph: dict[str, Any]
    options: dict[str, Any]
    seconds: dict[str, float]
    peak_rss: dict[str, Any]

    @property
    def complete(self) -> bool:
        """Whether all bicliques were counted."""
        return self.outcome == "complete"

    def to_json(self) -> dict[str, Any]:
        """A dictionary of plain values, for JSON."""
        number = None if self.fingerprint is None else str(self.fingerprint)
        sizes = None if self.sizes is None else self.sizes.to_json()
        return vars(self) | {"complete": self.complete, "fingerprint": number, "sizes": sizes}


class Results:
    """The bicliques of a run, in Parquet.

    Parameters
    ----------
    run : Run

    Notes
    -----
    Opening reads the names of the parts; rows are read by `dataset`, `to_arrow`, `to_pandas` and `top`. A run that
    is not complete shows what is committed so far.
    """

    def __init__(self, run: Run):
        self._run = run
        self._folder = run.folder
        self._manifest = run.folder.manifest()
        self._parts, self._count = self._committed()

    def _committed(self) -> tuple[tuple[Part, ...], int]:
        if self._manifest is not None:
            return self._manifest.parts, self._manifest.count
        if not self._run.has("plan"):
            return (), 0
        ledger = self._run.ledger()
        return ledger.parts, ledger.total.count

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        state = "complete" if self.complete else "not complete"
        return f"<{self._count:,} maximal bicliques in {self.path}, {state}>"

    @property
    def path(self) -> Path:
        """Folder of the run."""
        return self._folder.path

    @property
    def complete(self) -> bool:
        """Whether all bicliques are there, and proven."""
        return self._manifest is not None

    @property
    def outcome(self) -> Outcome:
        """How it ended: "complete", or how the last session ended; "failed" also when it was killed."""
        if self.complete:
            return "complete"
        ended = self._run.sessions()
        outcome = cast(Outcome, ended[-1]["outcome"]) if ended else "failed"
        return outcome if outcome != "complete" else "failed"

    @property
    def manifest(self) -> Manifest:
        """The proof and the run card.

        Raises
        ------
        IncompleteError
            If the run is not complete.
        """
        if self._manifest is None:
            raise IncompleteError(
                f"{self.path} is not complete; continue with: {how_to_resume(self.path, self.outcome)}"
            )
        return self._manifest

    @property
    def files(self) -> list[Path]:
        """The Parquet parts."""
        return [self._folder.bicliques / part.name for part in self._parts]

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows; see `schemas.bicliques.biclique_schema`."""
        return part_schema(self._tables(), self._run.names)

    def _tables(self) -> Tables:
        return self._run.tables if self._run.has("build") else None

    def dataset(self) -> ds.Dataset:
        """A lazy `pyarrow.dataset.Dataset`, which DuckDB and Polars scan as it is.

        Raises
        ------
        InputError
            If the run only counted.
        """
        import pyarrow.dataset as ds  # only here: it imports pandas

        self._refuse_count_only()
        if (rows := self._rows_of_total()) is not None:
            return ds.dataset(pa.Table.from_batches([rows]))
        files = [str(file) for file in self.files]
        return (
            ds.dataset(files, schema=self.schema, format="parquet", filesystem=LOCAL)
            if files
            else ds.dataset(self.schema.empty_table())
        )

    def to_arrow(self, columns: list[str] | None = None, filter: Any = None) -> pa.Table:
        """All rows, or those a `pyarrow.dataset` expression selects, as one Arrow table in memory."""
        return self.dataset().to_table(columns=columns, filter=filter)

    def to_pandas(self, columns: list[str] | None = None, filter: Any = None) -> pd.DataFrame:
        """The same as a pandas frame; the lists are NumPy arrays."""
        return self.to_arrow(columns, filter).to_pandas()

    def top(self, n: int = 20, by: By = "edges") -> pa.Table:
        """The `n` largest bicliques, the largest first.

        Parameters
        ----------
        n : int
        by : "edges", "balance", "left" or "right"
            Number of edges, size of the smaller side, size of the left or right side. Ties go to the larger
            number of edges, then to the larger left side, then to the larger hash of the members.

        Raises
        ------
        InputError
            If the run only counted, or a parameter is wrong.
        IncompleteError
            If a part is missing or damaged.

        Notes
        -----
        Reads the row groups that hold a winner: bounded memory. Where they are is known of the hundred largest of a
        complete run; else the two size columns are read before. Two runs that found the same set have the same order.
        """
        if n < 1:
            raise InputError(f"the number of bicliques to show must be at least 1, not {n}")
        self._refuse_count_only()
        places = read_largest(self._folder, self._manifest, by, n) if self._manifest is not None else None
        if places is None:
            places = largest(self.files, n, by, self._hashes_of())
        return rows_at(self.files, places, self.schema)

    def sizes(self) -> SizeCounts:
        """How many bicliques there are of each size.

        Raises
        ------
        InputError
            If the run only counted, and not by size.

        Notes
        -----
        Reads the two size columns once; of a run that only counted, its ledger.
        """
        if self._run.job.rows == "none":
            if not self._run.options.search.sizes:
                raise InputError(f"{self.path} was mined with --count-only and without --sizes; mine it again with")
            ledger, _ = self._run.survey()
            return ledger.total.sizes or SizeCounts.empty()
        total = SizeCounts.empty()
        for file in self.files:
            with open_part(file) as part:
                for group in range(part.num_row_groups):
                    rows = part.read_row_group(group, columns=["n_left", "n_right"])
                    total = SizeCounts.merge([total, SizeCounts.of(*(column.to_numpy() for column in rows.columns))])
        return total

    def sample(self, n: int = 20, seed: int = 0) -> pa.Table:
        """`n` bicliques chosen at random, each as likely as every other, none twice; all when there are fewer.

        Parameters
        ----------
        n : int
        seed : int
            Of the choice, 0 or more. Two runs that found the same set, whatever engine, order or workers they had,
            give the same rows, and in the same order; fewer of them are the first of more of them.

        Notes
        -----
        Which rows depends on their members, so every row is read, a row group at a time in each of a few threads:
        about a second per two million rows. Then the row groups are read again that hold a chosen row.
        """
        if n < 1:
            raise InputError(f"the number of bicliques to choose must be at least 1, not {n}")
        if not 0 <= seed < 2**64:
            raise InputError(f"the seed must be at least 0 and less than 2**64, not {seed}")
        self._refuse_count_only()
        places = sampled(self.files, n, seed, self._hashes_of()) if self._count else []
        return rows_at(self.files, places, self.schema)

    def _hashes_of(self) -> HashesOf:
        from pipeline.proof.row_hashes import RowHashes  # only here: it imports more than most questions need

        return RowHashes(self._run).of

    def _refuse_count_only(self) -> None:
        if self._run.job.rows == "none":
            raise InputError(f"{self.path} was mined with --count-only and holds no bicliques; mine it again without")

    def _rows_of_total(self) -> pa.RecordBatch | None:
        """The rows so far of a run whose total holds them; None once they are in files, and of other runs."""
        if self.complete or self._run.job.rows != "total" or not self._count:
            return None
        total = self._run.ledger().total
        assert isinstance(total, Best)
        return to_batch(total.rows, self._tables())


def open_results(path: Path) -> Results:
    """The results in the folder of a run, complete or not.

    Raises
    ------
    InputError
        If it is not the folder of a run.
    """
    return Results(Run.at(path))
