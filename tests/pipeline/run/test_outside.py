"""Nothing is written into the folders that a run fills: its readers would take it for theirs."""

from collections.abc import Callable
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.results.interesting import refuse_target
from bicliques.schemas.errors import InputError
from tests.support.published import files_below
from tests.support.runs import random_edges, write_edges
from tests.support.stored import Machines

ABOVE = ["nights/options.json", "nights/_published.json"]
SMALL = random_edges(6, 5, 0.5, 1)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, a copy of it that was published, and what it was mined from."""
    top = tmp_path_factory.mktemp("outside")
    source = write_edges(top / "g.parquet", SMALL)
    bq.mine(source, top / "OUT", workers=0, progress=False)
    bq.publish(top / "OUT", top / "published", progress=False)
    return top


#: Every call that writes something new, into a folder or a file.
WRITERS: dict[str, Callable[[Path, Path], object]] = {
    "mine": lambda top, to: bq.mine(top / "g.parquet", to, workers=0, progress=False, report=False),
    "largest": lambda top, to: bq.largest(top / "g.parquet", to, workers=0, progress=False, report=False),
    "count": lambda top, to: bq.count(top / "g.parquet", per_vertex=to, workers=0, progress=False),
    "diff": lambda top, to: bq.diff(top / "OUT", top / "OUT", to, progress=False),
    "generate": lambda top, to: bq.generate(to, n_left=5, n_right=5, edges=9, progress=False),
    "publish": lambda top, to: bq.publish(top / "OUT", to, progress=False),
    "export": lambda top, to: bq.open_run(top / "OUT").export("csv", to),
    "plot": lambda top, to: (results := bq.open_run(top / "OUT")).plot(results.top(1)["id"][0].as_py()).save(to),
    "cover": lambda top, to: refuse_target(to),
}


@pytest.mark.parametrize("folder", ["OUT", "published"])
@pytest.mark.parametrize("writer", WRITERS)
def test_nothing_is_written_into_a_folder_of_a_run(runs: Path, writer: str, folder: str) -> None:
    link = runs / folder / "link"
    if not link.is_symlink():
        link.symlink_to(runs / folder / "bicliques")
    before = files_below(runs)
    said = "is or lies in the folder .* of a run, whose readers would read it, too; name a place elsewhere$"
    if writer == "publish" and folder == "OUT":
        said = "is the folder of the run, or lies in it"
    for place in ("bicliques/new.svg", "edges/a/b.svg", "pending/part.svg", "link/new.svg"):
        with pytest.raises(InputError, match=said) as caught:
            WRITERS[writer](runs, runs / folder / place)
        assert "\n" not in str(caught.value)
    assert files_below(runs) == before


def test_a_file_of_a_run_is_not_replaced(runs: Path) -> None:
    results = bq.open_run(runs / "OUT")
    for name in ("manifest.json", "options.json", "report.html"):
        with pytest.raises(InputError, match=f"{name} is a file of the run in .*OUT; name another one$"):
            results.export("csv", runs / "OUT" / name)
    assert bq.verify(runs / "OUT", progress=False).count == len(results)


def test_beside_these_folders_anything_may_lie(runs: Path, tmp_path: Path) -> None:
    """Also in a folder that is only called as one of a run."""
    results = bq.open_run(runs / "OUT")
    results.export("csv", runs / "OUT" / "mine.csv")
    results.export("csv", runs / "manifest.json")
    for number, place in enumerate((runs / "OUT" / "nights", tmp_path / "bicliques")):
        for name in ("mine", "diff", "generate", "publish"):
            if name != "publish" or number:
                WRITERS[name](runs, place / name)
    assert len(bq.open_run(tmp_path / "bicliques" / "mine")) == len(results)


def test_nor_into_one_in_a_store(machines: Machines, runs: Path) -> None:
    """The store is asked only if the address has the name of a folder of a run."""
    night, bucket = machines.url, machines.bucket
    bq.publish(runs / "OUT", night, progress=False)
    before = bucket.objects()
    for folder in ("bicliques", "edges/new"):
        inside = bucket.url(f"nights/ü 1/{folder}")
        for write in (WRITERS["mine"], WRITERS["publish"]):
            with pytest.raises(InputError, match=f"/{folder} is or lies in the folder .* of a run, whose readers"):
                write(runs, inside)  # type: ignore[arg-type]
    assert bucket.objects() == before
    bucket.asked.clear()
    WRITERS["mine"](runs, bucket.url("nights/bicliques/new"))  # type: ignore[arg-type]
    above = [asked.key for asked in bucket.asked if asked.key in ABOVE]
    assert above == ABOVE
    bucket.asked.clear()
    WRITERS["mine"](runs, bucket.url("nights/2/new"))  # type: ignore[arg-type]
    assert not {"nights/options.json", "nights/2/options.json"} & {asked.key for asked in bucket.asked}


def test_no_run_is_kept_above_its_own_input(machines: Machines, runs: Path) -> None:
    """On a disk the folder is not empty. In a store a run would lie among what it was mined from."""
    bucket = machines.bucket
    bucket.put("in/graphs/g.parquet", (runs / "g.parquet").read_bytes())
    source = bucket.url("in/graphs/g.parquet")
    before = bucket.objects()
    for above in ("in", "in/graphs/"):
        with pytest.raises(InputError, match=r"/in.* holds the input .*g\.parquet, and a run has its folder alone"):
            bq.mine([source], bucket.url(above), workers=0, progress=False)
    assert bucket.objects() == before
    for beside in ("in/graph", "in/graphs/g"):
        assert bq.mine(source, bucket.url(beside), workers=0, progress=False).complete


@pytest.mark.exhaustive
def test_a_store_that_does_not_tell_what_lies_above_has_the_last_word(machines: Machines, runs: Path) -> None:
    """Credentials may be good for one place alone."""
    bucket = machines.bucket
    bucket.fault = lambda asked: "error" if asked.key in ABOVE else None
    for name in ("mine", "publish"):
        WRITERS[name](runs, bucket.url(f"nights/bicliques/{name}"))  # type: ignore[arg-type]
    bucket.well()
    keys = bucket.objects()
    assert {"nights/bicliques/mine/_SUCCESS", "nights/bicliques/publish/_SUCCESS"} <= keys.keys()
