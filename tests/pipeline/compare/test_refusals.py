"""What cannot be compared, files that are damaged, and a disk that is full: a sentence, and nothing is left."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.compare import diffing, rows
from bicliques.pipeline.compare.diffing import Changed, Partition
from bicliques.pipeline.run.names import stranger_in
from bicliques.pipeline.run.tables import LOCAL
from bicliques.schemas.errors import BicliqueError, IncompleteError, InputError, ResourceError
from tests.support.compared import QUIET, maximal_bicliques, night, rows_of
from tests.support.runs import random_edges, rewrite_record

EDGES = {(int(a) + 5, int(b) + 5) for a, b in random_edges(10, 9, 0.5, 6)}
LESS = EDGES - {min(EDGES), max(EDGES)}


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("nights")
    return night(place / "old", EDGES), night(place / "new", LESS)


@pytest.fixture
def both(nights: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """Two runs that a test may damage."""
    return tuple(Path(shutil.copytree(path, tmp_path / path.name)) for path in nights)  # type: ignore[return-value]


def refused(old: Path, new: Path, place: Path, error: type[BicliqueError], *words: str) -> None:
    """The comparison fails with one sentence that has these words, and nothing is left of it."""
    before = sorted(place.parent.glob("*"))
    with pytest.raises(error) as ended:
        bq.diff(old, new, place, progress=False)
    for word in words:
        assert word in str(ended.value)
    assert "\n" not in str(ended.value)
    assert sorted(place.parent.glob("*")) == before


def test_runs_that_are_no_runs(nights: tuple[Path, Path], tmp_path: Path) -> None:
    refused(nights[0], tmp_path / "nowhere", tmp_path / "diff", InputError, "nowhere", "does not exist")
    refused(tmp_path / "nowhere", nights[0], tmp_path / "diff", InputError, "nowhere", "does not exist")


def test_runs_that_do_not_hold_all_bicliques(nights: tuple[Path, Path], tmp_path: Path) -> None:
    source = nights[0].with_suffix(".parquet")
    counted = bq.mine(source, tmp_path / "counted", count_only=True, **QUIET).path
    largest = bq.largest(source, tmp_path / "largest", top=3, **QUIET).path
    stopped = bq.mine(source, tmp_path / "stopped", max_results=3, **QUIET).path
    for k in (0, 1):
        for path, error, words in (
            (counted, InputError, "was mined with count_only=True and holds no bicliques; mine it again without"),
            (largest, InputError, "holds only the largest bicliques"),
            (
                stopped,
                IncompleteError,
                f"is not complete; continue with: bicliques.resume('{stopped}', max_results=None)",
            ),
        ):
            runs = (path, nights[1]) if k == 0 else (nights[0], path)
            refused(*runs, tmp_path / "diff", error, str(path), words)


def test_labels_of_other_types(nights: tuple[Path, Path], tmp_path: Path) -> None:
    text = night(tmp_path / "text", {(a, f"film {b}") for a, b in EDGES})
    words = "the right labels are integers in", "and text in", "mine one of them again"
    refused(nights[0], text, tmp_path / "diff", InputError, *words)
    refused(text, nights[0], tmp_path / "diff", InputError, "the right labels are text in")


def test_sides_that_are_the_other_way_round(nights: tuple[Path, Path], tmp_path: Path) -> None:
    turned = night(tmp_path / "turned", {(b, a) for a, b in EDGES}, ("film", "user"))
    words = "left is user and right is film in", "and the other way round in", "left='user', right='film'"
    refused(nights[0], turned, tmp_path / "diff", InputError, *words)


def test_other_names_and_thresholds_are_noted(nights: tuple[Path, Path], tmp_path: Path) -> None:
    options = {"min_left": 2, "max_right": 4, "containing_right": [min(EDGES)[1]]}
    renamed = night(tmp_path / "renamed", EDGES, ("user", "movie"), **options)
    found = bq.diff(nights[0], renamed, tmp_path / "diff", progress=False)
    assert found.record.notes == (
        "The right side was called film, and is called movie.",
        "The thresholds differ, so bicliques may be gone or new although no edge has changed: min_left was 1 and is 2; "
        f"max_right was any and is 4; containing_right was any and is {min(EDGES)[1]}.",
    )
    assert rows_of(found.gone) == maximal_bicliques(EDGES) - rows_of(bq.open_run(renamed))


def test_the_same_members_in_another_order_are_no_note(nights: tuple[Path, Path], tmp_path: Path) -> None:
    given = [int(label) for label in bq.open_run(nights[0]).top(1)["left"][0].as_py()[:2]]
    as_text = [str(label) for label in given[::-1]]
    runs = [night(tmp_path / str(k), EDGES, containing_left=some) for k, some in enumerate((given, as_text))]
    assert len(set(given)) == 2
    assert bq.diff(*runs, tmp_path / "diff", progress=False).record.notes == ()


def test_a_comparison_that_does_not_lead_from_one_run_to_the_other_is_refused(nights, tmp_path, monkeypatch):
    changed, nothing = Partition.changed, Changed(np.empty(0, np.int64), 0)
    monkeypatch.setattr(Partition, "changed", lambda self: ((nothing, new) for _, new in changed(self)))
    refused(*nights, tmp_path / "diff", IncompleteError, "old - gone + new is", "which run is damaged")


def test_output_folders_that_cannot_be_used(nights: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("mine")
    for name, words in (
        ("file", "cannot be used (File exists); name another one"),
        ("file/below", "cannot be used (Not a directory); name another one"),
        ("full", "is not empty: it holds letter; name another one"),
    ):
        refused(*nights, tmp_path / name, InputError, words)
    assert (tmp_path / "full" / "letter").read_text() == "mine"
    bq.diff(*nights, tmp_path / "diff", progress=False)
    before = {path.name: path.read_bytes() for path in (tmp_path / "diff").iterdir()}
    refused(*nights, tmp_path / "diff", InputError, "holds a comparison already; name another one, or delete it")
    assert {path.name: path.read_bytes() for path in (tmp_path / "diff").iterdir()} == before
    with pytest.raises(InputError, match="s3://bucket/diff is a URL"):
        bq.diff(*nights, "s3://bucket/diff", progress=False)


def test_what_a_killed_comparison_left_is_replaced(nights: tuple[Path, Path], tmp_path: Path) -> None:
    place = tmp_path / "diff"
    place.mkdir()
    for name in ("gone.parquet", ".new.parquet.tmp", ".diff.json.tmp"):
        (place / name).write_text("half")
    found = bq.diff(*nights, place, progress=False)
    assert rows_of(found.gone) == maximal_bicliques(EDGES) - maximal_bicliques(LESS)
    assert len(list(place.iterdir())) == 5


def _without(name: str) -> Callable[[Path], None]:
    return lambda run: next(run.glob(name)).unlink()


def _changed(name: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        file = next(run.glob(name))
        data = bytearray(file.read_bytes())
        for at in range(30, len(data), 60):
            data[at] ^= 16
        file.write_bytes(data)

    return change


def _another_fingerprint(run: Path) -> None:
    told = json.loads((run / "manifest.json").read_text())["fingerprint"]
    rewrite_record(run / "manifest.json", fingerprint=str((int(told) + 1) % 2**64))


def _another_summary(run: Path) -> None:
    file = run / "summary" / "left.parquet"
    table = pq.read_table(file, filesystem=LOCAL)
    more = pa.array([n + 1 for n in table["bicliques"].to_pylist()])
    pq.write_table(table.set_column(1, "bicliques", more), file)


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a part is missing": (_without("bicliques/*.parquet"), "has no bytes, but the manifest says"),
    "a part is damaged": (_changed("bicliques/*.parquet"), "cannot be read"),
    "the summary is missing": (_without("summary/right.parquet"), "cannot be read"),
    "the summary is damaged": (_changed("summary/left.parquet"), "cannot be read"),
    "the summary is of other rows": (_another_summary, "is not in as many bicliques as the rows say"),
    "labels are missing": (_without("graph/left_labels.arrow"), "cannot be read"),
    "the manifest is missing": (_without("manifest.json"), "is not complete; continue with: bicliques.resume"),
    "the manifest is damaged": (_changed("manifest.json"), "mend it with: bicliques.resume"),
    "the manifest is of other rows": (_another_fingerprint, "but its manifest says"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("which", [0, 1])
def test_damaged_runs(both: tuple[Path, Path], tmp_path: Path, which: int, damage: str) -> None:
    change, words = DAMAGES[damage]
    change(both[which])
    refused(*both, tmp_path / "diff", IncompleteError, words)


@pytest.mark.parametrize("name", ["gone.parquet", "new.parquet", "vertices_left.parquet", "diff.json"])
def test_a_damaged_comparison(nights: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    bq.diff(*nights, tmp_path / "diff", progress=False)

    def look() -> None:
        found = bq.Difference(tmp_path / "diff")
        found.gone.top(2), found.new.top(2), found.most_changed()

    look()
    _changed(name)(tmp_path / "diff")
    with pytest.raises(IncompleteError, match=f"{name} cannot be read .it is damaged.; compare the two runs again"):
        look()
    (tmp_path / "diff" / name).unlink()
    with pytest.raises((IncompleteError, InputError), match=r"it is missing|holds no comparison of two runs"):
        look()


@pytest.mark.parametrize("name", ["gone.parquet", "new.parquet", "vertices_right.parquet", "diff.json"])
@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_nothing(nights, tmp_path, monkeypatch, name, there):
    from bicliques.pipeline.run import files

    create = files.create

    def full(path: Path) -> Any:
        file = create(path)
        if path.name == f".{name}.tmp":
            file.close()
            return open("/dev/full", "wb", buffering=0)  # noqa: PTH123
        return file

    monkeypatch.setattr(files, "create", full)
    place = tmp_path / "diff"
    if there:
        place.mkdir()
    refused(*nights, place, ResourceError, "No space left on device", "make room")
    assert not there or list(place.iterdir()) == []
    monkeypatch.undo()
    assert rows_of(bq.diff(*nights, place, progress=False).gone) == maximal_bicliques(EDGES) - maximal_bicliques(LESS)


@pytest.mark.parametrize("lost", ["row", "vertex"])
def test_what_disagrees_is_an_error(nights, tmp_path, monkeypatch, lost):
    """As when a file changes between the two passes."""
    if lost == "row":
        write = rows._groups
        monkeypatch.setattr(rows, "_groups", lambda *given: (group.rows(0, len(group) - 1) for group in write(*given)))
        refused(*nights, tmp_path / "diff", IncompleteError, "has changed meanwhile; compare again")
        return
    table = diffing.vertex_table
    monkeypatch.setattr(
        diffing, "vertex_table", lambda side, numbers, were, *rest: table(side, numbers, were + 1, *rest)
    )
    refused(*nights, tmp_path / "diff", IncompleteError, "is not in as many bicliques as the rows say (before ")


def test_a_comparison_in_the_folder_of_a_run_is_left_to_its_owner(both: tuple[Path, Path]) -> None:
    """Nothing of it is taken for a file of the run."""
    bq.diff(*both, both[1] / "diff", progress=False)
    assert stranger_in(both[1]) == both[1] / "diff"
