"""The results of a run. Rows are read only when they are asked for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import pyarrow as pa

from bicliques.pipeline.output.part_writer import part_schema, to_batch
from bicliques.pipeline.prepare.members import find_members, refuse_unknown
from bicliques.pipeline.proof.selection import largest, rows_at, sampled
from bicliques.pipeline.proof.summary import read_largest
from bicliques.pipeline.results.forms import Forms
from bicliques.pipeline.run.labels import Tables
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import number
from bicliques.pipeline.run.tables import found_at, open_part
from bicliques.schemas.errors import IncompleteError, InputError, in_one_line
from bicliques.schemas.facts import Outcome
from bicliques.schemas.manifest import Manifest, Part
from bicliques.schemas.search import MEASURES, By, Search, as_labels
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.totals import Best
from bicliques.schemas.values import share, whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    from bicliques.pipeline.proof.verification import Verification


#: What people look for here, and where it is.
_CALLED_ELSEWHERE = {
    "largest": "results.top(n), or bicliques.largest(source, output) to search for no others",
    "count": "len(results)",
    "diff": "bicliques.diff(results.path, other, folder)",
    "dtypes": "results.schema",
    "fingerprint": "results.manifest.fingerprint",
    "info": "results.describe()",
    "publish": "bicliques.publish(results.path, url)",
    "resume": "bicliques.resume(results.path)",
    "save": "results.export(format, path); results.files are Parquet already",
    "sort_values": "results.top(n, by)",
    "to_dict": "results.to_arrow().to_pylist()",
    "to_json": "results.export('jsonl', path)",
    "to_numpy": "results.to_arrays()",
    "to_parquet": "results.files, which are Parquet already",
}


class Results(Forms):
    """The bicliques of a run, in Parquet. `bicliques.mine` and `bicliques.open_run` return such an object.

    Parameters
    ----------
    run : Run
        An open run.

    Raises
    ------
    IncompleteError
        If the manifest or the ledger is damaged.

    Notes
    -----
    Opening reads the manifest, or else the ledger. Rows are read by `dataset`, `to_arrow`, `to_pandas`, `top`,
    `cover`, `sizes` and `sample`. Of a run that is not complete these give what is committed so far.

    Results can be pickled, so tasks of Dask and joblib take them. A pickle has the place of the run and no rows: who
    loads it opens the run there, as it is then.

    Examples
    --------
    >>> import bicliques
    >>> results = bicliques.mine("examples/debian12_package_tag.parquet", "OUT-results")
    >>> results
    <56,688 maximal bicliques in OUT-results, complete>
    >>> results.top(3, by="balance")["n_right"].to_pylist()
    [11, 11, 10]
    >>> results.sizes().total, results.sample(2).num_rows
    (56688, 2)
    >>> [round(bits) for bits in results.top(4, by="surprise", distinct=0.8)["surprise"].to_pylist()]
    [10996, 10284, 6840, 4888]
    >>> [round(share, 3) for share in results.cover(3)["covered"].to_pylist()]
    [0.134, 0.219, 0.3]
    >>> id = results.top(1)["id"][0].as_py()
    >>> results.members(id).right
    ['devel::library', 'role::devel-lib']
    >>> results.explain(id).n_near
    {'left': 2755, 'right': 0}
    """

    def __init__(self, run: Run):
        self._mined = run
        self._folder = run.folder
        self._manifest = run.folder.manifest()
        self._parts, self._count = self._committed()

    def _committed(self) -> tuple[tuple[Part, ...], int]:
        if self._manifest is not None:
            return self._manifest.parts, self._manifest.count
        if not self._mined.has("plan"):
            return (), 0
        ledger = self._mined.ledger()
        self._mined.store.await_driver(ledger.parts)
        return ledger.parts, ledger.total.count

    def __len__(self) -> int:
        return self._count

    def __getattr__(self, name: str) -> Any:
        """Raise the AttributeError of Python for a name that is not here, with what to call in its place."""
        advice = f"; call {_CALLED_ELSEWHERE[name]}" if name in _CALLED_ELSEWHERE else ""
        raise AttributeError(f"results have no attribute {name!r}{advice}", name=name, obj=self)

    def __reduce__(self) -> tuple[Callable[[str, str], Results], tuple[str, str]]:
        return _reopened, (self._mined.place, self._mined.identity)

    def __repr__(self) -> str:
        state = "complete" if self.complete else "not complete"
        return in_one_line(f"<{number(self._count, self._what)} in {self._mined.store.shown()}, {state}>")

    @property
    def path(self) -> Path:
        """Folder of the run. Of one that is kept in a store, the folder of this machine that has what was brought."""
        return self._folder.path

    @property
    def complete(self) -> bool:
        """Whether all bicliques are there, and proven."""
        return self._manifest is not None

    @property
    def outcome(self) -> Outcome:
        """How the run ended: "complete", or how its last session ended. "failed" also if the session was killed."""
        if self.complete:
            return "complete"
        outcome = self._mined.ended()
        return outcome if outcome and outcome != "complete" else "failed"

    @property
    def manifest(self) -> Manifest:
        """The manifest: count, fingerprint, parts, and the facts of all steps.

        Raises
        ------
        IncompleteError
            If the run is not complete.
        """
        if self._manifest is None:
            limit = " without its limit" if self.outcome == "max_results" else ""
            raise IncompleteError(f"{self.path} is not complete, and so has no manifest yet; resume it{limit}")
        return self._manifest

    @property
    def files(self) -> list[Path]:
        """Paths of the Parquet parts that count."""
        return [self._folder.store.place_of(part) for part in self._parts]

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows; see `schemas.bicliques.biclique_schema`."""
        return part_schema(self._tables(), self._mined.provenance, near=self.has_holes)

    @property
    def names(self) -> tuple[str, str]:
        """What the input calls the left and the right side. "left" and "right" where it does not say."""
        return self._mined.names

    @property
    def lists_rows(self) -> bool:
        """Whether the run lists bicliques. False if it only counts."""
        return self._mined.job.rows != "none"

    @property
    def has_holes(self) -> bool:
        """Whether pairs of a row may be no edges, which no file is read for."""
        return self._mined.options.search.near is not None

    def _opened(self, file: Path) -> AbstractContextManager[pq.ParquetFile]:
        return open_part(file)

    def _tables(self) -> Tables:
        return self._mined.tables if self._mined.has("build") else None

    def dataset(self) -> ds.Dataset:
        """The rows as a `pyarrow.dataset.Dataset`, which reads nothing yet. DuckDB and Polars can scan it.

        Raises
        ------
        InputError
            If the run only counted.
        """
        import pyarrow.dataset as ds  # imported only here, because it imports pandas

        self._refuse_count_only()
        if (rows := self._rows_of_total()) is not None:
            return ds.dataset(pa.Table.from_batches([rows]))
        found = [found_at(file) for file in self.files]
        if not found:
            return ds.dataset(self.schema.empty_table())
        files = [each["source"] for each in found]
        return ds.dataset(files, schema=self.schema, format="parquet", filesystem=found[0]["filesystem"])

    def top(
        self,
        n: int = 20,
        by: By | Literal["surprise"] = "edges",
        distinct: float | None = None,
        community: int | str | Literal[True] | None = None,
        *,
        containing_left: Any = (),
        containing_right: Any = (),
    ) -> pa.Table:
        """The `n` largest or most surprising bicliques, the best first.

        Parameters
        ----------
        n : int
            How many.
        by : "edges", "vertices", "balance", "left", "right" or "surprise"
            The measure: number of edges, of vertices, size of the smaller side, of the left or of the right side, or
            how unlikely the biclique is by chance, given the degrees of its members. Ties go to the larger number of
            edges, then to the larger left side, then to the larger id.
        distinct : float or None
            Leave out a biclique if one that is listed before it has more than this share of its edges, or of its pairs
            if some may be no edges. From 0 to 1, and 0.8 is a good value. None: leave out none.
        community : int, str, True or None
            The id of one of the communities that were found last: only its bicliques. True: add the int64
            ``community``, which is null if a biclique is too small for one.
        containing_left, containing_right : label, or iterable of labels
            Only bicliques that have all of these members.

        Returns
        -------
        Table
            With the columns of `schema`, and by "surprise" also the float64 ``surprise``, in bits.

        Raises
        ------
        InputError
            If the run only counted, a parameter is wrong, or no vertex of a side has a label.
        IncompleteError
            If a part is missing or damaged.

        Notes
        -----
        Memory is bounded, because only row groups that hold one of the largest are read. The summary of a complete run
        knows the places of the 300 largest. For others the two size columns are read first. Two runs that found the
        same set give the same order.

        With `distinct`, candidates are read in descending order until `n` are distinct. If fewer are, all rows are
        read, and mostly a few times; see `pipeline.results.interesting.distinct_rows`. By "surprise", row groups are
        read whose sizes allow one of the best; see `pipeline.results.surprise.Surprise`, which has the definition.
        """
        n = whole(n, "the number of bicliques to show", 1)
        if distinct is not None:
            distinct = share(distinct, "the share of its edges that a distinct biclique may have in a better one")
        if not isinstance(by, str) or by not in (*MEASURES, "surprise"):
            raise InputError(f"bicliques are ranked by {', '.join(MEASURES)} or surprise, not by {by!r}")
        self._refuse_count_only()
        if community is True:
            among = {"containing_left": containing_left, "containing_right": containing_right}
            return self._with_community(self.top(n, by, distinct, **among))
        search = Search(
            containing_left=as_labels("containing_left", containing_left),
            containing_right=as_labels("containing_right", containing_right),
        )
        members = find_members(self._mined, search) if search.is_containing else None
        ids = None if community is None else self._of_community(community)
        if distinct is not None or by == "surprise" or members is not None or ids is not None:
            from bicliques.pipeline.results.interesting import top_rows  # here, because it imports compiled code

            return top_rows(self._mined, self.files, self.schema, n, by, distinct, members, ids)
        places = read_largest(self._folder, self._manifest, by, n) if self._manifest is not None else None
        if places is None:
            places = largest(self.files, n, by)
        return rows_at(self.files, places, self.schema)

    def _refuse_unknown(self, label: Any) -> None:
        if self._mined.tables is not None:  # rows with ids say nothing of labels
            refuse_unknown(self._mined, label)

    def cover(self, n: int = 20) -> pa.Table:
        """The bicliques that together explain most edges: each is the one that has most edges which none before it has.

        Parameters
        ----------
        n : int
            How many to choose. There are fewer if these have all edges that are in any biclique of the run.

        Returns
        -------
        Table
            In the order of the choice: ``rank`` from 1, ``edges``, ``new_edges`` (all int64), ``covered`` (float64, the
            share of all edges of the input that are in a biclique up to this one), and the columns of `schema`.

        Raises
        ------
        InputError
            If the run only counted, or `n` is less than 1.
        IncompleteError
            If a part is missing or damaged.

        Notes
        -----
        Any other `n` bicliques of the run have at most 1.58 times as many edges together. See
        `pipeline.results.interesting.cover_rows` for the algorithm, what it reads, and its memory.
        """
        n = whole(n, "the number of bicliques to choose", 1)
        self._refuse_count_only()
        run = self._mined.exact("a cover counts every pair of a row as an edge")
        from bicliques.pipeline.results.interesting import cover_table  # here, because it imports compiled code

        return cover_table(run, self.files, self.schema, n)

    def sizes(self) -> SizeCounts:
        """The number of bicliques of each size.

        Raises
        ------
        InputError
            If the run only counted, and did not count sizes.
        IncompleteError
            If a part is missing or damaged.

        Notes
        -----
        Reads the two size columns once. For a run that only counted, the ledger is read instead.
        """
        if self._mined.job.rows == "none":
            if not self._mined.options.search.sizes:
                raise InputError(f"{self.path} only counted, and not by size; mine it again with a list, or with sizes")
            ledger, _ = self._mined.survey()
            return ledger.total.sizes or SizeCounts.empty()
        total = SizeCounts.empty()
        for file in self.files:
            with open_part(file) as part:
                for group in range(part.num_row_groups):
                    rows = part.read_row_group(group, columns=["n_left", "n_right"])
                    total = SizeCounts.merge([total, SizeCounts.of(*(column.to_numpy() for column in rows.columns))])
        return total

    def sample(self, n: int = 20, seed: int = 0) -> pa.Table:
        """`n` different bicliques chosen at random, each as likely as the others. All bicliques if there are fewer.

        Parameters
        ----------
        n : int
            How many.
        seed : int
            Seed of the choice, from 0 to 2**64 - 1. Two runs that found the same set give the same rows in the same
            order, whatever engine, order or workers they had. A smaller sample is the beginning of a larger one.

        Raises
        ------
        InputError
            If the run only counted, or a parameter is wrong.
        IncompleteError
            If a part is missing or damaged.

        Notes
        -----
        The choice depends on the ids of the rows, so all ids are read, in a few threads with one row group each. Then
        the row groups that hold a chosen row are read as a whole.
        """
        n, seed = whole(n, "the number of bicliques to choose", 1), whole(seed, "the seed", 0)
        if seed >= 2**64:
            raise InputError(f"the seed must be at least 0 and less than 2**64, not {seed}")
        self._refuse_count_only()
        places = sampled(self.files, n, seed) if self._count else []
        return rows_at(self.files, places, self.schema)

    def verify(self, **how: Any) -> Verification:
        """Check the run again, from its files alone, as `bicliques.verify` does.

        Parameters
        ----------
        **how : object
            Options of `bicliques.verify`, such as ``sample`` and ``complete``.
        """
        return cast("Verification", _call("verify")(self._mined.place, **how))

    def report(self) -> Path:
        """Write the page of the run, as `bicliques.report` does."""
        return cast(Path, _call("report")(self._mined.place))

    def _told(self) -> list[str]:
        state = "complete" if self.complete else f"not complete: {self.outcome}"
        return [number(self._count, self._what), f"{state}, in {self._mined.store.shown()}"]

    def _best(self) -> pa.Table | None:
        return super()._best() if self.complete and self.lists_rows else None

    def _refuse_count_only(self) -> None:
        if self._mined.job.rows == "none":
            raise InputError(f"{self.path} only counted and holds no bicliques; mine it again with a list of them")

    def _rows_of_total(self) -> pa.RecordBatch | None:
        """The rows so far of a run whose total holds them. None for other runs, and once the rows are in files."""
        if self.complete or self._mined.job.rows != "total" or not self._count:
            return None
        total = self._mined.ledger().total
        assert isinstance(total, Best)
        return to_batch(total.rows, self._tables())


def _call(name: str) -> Callable[..., Any]:
    """A function of the package, which has those of rooms that are above this one."""
    return cast("Callable[..., Any]", getattr(import_module("bicliques"), name))


def open_results(path: Path) -> Results:
    """The results in the folder of a run, complete or not.

    Raises `InputError` if `path` is not the folder of a run, and `IncompleteError` if the manifest or the ledger is
    damaged.
    """
    return Results(Run.with_holes(path))


def _reopened(place: str, identity: str) -> Results:
    """The results that were pickled: of the run of this identity, in a folder or at a URL."""
    found = Run.with_holes(Path(place))
    if found.identity != identity:
        raise InputError(
            f"{found.store.shown()} holds another run now than when its results were pickled; open it with open_run"
        )
    return Results(found)
