"""The edge list that another one becomes when edges come and go."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bicliques.pipeline.compare.two_graphs import TwoGraphs, labels_of
from bicliques.pipeline.prepare.build import read_edges
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.search import Search


def with_delta(old: Run, added: Run | None, removed: Run | None) -> pa.Table:
    """The edges of a run without those of another one, and with those of a third one, as labels.

    An edge of `removed` that is not there, and one of `added` that is there, changes nothing. An edge of both stays.

    Raises
    ------
    InputError
        If their labels or sides do not fit together.
    """
    parts = [_labelled(old, np.ones(old.input["n_edges"], np.bool_))]
    if removed is not None:
        two = TwoGraphs((old, removed), ("the old edge list", "the edges to remove"), Search())
        stays = np.zeros(old.input["n_edges"], np.bool_)
        stays[two.only[0]] = True
        parts = [_labelled(old, stays)]
    if added is not None:
        two = TwoGraphs((old, added), ("the old edge list", "the edges to add"), Search())
        parts = [*parts, _labelled(added, np.ones(added.input["n_edges"], np.bool_))]
    left, right = old.names
    names = ("left", "right") if left == right else (left, right)
    return pa.concat_tables([part.rename_columns(names) for part in parts], promote_options="permissive")


def _labelled(run: Run, which: np.ndarray) -> pa.Table:
    columns = (
        labels.take(pa.array(ids[which])) for labels, ids in zip(labels_of(run), read_edges(run.folder), strict=True)
    )
    return pa.table(dict(zip(("left", "right"), columns, strict=True)))
