"""What `MiningGraph.validate` refuses, in whatever piece it is."""

from dataclasses import replace

import numpy as np
import pytest

from bicliques.schemas import graph as module
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.hashes import hashes_of_ids


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
def _piece(request, monkeypatch):
    monkeypatch.setattr(module, "_PIECE", request.param)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_sound_graph_passes(threads):
    made().validate(threads)


@pytest.mark.parametrize("at", [*range(1, 10), 20, 30, 44])
@pytest.mark.parametrize("side", ["root", "base"])
def test_every_step_down_inside_a_row_is_found(side, at):
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
def test_an_id_out_of_range_is_found(at, value):
    with pytest.raises(IncompleteError, match=r"root_indices holds an id outside 0\.\.8"):
        changed("root_indices", at, value).validate()


@pytest.mark.parametrize(("at", "value"), [(0, 1), (9, 44), (4, 3), (3, 10), (8, 45)])
def test_offsets_that_do_not_partition_the_entries_are_found(at, value):
    with pytest.raises(IncompleteError, match="the offsets of root_indices do not partition its 45 entries"):
        changed("root_indptr", at, value).validate()


def test_members_out_of_range_are_found():
    with pytest.raises(IncompleteError, match=r"root_members holds an id outside 0\.\.8"):
        changed("root_members", 8, 9).validate()


def test_both_directions_have_the_same_edges():
    """Also where all degrees are the same. Whoever follows both would write behind the end of a row otherwise."""
    made().validate_directions()
    each, roots = (np.arange(5), np.arange(4, dtype=np.int32)), csr([[0, 1], [1, 2], [2, 3], [0, 3]])
    square = MiningGraph("left", 4, 4, *roots, *roots, *each, *each, *hashes_of_ids(4, 4))
    base = csr([[0, 3], [0, 1], [1, 2], [2, 3]])
    good = replace(square, base_indptr=base[0], base_indices=base[1])
    good.validate()
    good.validate_directions()
    other = csr([[0, 2], [0, 1], [1, 3], [2, 3]])
    bad = replace(square, base_indptr=other[0], base_indices=other[1])
    bad.validate()
    with pytest.raises(IncompleteError, match="the two directions of the graph have different edges"):
        bad.validate_directions()


@pytest.mark.parametrize("piece", [1, 2, 7, 45, 1 << 20])
def test_directions_are_compared_in_pieces(monkeypatch, piece):
    monkeypatch.setattr(module, "_PIECE", piece)
    made().validate_directions(3)
    other = np.r_[1, made().root_indices[1:]].astype(np.int32)  # in a row of its own, so it stays valid
    with pytest.raises(IncompleteError, match="the two directions of the graph have different edges"):
        replace(made(), root_indices=other).validate_directions()


@pytest.mark.parametrize(("name", "kind"), [("root_indices", np.int64), ("base_indptr", np.int32)])
def test_arrays_of_another_type_are_refused(name, kind):
    with pytest.raises(IncompleteError, match="must be int32 with int64 offsets"):
        replace(made(), **{name: getattr(made(), name).astype(kind)}).validate()
