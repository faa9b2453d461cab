"""Bicliques with given members, end to end: labels, files of labels, runs as sources, resuming, verification."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.ingest.from_run import take_from_run
from bicliques.pipeline.prepare import members
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.search import as_labels
from tests.support.runs import OWN, QUIET, random_edges, rewrite_record, write_edges

EDGES = random_edges(40, 30, 0.35, 8)

Rows = list[tuple[list[Any], list[Any]]]


@pytest.fixture(scope="module", params=[False, True], ids=["numbers", "text"])
def source(request, tmp_path_factory):
    return write_edges(tmp_path_factory.mktemp("members") / "g.parquet", EDGES, request.param)


@pytest.fixture(scope="module")
def whole(source):
    return bq.mine(source, source.parent / "whole", engine="reference", **QUIET)


@pytest.fixture
def words(tmp_path):
    """The same graph with text."""
    return write_edges(tmp_path / "words.parquet", EDGES, True)


def rows(results: bq.Results) -> Rows:
    return sorted((sorted(row["left"]), sorted(row["right"])) for row in results.to_arrow().to_pylist())


def containing(whole: bq.Results, left: list[Any], right: list[Any]) -> Rows:
    """The definition: the bicliques of the whole graph that contain them."""
    return [row for row in rows(whole) if set(left) <= set(row[0]) and set(right) <= set(row[1])]


def some_row(whole: bq.Results) -> tuple[list[Any], list[Any]]:
    return max(rows(whole), key=lambda row: min(len(row[0]), len(row[1])))


@pytest.mark.values
@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize("members", [(1, 0), (0, 1), (1, 1), (2, 2)])
def test_they_are_those_of_all_that_contain_them(source, whole, tmp_path, engine, members):
    row = some_row(whole)
    left, right = row[0][: members[0]], row[1][: members[1]]
    found = bq.mine(source, tmp_path / "out", containing_left=left, containing_right=right, engine=engine, **QUIET)
    expected = containing(whole, left, right)
    assert 0 < len(expected) < len(whole)
    assert rows(found) == expected
    assert "every row contains the members that were asked for" in bq.verify(tmp_path / "out").proven
    counted = bq.count(source, containing_left=left, containing_right=right, engine=engine, fingerprint=True, **OWN)
    assert (counted.count, counted.fingerprint) == (len(expected), found.manifest.fingerprint)


def test_with_thresholds_filters_and_the_largest(source, whole, tmp_path):
    (label, *_), _ = some_row(whole)
    sizes = {"min_left": 3, "min_right": 2, "max_left": 6}
    expected = [row for row in containing(whole, [label], []) if 3 <= len(row[0]) <= 6 and len(row[1]) >= 2]
    found = bq.mine(source, tmp_path / "out", containing_left=[label], **sizes, **QUIET)
    assert rows(found) == expected
    assert len(expected) > 5
    few = bq.largest(source, tmp_path / "few", containing_left=[label], top=5, by="balance", **sizes, **QUIET)
    assert rows(few) == rows_of(found.top(5, "balance"))
    guess = bq.dry_run(source, containing_left=[label], workers=0, sample_time=1, progress=False)
    assert guess.estimate.bicliques.value == pytest.approx(len(containing(whole, [label], [])))


def rows_of(table: pa.Table) -> Rows:
    return sorted((sorted(row["left"]), sorted(row["right"])) for row in table.to_pylist())


def test_labels_as_text_as_numbers_of_numpy_and_from_a_file(whole, source):
    left, right = some_row(whole)
    file = source.parent / "labels.txt"
    file.write_bytes("\ufeff".encode() + "\r\n".join([*map(str, left[1:2]), "", ""]).encode())
    expected = len(containing(whole, left[:2], right[:1]))
    assert bq.count(source, containing_left=left[:2], containing_right=right[:1], **OWN).count == expected
    for given in (np.array(left[:2]), set(map(str, left[:2])), [*left[:2], *left[:2]]):
        found = bq.count(source, containing_left=given, containing_right=str(right[0]), **OWN)
        assert found.count == expected
    assert (
        bq.count(source, containing_left=left[:1], containing_left_from=file, containing_right=right[:1], **OWN).count
        == expected
    )


def test_a_run_as_source_is_not_read_again_and_its_result_stands_alone(source, whole, tmp_path, monkeypatch):
    first = shutil.copytree(whole.path, tmp_path / "first")
    label = some_row(whole)[1][0]
    monkeypatch.setattr("bicliques.pipeline.api.preparing.ingest_source", None)  # it would be called
    found = bq.mine(first, tmp_path / "out", containing_right=[label], **QUIET)
    assert rows(found) == containing(whole, [], [label])
    options = json.loads((tmp_path / "out" / "options.json").read_text())["options"]
    assert options["source"] == str(first)
    assert options["search"]["containing_right"] == [label]
    assert found.manifest.input["digest"] == whole.manifest.input["digest"]
    assert found.manifest.input["from_run"] == str(first)
    assert bq.count(first, containing_right=[label], **OWN).count == len(found)
    shutil.rmtree(first)
    assert bq.verify(tmp_path / "out").count == len(found)
    (tmp_path / "out" / "manifest.json").unlink()
    assert bq.resume(tmp_path / "out", **QUIET).complete
    graph = next((tmp_path / "out" / "graph").glob("*.npy"))
    graph.write_bytes(b"damaged")
    assert bq.resume(tmp_path / "out", **QUIET).complete
    assert bq.verify(tmp_path / "out").count == len(found)
    (tmp_path / "out" / "edges" / "edges.parquet").unlink()
    with pytest.raises(InputError, match="cannot be read again"):
        bq.resume(tmp_path / "out", **QUIET)


@pytest.mark.parametrize("links", [True, False])
def test_the_tables_of_the_input_are_shared_or_copied(whole, tmp_path, links, monkeypatch):
    if not links:

        def other_file_system(*_, **__):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

        monkeypatch.setattr(Path, "hardlink_to", other_file_system)
    bq.mine(whole.path, tmp_path / "out", **QUIET)
    for name in ("edges/edges.parquet", "labels/left.parquet", "labels/right.parquet"):
        ours, theirs = tmp_path / "out" / name, whole.path / name
        assert ours.samefile(theirs) == links
        assert ours.read_bytes() == theirs.read_bytes()
    assert bq.open_run(tmp_path / "out").manifest.fingerprint == whole.manifest.fingerprint


def test_a_link_to_a_run_is_a_source_and_what_it_held_then_counts(whole, tmp_path):
    (tmp_path / "latest").symlink_to(whole.path)
    assert bq.count(tmp_path / "latest", **OWN).count == len(whole)
    bq.mine(tmp_path / "latest", tmp_path / "out", max_results=3, **QUIET)
    other = write_edges(tmp_path / "other.parquet", EDGES[1:])
    bq.mine(other, tmp_path / "other", **QUIET)
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").symlink_to(tmp_path / "other")
    (tmp_path / "out" / "edges" / "edges.parquet").unlink()
    with pytest.raises(IncompleteError, match="does not give again what it gave"):
        bq.resume(tmp_path / "out", max_results=None, **QUIET)


def test_a_run_of_linked_tables_holds_files_of_its_own(whole, tmp_path):
    linked = shutil.copytree(whole.path, tmp_path / "linked")
    for table in (*linked.glob("labels/*"), *linked.glob("edges/*")):
        table.symlink_to(table.rename(tmp_path / table.name))
    found = bq.mine(linked, tmp_path / "new", **QUIET)
    tables = [*found.path.glob("labels/*"), *found.path.glob("edges/*")]
    assert len(tables) == 3
    assert not any(table.is_symlink() for table in tables)


def test_a_run_of_a_run_names_the_run_it_was_taken_from(whole, tmp_path):
    second = bq.mine(whole.path, tmp_path / "second", **QUIET)
    rewrite_record(second.path / "steps" / "ingest.json", seconds=1e6)
    third = bq.mine(second.path, tmp_path / "third", **QUIET)
    assert third.manifest.input["from_run"] == str(second.path)
    assert third.manifest.input["seconds"] < 1e6


def test_a_source_run_that_is_damaged_or_not_read_is_refused(whole, tmp_path, monkeypatch):
    first, out = shutil.copytree(whole.path, tmp_path / "first"), tmp_path / "out"
    labels = first / "labels" / "left.parquet"
    with monkeypatch.context() as owned:
        owned.setattr("bicliques.pipeline.ingest.from_run.os.access", lambda *_: False)
        with pytest.raises(InputError, match=r"left.parquet may not be read; ask its owner"):
            take_from_run(first, IngestOptions(), tmp_path)
    content = labels.read_bytes()
    labels.write_bytes(content[:-1] + b"!")
    with pytest.raises(InputError, match=r"left.parquet is missing or damaged; mend it with: bicliques.resume"):
        bq.mine(first, out, **QUIET)
    labels.unlink()
    with pytest.raises(InputError, match=r"left.parquet is missing or damaged"):
        bq.mine(first, out, **QUIET)
    (first / "steps" / "ingest.json").unlink()
    with pytest.raises(InputError, match="cannot be taken as a source: step ingest of"):
        bq.count(first, **OWN)
    with pytest.raises(InputError, match="has read its input already; leave label_type out"):
        bq.mine(whole.path, out, label_type="string", **QUIET)
    with pytest.raises(InputError, match="has read its input already; leave ingest_on out"):
        bq.mine(whole.path, out, ingest_on="gpu", **QUIET)
    assert not out.exists()


def test_stopped_and_resumed_it_is_the_same(source, whole, tmp_path):
    label, out = some_row(whole)[0][0], tmp_path / "out"
    expected = containing(whole, [label], [])
    stopped = bq.mine(whole.path, out, containing_left=[label], max_results=4, **QUIET)
    assert (stopped.complete, len(stopped)) == (False, 4)
    shutil.rmtree(out / "graph")
    found = bq.resume(out, max_results=None, **QUIET | {"slice_seconds": 0.001})
    assert rows(found) == expected


def test_the_facts_say_what_was_asked_for(source, whole, tmp_path):
    label = some_row(whole)[0][0]
    found = bq.mine(source, tmp_path / "out", containing_left=[label], min_left=2, **OWN)
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"at least 2 left members, on the left {label!r}" in page.replace("&#x27;", "'").replace("&#39;", "'")
    assert found.manifest.graph["profile"] == whole.manifest.graph["profile"], "the profile is of the whole input"


def test_members_that_are_not_joined_give_none_and_say_which(words, tmp_path):
    u, v = next((u, v) for u in range(40) for v in range(30) if [u, v] not in EDGES.tolist())
    left, right = f"u{3 * u + 5}", f"thing {7 * v + 1}"
    found = bq.mine(words, tmp_path / "out", containing_left=[left], containing_right=[right], **QUIET)
    assert (found.complete, len(found), found.manifest.fingerprint) == (True, 0, 0)
    reason = f"left {left!r} and right {right!r} are not joined by an edge"
    assert found.manifest.graph["nothing"] == reason
    assert bq.verify(tmp_path / "out").count == 0
    joined = next(f"u{3 * a + 5}" for a, b in EDGES.tolist() if b == v)
    more = bq.count(words, containing_left=[left, joined], containing_right=[right], **OWN)
    assert (more.count, more.graph["nothing"]) == (0, reason)
    apart = [f"thing {7 * b + 1}" for b in range(30) if [u, b] not in EDGES.tolist()]
    many = bq.count(words, containing_left=[left], containing_right=apart, **OWN)
    assert many.graph["nothing"].endswith(f", nor are {len(apart) - 1} other pairs of given members")


def test_members_without_a_common_neighbour_give_none_and_say_so(words):
    every = [f"u{3 * u + 5}" for u in range(40)]
    found = bq.count(words, containing_left=every, **OWN)
    named = ", ".join(map(repr, sorted(every)[:3]))
    assert (found.count, found.complete) == (0, True)
    assert found.graph["nothing"] == f"no right vertex is joined to all of {named} and 37 more"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"containing_left": ["u55"]}, r"no left vertex \(user\) of .* has the label 'u55'; near it are '.*; correct"),
        ({"containing_left": ["U5"]}, r"'U5'; near it are 'u5'"),
        ({"containing_right": ["thing 1", "x", "y"]}, r"'x'; no label is near it; .*; 1 more of the labels are not"),
        (
            {"containing_left": ["thing 1"]},
            r"'thing 1' is a right label \(item\) .*, not a left one \(user\); give it as",
        ),
        ({"containing_right": ["u5"]}, r"'u5' is a left label \(user\) .*; give it as containing_left"),
        ({"containing_left": [5]}, r"the left labels \(user\) of .* are text, and 5 is a number; give it as '5'"),
        ({"containing_left": ["u" * 5000]}, "no label is near it"),
        ({"containing_left": [True]}, r"must be labels, text or whole numbers, not True \(bool\)"),
        ({"containing_left": [1.5]}, r"must be labels, text or whole numbers, not 1.5 \(float\)"),
        ({"containing_left": 1.5}, r"must be labels, text or whole numbers, not 1.5 \(float\)"),
        ({"containing_left": None}, r"must be labels, text or whole numbers, not None"),
        ({"containing_left": ["\udc80"]}, "which is not UTF-8"),
        ({"containing_left_from": "no-such-file"}, "no-such-file cannot be read .*; correct containing_left_from"),
    ],
    ids=str,
)
def test_labels_that_cannot_be_are_one_sentence_and_nothing_is_written(words, tmp_path, asked, sentence):
    with pytest.raises(InputError, match=sentence) as refused:
        bq.mine(words, tmp_path / "out", **asked, **QUIET)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("label", "sentence"),
    [
        (6, "has the label 6; near it are 5, 8; correct containing_left"),
        ("6", "has the label '6'; near it are 5, 8; correct containing_left"),
        (10**30, "near it are 122; correct"),
        (0, "near it are 5; correct"),
        ("005", "are whole numbers, and '005' is none; correct containing_left"),
        ("bob", "are whole numbers, and 'bob' is none"),
        ("9" * 5000, "are whole numbers, and '999"),
        (1, r"1 is a right label \(item\) .*; give it as containing_right"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_labels_of_numbers(tmp_path, label, sentence):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    with pytest.raises(InputError, match=sentence):
        bq.count(source, containing_left=[label], **OWN)


def test_a_file_of_labels_that_cannot_be_used(words, tmp_path):
    file = tmp_path / "labels.txt"
    for content, sentence in ((b"\n\r\n", "holds no label"), (b"u5\n\xff\n", "line 2 of .* is not UTF-8")):
        file.write_bytes(content)
        with pytest.raises(InputError, match=sentence):
            bq.count(words, containing_left_from=file, **OWN)


def test_only_labels_of_a_usual_length_are_compared(tmp_path):
    """Comparing two takes time that grows with the product of their lengths."""
    long = "".join(map(chr, range(0x4E00, 0x4E00 + 200)))
    source = tmp_path / "g.parquet"
    pq.write_table(pa.table({"a": [long, long + "c", "b"], "b": ["x"] * 3}), source)
    for wrong, sentence in ((long[1:], f"near it are '{long}'; correct"), (long[1:] + "de", "no label is near it")):
        with pytest.raises(InputError, match=sentence):
            bq.count(source, containing_left=[wrong], **OWN)


def test_near_labels_of_many_are_found_without_comparing_all(tmp_path, monkeypatch):
    """A wrong beginning, a wrong end, other capitals, and a part of a label."""
    labels = [f"person {k:05d} of somewhere" for k in range(members.MANY + 5)]
    source = tmp_path / "g.parquet"
    pq.write_table(pa.table({"a": labels, "b": ["x"] * len(labels)}), source)
    compared = []
    close = members.difflib.get_close_matches

    def counting(word: str, among, n: int) -> list[str]:
        compared.append(len(among))
        return close(word, among, n)

    monkeypatch.setattr(members.difflib, "get_close_matches", counting)
    for wrong, meant in (
        ("Person 01234 of somewhere", "person 01234 of somewhere"),
        ("qerson 01234 of somewhere", "person 01234 of somewhere"),
        ("person 01234 of nowhere", "person 01234 of somewhere"),
        ("qerson_01234 of somewhere", "person 01234 of somewhere"),
        ("01234", "person 01234 of somewhere"),
    ):
        with pytest.raises(InputError, match=f"near it are .*{meant}"):
            bq.count(source, containing_left=[wrong], **OWN)
    assert max(compared) < members.MANY


def test_a_row_without_a_member_is_not_verified(words, tmp_path):
    """As when the graph was not restricted: all else about the rows is right."""
    out = tmp_path / "out"
    bq.mine(words, out, **QUIET)
    for name, asked in (("containing_left", ["u5"]), ("containing_right", ["thing 1"])):
        header = json.loads((out / "options.json").read_text())
        search = header["options"]["search"] | {"containing_left": [], "containing_right": [], name: asked}
        rewrite_record(out / "options.json", options=header["options"] | {"search": search})
        with pytest.raises(IncompleteError, match="lacks a member that was asked for"):
            bq.verify(out)


def test_a_run_of_an_earlier_version_has_no_members(whole, tmp_path):
    out = shutil.copytree(whole.path, tmp_path / "out")
    options = json.loads((out / "options.json").read_text())["options"]
    search = {key: value for key, value in options["search"].items() if not key.startswith("containing")}
    rewrite_record(out / "options.json", options=options | {"search": search})
    assert bq.verify(out).count == len(whole)


def test_the_order_of_labels_does_not_matter_for_the_identity():
    assert as_labels("x", ["b", 3, "a", np.int64(1), "b"]) == as_labels("x", {1, "a", 3, "b"}) == (1, 3, "a", "b")
    assert as_labels("x", "word") == ("word",)
    assert [type(label) for label in as_labels("x", np.array([7]))] == [int]


def test_steps_one_by_one(words, tmp_path, whole):
    """As a flow calls them."""
    from bicliques.pipeline.api.choices import Asked, with_engine

    asked = Asked.of(words, {"containing_left": ["u5"]}, mode="list")
    out = tmp_path / "out"
    steps.start(words, out, with_engine(asked.options), asked.limits, False)
    steps.build(out, False)
    steps.plan(out, False)
    steps.mine(out, progress=False)
    assert steps.prove(out, progress=False).count == bq.count(words, containing_left=["u5"], **OWN).count
