"""Maximal bicliques as biclusters, with the interface of scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bicliques.pipeline.api.choices import Asked
from bicliques.pipeline.api.iterating import in_temporary_folder
from bicliques.pipeline.run.progress import size
from bicliques.schemas.errors import InputError
from bicliques.schemas.option import as_plain
from bicliques.schemas.search import By
from bicliques.schemas.totals import measured

try:
    from scipy.sparse import csr_array, issparse
    from sklearn.base import BaseEstimator, BiclusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "MaximalBicliques needs scikit-learn, which is not installed (pip install 'bicliques[sklearn]')",
        name="sklearn",
    ) from error

if TYPE_CHECKING:
    from bicliques.pipeline.results.results import Results

#: Members that are written into the masks together.
_MEMBERS = 1 << 22


class MaximalBicliques(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BiclusterMixin, BaseEstimator):  # type: ignore[misc]
    """Every maximal biclique of a table of 0 and 1, as a bicluster of rows and columns that have ones only.

    Parameters
    ----------
    min_left, min_right : int
        Fewest rows and fewest columns of a bicluster. They prune the search.
    max_left, max_right : int or None
        Most rows and most columns. Larger biclusters are left out, and their parts do not take their place.
    top : int or None
        How many of the largest are wanted. None: all.
    by : "edges", "vertices", "balance", "left" or "right"
        What the largest have most of, and the order of all: number of ones, of rows and columns, size of the smaller
        side, of rows, of columns.
    max_results : int or None
        End the search after so many. Which ones these are may be another choice next time. None: no limit.
    min_weight : float or None
        An entry that is not 0 counts as a 1 if it is at least this. None: all entries have to be 0 or 1.
    engine : str
        Engine that searches, one of those of `bicliques.mine`.
    workers : int or None
        Worker processes; 0 is this process with one thread, None a thread per core.
    max_bytes : int
        Most bytes that `rows_` and `columns_` may take together. If they need more, `fit` raises an error.

    Attributes
    ----------
    rows_ : ndarray, shape (n_biclusters, n_rows), bool
        ``rows_[k, i]`` says whether row i is in bicluster k. The best biclusters by `by` come first. Ties go to the
        larger number of ones, then to the larger number of rows, then to the larger id.
    columns_ : ndarray, shape (n_biclusters, n_columns), bool
        The same of columns.
    biclusters_ : tuple of ndarray, shape (n_biclusters, n_rows) and (n_biclusters, n_columns), bool
        Both.
    labels_ : ndarray, shape (n_rows,), int64
        Of each row the number of the first bicluster that has it, -1 if none has.
    complete_ : bool
        False if `max_results` has ended the search.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray, shape (n_columns,), object
        Names of the columns, if the table has names and all are strings.

    Notes
    -----
    A run in a temporary folder finds them, and `fit` keeps `rows_` and `columns_` alone: a byte per bicluster and row,
    and a byte per bicluster and column. For more bicliques than fit into memory, or to keep them, see `bicliques.mine`.

    Examples
    --------
    >>> import numpy as np
    >>> from bicliques import MaximalBicliques
    >>> table = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1]])
    >>> model = MaximalBicliques(min_left=2).fit(table)
    >>> [(rows.tolist(), columns.tolist()) for rows, columns in map(model.get_indices, range(3))]
    [([0, 1], [0, 1]), ([1, 2], [1, 2]), ([0, 1, 2], [1])]
    >>> model.get_submatrix(0, table)
    array([[1, 1],
           [1, 1]])
    >>> model.labels_, model.transform([[1, 1, 1, 1]])
    (array([0, 0, 1]), array([[ True,  True,  True]]))
    """

    def __init__(
        self,
        *,
        min_left: int = 1,
        min_right: int = 1,
        max_left: int | None = None,
        max_right: int | None = None,
        top: int | None = None,
        by: By = "edges",
        max_results: int | None = None,
        min_weight: float | None = None,
        engine: str = "auto",
        workers: int | None = None,
        max_bytes: int = 1 << 30,
    ):
        self.min_left = min_left
        self.min_right = min_right
        self.max_left = max_left
        self.max_right = max_right
        self.top = top
        self.by = by
        self.max_results = max_results
        self.min_weight = min_weight
        self.engine = engine
        self.workers = workers
        self.max_bytes = max_bytes

    def fit(self, X: Any, y: Any = None) -> MaximalBicliques:  # noqa: N803
        """Find the bicliques of a table.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (n_rows, n_columns)
            Entries are 0 and 1 or booleans, or numbers if `min_weight` is given.
        y : object
            Not used.

        Returns
        -------
        MaximalBicliques
            The estimator itself.

        Raises
        ------
        InputError
            If an entry is neither 0 nor 1, a parameter is wrong, or `rows_` and `columns_` need more than `max_bytes`.
        ValueError
            If scikit-learn refuses `X`: it has another number of dimensions, no rows, or NaN.
        ResourceError
            If the engine cannot run, or workers fail.
        """
        table = validate_data(self, X, accept_sparse="csr")
        edges = table if issparse(table) else csr_array(table)
        asked = Asked.of(edges, self.get_params(deep=False), mode="list")
        most = self._most(edges.shape)
        if not self._has_edges(edges):
            self._keep(tuple(np.zeros((0, n), np.bool_) for n in edges.shape), True)
            return self
        with in_temporary_folder(edges, _at_most(asked, most + 1), None, False) as results:
            if len(results) > most:
                raise InputError(
                    f"rows_ and columns_ of more than {most:,} bicliques of a table of {edges.shape[0]:,} rows and "
                    f"{edges.shape[1]:,} columns take more than {size(self.max_bytes)}; raise min_left and min_right, "
                    "ask for the largest with top, or raise max_bytes"
                )
            self._keep(_masks(results, edges.shape, self.by), results.complete)
        return self

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Say which biclusters rows would be in: those of whose columns they have all.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (n_rows, n_columns)
            Rows with the columns of `fit`, which need not have been there.

        Returns
        -------
        ndarray, shape (n_rows, n_biclusters), bool
            Whether row i has a 1 in all columns of bicluster k.

        Raises
        ------
        InputError
            If an entry is neither 0 nor 1, and `min_weight` is None.
        ValueError
            If `X` has another number of columns.
        """
        check_is_fitted(self, "columns_")
        table = validate_data(self, X, accept_sparse="csr", reset=False)
        edges = csr_array(table)
        self._has_edges(edges)
        ones = (edges.data != 0) & (edges.data >= (1 if self.min_weight is None else self.min_weight))
        ones = csr_array((ones.astype(np.int32), edges.indices, edges.indptr), edges.shape)
        return np.asarray((ones @ csr_array(self.columns_.T.astype(np.int32))).toarray() == self.columns_.sum(axis=1))

    @property
    def _n_features_out(self) -> int:
        return len(self.columns_)

    def _most(self, shape: tuple[int, int]) -> int:
        """How many biclusters the masks may hold."""
        most = as_plain(self.max_bytes)
        if type(most) is not int or most < 1:
            raise InputError(f"max_bytes must be a whole number of at least 1 (int), not {self.max_bytes!r}")
        return most // sum(shape)

    def _has_edges(self, edges: Any) -> bool:
        """Whether an entry counts as 1. Without a smallest weight, entries other than 0 and 1 are refused."""
        values = edges.data
        if self.min_weight is not None:
            return bool(((values != 0) & (values >= self.min_weight)).any())
        is_one = values == 1
        if not (is_one | (values == 0)).all():
            odd = values[~is_one & (values != 0)][0]
            raise InputError(
                f"the table has the entry {odd}, but entries are 0 and 1 or booleans; say from which number on an "
                "entry counts as 1 with min_weight"
            )
        return bool(is_one.any())

    def _keep(self, masks: tuple[np.ndarray, ...], complete: bool) -> None:
        self.rows_, self.columns_ = masks
        rows = self.rows_
        self.labels_ = np.full(rows.shape[1], -1)
        if len(rows):
            self.labels_[rows.any(axis=0)] = rows.argmax(axis=0)[rows.any(axis=0)]
        self.complete_ = complete

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may give to `fit`."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _at_most(asked: Asked, most: int) -> Asked:
    """The same, but with an end after `most` bicliques."""
    search, limits = asked.options.search, asked.limits
    if search.largest is not None:
        search = replace(search, largest=min(search.largest, most))
        return replace(asked, options=replace(asked.options, search=search))
    wanted = limits.max_results
    return replace(asked, limits=replace(limits, max_results=most if wanted is None else min(wanted, most)))


def _masks(results: Results, shape: tuple[int, int], by: By) -> tuple[np.ndarray, ...]:
    """Which rows and which columns each biclique has, the best first. Memory beside the masks is bounded."""
    keys = results.to_arrow(["n_left", "n_right", "id"])
    n_left, n_right, ids = (keys[name].to_numpy().astype(np.int64) for name in keys.column_names)
    order = np.lexsort((ids, n_left, n_left * n_right, measured(n_left, n_right, by)))[::-1]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    masks = tuple(np.zeros((len(order), n), np.bool_) for n in shape)
    step, begin = max(1, _MEMBERS // max(shape)), 0
    for batch in results.batches(["left", "right"]):
        for at in range(0, len(batch), step):
            part = batch.slice(at, step)
            places = place[begin : begin + len(part)]
            begin += len(part)
            for mask, members in zip(masks, part.columns, strict=True):
                mask[np.repeat(places, members.value_lengths()), members.flatten()] = True
    return masks
