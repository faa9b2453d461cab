"""Verification: each kind of wrong row is refused by its own check, and right rows pass."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bicliques as bq
from bicliques.pipeline.proof.equal_rows import Repeats
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.proof.verification import Adjacency
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.labels import ids_of, open_labels
from bicliques.schemas.bicliques import Bicliques, fingerprint, row_hashes
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.hashes import hashes_of_ids, vertex_hashes
from tests.support.examples import examples
from tests.support.runs import QUIET, random_edges, rewrite_record, write_edges

EDGES = random_edges(40, 30, 0.3, 4)
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module", params=[False, True], ids=["int", "string"])
def mined(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("verify")
    source = write_edges(folder / "g.parquet", EDGES, request.param)
    bq.mine(source, folder / "out", **QUIET)
    return folder / "out"


def changed(mined: Path, tmp_path: Path, change: Callable[[Rows], Rows], honest: bool = False) -> Path:
    """A copy of the run with other rows. `honest` also changes the manifest to match, as a wrong engine would."""
    out = tmp_path / "out"
    shutil.copytree(mined, out)
    part = next((out / "bicliques").iterdir())
    schema = pq.read_schema(part)
    rows = change(pq.read_table(part).to_pylist())
    for row in rows:
        row["n_left"], row["n_right"] = len(row["left"]), len(row["right"])
    folder = RunFolder(out)
    known = {side: open_labels(folder, side) for side in ("left", "right")}
    for row, number in zip(rows, numbers_of(known, rows), strict=True) if honest else ():
        row["id"] = number
    pq.write_table(pa.Table.from_pylist(rows, schema), part)
    manifest = json.loads((out / "manifest.json").read_text())
    total = sum(row["id"] for row in rows) % 2**64
    manifest["parts"][0] |= {"bytes": part.stat().st_size, "rows": len(rows)} | (
        {"fingerprint": str(total)} if honest else {}
    )
    (ledger,) = (out / "ledger").iterdir()
    rewrite_record(ledger, parts=manifest["parts"])
    if honest:
        manifest |= {"count": len(rows), "fingerprint": str(total)}
        shutil.rmtree(out / "summary")  # would be of these rows
    rewrite_record(out / "manifest.json", **manifest)
    return out


def numbers_of(known: dict[str, pa.Array], rows: Rows) -> list[int]:
    """The ids of rows, from all labels of both sides."""
    hashes = vertex_hashes(known["left"], "left"), vertex_hashes(known["right"], "right")
    number = {side: {label: k for k, label in enumerate(known[side].to_pylist())} for side in known}
    pairs = [tuple([number[side][label] for label in row[side]] for side in ("left", "right")) for row in rows]
    ids = row_hashes(Bicliques.from_pairs(pairs), hashes).view(np.int64).tolist()
    return ids


def name_anew(out: Path, part: Path):
    """Update the size of a part in ledger and manifest."""
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["parts"][0]["bytes"] = part.stat().st_size
    rewrite_record(out / "manifest.json", **manifest)
    (ledger,) = (out / "ledger").iterdir()
    rewrite_record(ledger, parts=manifest["parts"])


def drop(rows: Rows) -> Rows:
    return rows[1:]


def duplicate(rows: Rows) -> Rows:
    return [*rows, dict(rows[7])]


def shrink(rows: Rows) -> Rows:
    row = next(row for row in rows if row["n_left"] > 2)
    row["left"] = row["left"][1:]
    return rows


def grow(rows: Rows) -> Rows:
    other = {label for row in rows for label in row["right"]}
    row = rows[0]
    row["right"] = sorted([*row["right"], sorted(other - set(row["right"]))[0]])
    return rows


def swap(rows: Rows) -> Rows:
    rows[0]["left"], rows[1]["left"] = rows[1]["left"], rows[0]["left"]
    return rows


def repeat_a_member(rows: Rows) -> Rows:
    rows[0]["left"] = [*rows[0]["left"], rows[0]["left"][0]]
    return rows


def turn_round(rows: Rows) -> Rows:
    row = next(row for row in rows if row["n_right"] > 2)
    row["right"] = row["right"][::-1]
    return rows


def confuse(rows: Rows) -> Rows:
    """Two rows have the ids of each other, so the fingerprint is right."""
    rows[3]["id"], rows[4]["id"] = rows[4]["id"], rows[3]["id"]
    return rows


MUTANTS = [
    (duplicate, "is also in"),
    (shrink, "is not maximal: 1 left vertex can be added"),
    (grow, "is not a biclique: an edge is missing"),
    (swap, "is not a biclique|is not maximal"),
    (repeat_a_member, "row 0 of row group 0: its left members do not ascend"),
    (turn_round, r"row \d+ of row group 0: its right members do not ascend"),
]


def test_a_right_run_is_verified_in_words(mined):
    found = bq.verify(mined, sample=10**6, progress=False)
    assert found.sampled == found.count == bq.open_run(mined).manifest.count
    assert any("no biclique is missing cannot be seen" in words for words in found.not_proven)
    assert found.fingerprint == bq.open_run(mined).manifest.fingerprint


@pytest.mark.parametrize("mutant", [drop, confuse, *(mutant for mutant, _ in MUTANTS)], ids=lambda m: m.__name__)
def test_rows_that_changed_after_proving_are_refused(mined, tmp_path, mutant):
    out = changed(mined, tmp_path, mutant)
    with pytest.raises(IncompleteError, match=r"but the manifest says|has the id|members do not ascend"):
        bq.verify(out, sample=0, progress=False)


@pytest.mark.parametrize(("mutant", "words"), MUTANTS, ids=lambda m: getattr(m, "__name__", ""))
def test_wrong_rows_are_refused_even_if_the_engine_found_them(mined, tmp_path, mutant, words):
    out = changed(mined, tmp_path, mutant, honest=True)
    with pytest.raises(IncompleteError, match=words):
        bq.verify(out, sample=10**6, progress=False)


def test_facts_that_rows_cannot_show_are_listed_as_not_proven(mined, tmp_path):
    """The engine did not report the missing biclique. Only a second enumeration finds it, and verification says so."""
    found = bq.verify(changed(mined, tmp_path, drop, honest=True), sample=10**6, progress=False)
    assert any("cannot be seen from the rows" in words for words in found.not_proven)


def test_a_label_that_is_not_in_the_input(mined, tmp_path):
    def rename(rows: Rows) -> Rows:
        rows[0]["left"][0] = "nobody" if isinstance(rows[0]["left"][0], str) else 10**6
        return rows

    with pytest.raises(IncompleteError, match="is not the label of a vertex of the input"):
        bq.verify(changed(mined, tmp_path, rename), progress=False)


def test_sizes_that_differ_from_the_lists_are_refused(mined, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(mined, out)
    part = next((out / "bicliques").iterdir())
    table = pq.read_table(part)
    sizes = table["n_left"].to_numpy().copy()
    sizes[3] += 1
    pq.write_table(table.set_column(3, table.schema.field("n_left"), pa.array(sizes)), part)
    name_anew(out, part)
    with pytest.raises(IncompleteError, match="column n_left is not the length of column left"):
        bq.verify(out, progress=False)


def test_other_columns(mined, tmp_path):
    out = changed(mined, tmp_path, lambda rows: rows)
    part = next((out / "bicliques").iterdir())
    table = pq.read_table(part).rename_columns(["id", "right", "left", "n_left", "n_right", "root"])
    pq.write_table(table.replace_schema_metadata({"bicliques.schema": "2"}), part)
    name_anew(out, part)
    with pytest.raises(IncompleteError, match=r"has the columns id int64, right list.* instead of id int64, left list"):
        bq.verify(out, progress=False)


@pytest.mark.parametrize("limits", [{"min_left": 3}, {"max_right": 2}], ids=str)
def test_rows_outside_the_limits_of_the_run(mined, tmp_path, limits):
    out = changed(mined, tmp_path, lambda rows: rows)
    options = json.loads((out / "options.json").read_text())["options"]
    rewrite_record(out / "options.json", options=options | {"search": options["search"] | limits})
    (side,) = (name.partition("_")[2] for name in limits)
    with pytest.raises(IncompleteError, match=f"has a row whose {side} side is outside the limits of the run"):
        bq.verify(out, progress=False)


def test_another_schema_version(mined, tmp_path):
    out = changed(mined, tmp_path, lambda rows: rows)
    part = next((out / "bicliques").iterdir())
    table = pq.read_table(part)
    pq.write_table(table.replace_schema_metadata({"bicliques.schema": "77"}), part)
    name_anew(out, part)
    with pytest.raises(IncompleteError, match="schema version 77, and this package reads versions 2 and 3; mine again"):
        bq.verify(out, progress=False)


def test_a_foreign_part_is_refused(mined, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(mined, out)
    (out / "bicliques" / "more.parquet").write_bytes(b"x")
    with pytest.raises(IncompleteError, match=r"more\.parquet is not of this run, and would be read"):
        bq.verify(out, progress=False)


@settings(max_examples=examples(100), deadline=None)
@given(
    pairs=st.lists(
        st.tuples(
            st.lists(st.integers(0, 50), min_size=1, max_size=9, unique=True),
            st.lists(st.integers(0, 30), min_size=1, max_size=9, unique=True),
        ),
        max_size=20,
    )
)
def test_row_hashes_add_up_to_the_fingerprint(pairs):
    batch = Bicliques.from_pairs(pairs)
    hashes = Summary(51, 31).add(batch, hashes_of_ids(51, 31))
    assert int(np.add.reduce(hashes, dtype=np.uint64)) == fingerprint(batch)


@settings(max_examples=examples(60), deadline=None)
@given(
    numbers=st.lists(st.integers(0, 2**64 - 1), max_size=300),
    again=st.lists(st.integers(0, 299), max_size=5),
    buckets=st.sampled_from([1, 7]),
)
def test_repeats_are_found(numbers, again, buckets):
    numbers += [numbers[k] for k in again if k < len(numbers)]
    with Repeats(1) as repeats:
        pass
    repeats.n_buckets = buckets
    with repeats:
        for start in range(0, len(numbers), 50):
            repeats.add(np.sort(np.array(numbers[start : start + 50], dtype=np.uint64)))
        found = set(repeats.found().tolist())
    assert found == {number for number in numbers if numbers.count(number) > 1}


def test_all_repeated_numbers_are_found():
    """Numbers are spread over all 64 bits. Those of a pair are in different batches and in the same bucket."""
    numbers = np.random.default_rng(1).integers(0, 2**64, 5000, dtype=np.uint64, endpoint=False)
    with Repeats(1) as repeats:
        pass
    repeats.n_buckets = 7
    with repeats:
        for batch in np.array_split(numbers, 9) + np.array_split(numbers[::-1], 11):
            repeats.add(np.sort(batch))
        found = repeats.found(most=10**6)
    assert np.array_equal(np.sort(found), np.unique(numbers))


def test_a_change_of_any_row_is_noticed(tmp_path):
    """Each row in turn loses a member, in a run whose manifest agrees. Every row is checked."""
    source = write_edges(tmp_path / "g.parquet", random_edges(9, 8, 0.45, 3))
    bq.mine(source, tmp_path / "mined", **QUIET)
    count = len(bq.open_run(tmp_path / "mined"))
    assert 15 < count < 60
    for k in range(count):
        (tmp_path / str(k)).mkdir()

        def tamper(rows: Rows, k: int = k) -> Rows:
            side = "left" if rows[k]["n_left"] > 1 else "right"
            rows[k][side] = rows[k][side][1:] or [rows[k - 1][side][0]]
            return rows

        out = changed(tmp_path / "mined", tmp_path / str(k), tamper, honest=True)
        with pytest.raises(IncompleteError, match=r"is not maximal|is not a biclique|is also in"):
            bq.verify(out, sample=count, progress=False)


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (pa.array([-5, 0, 7, 2**62]), pa.array([7, 7, -5, 2**62])),
        (pa.array([-2, -1, 0, 1]), pa.array([1, -2, -2, 0])),
        (pa.array([2**63 - 2, 2**63 - 1]), pa.array([2**63 - 1])),
        (pa.array([-1, 0, 1], pa.int32()), pa.array([1, 1, -1], pa.int32())),
        (pa.array(["a", "b", "c d"]), pa.array(["c d", "a", "a"])),
        (pa.array(["a", "b", "c d"]), pa.array(["b", "a", "b"]).dictionary_encode()),
    ],
    ids=["int", "range", "largest", "narrow", "string", "dictionary"],
)
def test_ids_of_labels(labels, values):
    assert labels.take(pa.array(ids_of(values, labels))).to_pylist() == values.to_pylist()


@pytest.mark.parametrize(
    ("value", "labels"), [(-6, [-5, 0, 7]), (1, [-5, 0, 7]), (8, [-5, 0, 7]), (4, [5, 6, 7]), (8, [5, 6, 7]), (7, [])]
)
def test_an_unknown_number_is_refused(value, labels):
    for kind in (pa.int32(), pa.int64()):
        with pytest.raises(IncompleteError, match=f"{value} is not the label"):
            ids_of(pa.array([*labels[-1:], value], kind), pa.array(labels, kind))


@pytest.mark.parametrize("value", [-(2**63), 2**63 - 1])
def test_a_number_far_from_all_labels_is_refused(value):
    with pytest.raises(IncompleteError, match=f"{value} is not the label"):
        ids_of(pa.array([value]), pa.array([-1, 0, 1]))


def test_an_objection_names_the_difference():
    adjacency = Adjacency(np.array([0, 0, 1, 1, 2], np.int32), np.array([0, 1, 0, 1, 0], np.int32), 3, 2)
    two = np.array([0, 1], np.int32)
    assert adjacency.objection(two, two) is None
    assert adjacency.objection(np.array([0, 2], np.int32), two) == "is not a biclique: an edge is missing"
    assert adjacency.objection(two, two[:1]) == "is not maximal: 1 right vertex can be added"
