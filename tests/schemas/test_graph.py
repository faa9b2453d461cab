"""What `MiningGraph.validate` refuses, in whatever piece it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from schemas import graph as module
from schemas.errors import IncompleteError
from schemas.graph import MiningGraph
from schemas.hashes import hashes_of_ids


def made() -> MiningGraph:
    """Root k of nine is joined to base vertices 0 to k, so rows have different lengths."""
    roots = [list(range(k + 1)) for k in range(9)]
    base = [list(range(k, 9)) for k in range(9)]
    each = np.arange(10, dtype=np.int64), np.arange(9, dtype=np.int32)
    return MiningGraph("left", 9, 9, *csr(roots), *csr(base), *each, *each, *hashes_of_ids(9, 9))


def csr(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.cumsum([0, *map(len, rows)]), np.concatenate(rows).astype(np.int32)


def changed(name: str, at: int, value: int) -> MiningGraph:
    array = getattr(made(), name).copy()
    array[at] = value
    return replace(made(), **{name: array})


@pytest.fixture(autouse=True, params=[3, 4, 1 << 18])
def _piece(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PIECE", request.param)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_sound_graph_passes(threads: int) -> None:
    made().validate(threads)


@pytest.mark.parametrize("at", [*range(1, 10), 20, 30, 44])
@pytest.mark.parametrize("side", ["root", "base"])
def test_every_step_down_inside_a_row_is_found(side: str, at: int) -> None:
    graph = made()
    indices, begins = getattr(graph, f"{side}_indices"), getattr(graph, f"{side}_indptr")[:-1]
    wrong = changed(f"{side}_indices", at, int(indices[at - 1]))
    if at in begins:  # the first of a row may be anything that is less than the second
        wrong = changed(f"{side}_indices", at, 0)
        if at + 1 in begins or at + 1 == len(indices) or indices[at + 1] > 0:
            wrong.validate()
        return
    with pytest.raises(IncompleteError, match=f"{side}_indices is not strictly ascending inside a row"):
        wrong.validate()


@pytest.mark.parametrize(("at", "value"), [(0, -1), (44, 9), (7, 9), (6, -1)])
def test_an_id_out_of_range_is_found(at: int, value: int) -> None:
    with pytest.raises(IncompleteError, match=r"root_indices holds an id outside 0\.\.8"):
        changed("root_indices", at, value).validate()


@pytest.mark.parametrize(("at", "value"), [(0, 1), (9, 44), (4, 3), (3, 10), (8, 45)])
def test_offsets_that_do_not_partition_the_entries_are_found(at: int, value: int) -> None:
    with pytest.raises(IncompleteError, match="the offsets of root_indices do not partition its 45 entries"):
        changed("root_indptr", at, value).validate()


def test_members_out_of_range_are_found() -> None:
    with pytest.raises(IncompleteError, match=r"root_members holds an id outside 0\.\.8"):
        changed("root_members", 8, 9).validate()
