"""What is not published, and where nothing is published: one sentence, and nothing is changed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.publishing.record import is_published
from bicliques.schemas.errors import BicliqueError, IncompleteError, InputError
from bicliques.schemas.records import with_checksum
from tests.pipeline.publishing.conftest import Somewhere
from tests.support.published import EDGES, check_complete, files_below
from tests.support.runs import write_edges


def refused(run: Path, url: str | Path, said: str, kind: type[BicliqueError] = InputError, **how: bool) -> None:
    with pytest.raises(kind, match=said) as caught:
        bq.publish(run, url, progress=False, **how)
    assert "\n" not in str(caught.value).replace(str(url), "")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("pattern", "harm"),
    [
        ("bicliques/*", cut),
        ("bicliques/*", Path.unlink),
        ("ledger/0.json", Path.unlink),
        ("ledger/0.json", flip),
        ("labels/left.parquet", flip),
        ("edges/edges.parquet", flip),
        ("summary/sizes.parquet", cut),
        ("manifest.json", flip),
        ("manifest.json", Path.unlink),
    ],
)
def test_a_run_that_is_damaged(run: Path, tmp_path: Path, pattern: str, harm: Callable[[Path], None]) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    harm(next(copy.glob(pattern)))
    refused(copy, tmp_path / "x", "bicliques.resume", IncompleteError)
    assert not (tmp_path / "x").exists()
    bq.resume(copy, workers=0, progress=False, report=False)
    bq.publish(copy, tmp_path / "x", progress=False)
    check_complete(files_below(tmp_path / "x"), copy)


@pytest.mark.parametrize("harm", [cut, Path.unlink])
def test_a_run_whose_tables_of_vertices_are_damaged(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    source = write_edges(tmp_path / "g.parquet", EDGES)
    out = bq.mine(source, tmp_path / "out", per_vertex=True, workers=0, progress=False, report=False).path
    harm(out / "vertices" / "left.parquet")
    refused(out, tmp_path / "x", "bicliques.resume", IncompleteError)
    assert not (tmp_path / "x").exists()


def test_a_run_with_a_link_in_it(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "summary").rename(tmp_path / "summary")
    (copy / "summary").symlink_to(tmp_path / "summary")
    refused(copy, tmp_path / "x", "summary is a link, and nothing is written or deleted through one")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://host/x?sig=c0ffee", r"^http://host/x\?\*\*\* is an address of the web, where nothing can be written"),
        ("file://host/x", "names a file of another machine; write three slashes"),
        ("nosuch://host/x", r"^nosuch://host/x cannot be opened \(Protocol not known: nosuch"),
        ("sftp://host/x", r"^sftp://host/x cannot be opened without another package \(.*paramiko"),
        ("s3://", r"^s3:// names no bucket and no folder; write it as in s3://lake/night$"),
    ],
)
def test_a_place_that_cannot_be_written(run: Path, url: str, said: str) -> None:
    refused(run, url, said)


def test_a_place_in_the_run_or_in_another(run: Path, other: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    before = files_below(copy)
    (tmp_path / "link").symlink_to(copy)
    for place in (copy, copy / "published", f"file://{copy}/bicliques", tmp_path / "link" / "x"):
        refused(copy, place, "is the folder of the run, or lies in it; name a folder elsewhere", overwrite=True)
    refused(other, copy, "is the folder of a run, which is not published into; name another one", overwrite=True)
    published = tmp_path / "published"
    bq.publish(run, published, progress=False)
    copied = files_below(published)
    for folder in (copy, published):
        for place in (folder / "bicliques", f"file://{folder}/edges/new/night"):
            refused(
                other, place, "is or lies in the folder [a-z]+ of a run, whose readers would read it", overwrite=True
            )
    assert files_below(copy) == before
    assert files_below(published) == copied


@pytest.mark.parametrize("name", ["manifest.json", "_SUCCESS", "report.html", "labels/left.parquet"])
def test_files_of_others_with_our_names(run: Path, place: Somewhere, name: str) -> None:
    """Nothing says that a publication has put them there, so it replaces none of them, whatever it is asked for."""
    place.put(name, b"mine")
    for overwrite in (False, True):
        refused(run, place.url, f"holds {name}, which was not published there; name another", overwrite=overwrite)
    assert place.files() == {name: b"mine"}


@pytest.mark.parametrize("name", ["bicliques/mine.parquet", "bicliques/day=1/mine.parquet"])
def test_files_of_others_that_readers_would_read(run: Path, place: Somewhere, name: str) -> None:
    place.put(name, b"mine")
    refused(run, place.url, f"{name} is of somebody else, and would be read as rows of the run; move it away")
    assert place.files() == {name: b"mine"}
    place.remove(name)
    bq.publish(run, place.url, progress=False)
    place.put(name, b"mine")
    refused(run, place.url, f"{name} is of somebody else", overwrite=True)


def test_a_folder_that_is_none(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    refused(run, file, "is no folder; name another one")
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    place.mkdir()
    elsewhere.mkdir()
    (place / "labels").symlink_to(elsewhere)
    refused(run, place, "labels is a link or a file, and nothing is published through one; put a folder in its place")
    assert list(elsewhere.iterdir()) == []


def record_of(place: Somewhere) -> dict[str, object]:
    found: dict[str, object] = json.loads(place.files()["_published.json"])
    return found


@pytest.mark.parametrize(
    "name", ["../victim", "labels/../../victim", "bicliques/mine.txt", "/etc/victim", "options.json"]
)
def test_a_record_that_names_other_files_removes_none(run: Path, other: Path, local: Somewhere, name: str) -> None:
    bq.publish(run, local.url, progress=False)
    victim = Path(local.url).parent / "victim"
    victim.write_text("mine")
    local.put("bicliques/mine.txt", b"mine")
    record = record_of(local) | {"unchecked": [name]}
    local.put("_published.json", json.dumps(with_checksum(record)).encode())
    before = local.files()
    refused(other, local.url, "_published.json cannot be used .*which is no file of a run", overwrite=True)
    assert local.files() == before
    assert victim.exists()


@pytest.mark.values
@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b'{"layout": 2}', b'{"layout": 1, "run": 3}', b"\xff"])
def test_a_record_that_was_cut_off(run: Path, other: Path, place: Somewhere, damage: bytes) -> None:
    """Where all files are of the run at hand it is made again. Otherwise nobody knows what was published."""
    bq.publish(run, place.url, progress=False)
    whole = place.files()
    place.put("_published.json", damage)
    refused(run, place.url, r"_published\.json cannot be used .*, so nobody knows which files were published there")
    place.remove("_SUCCESS")
    refused(other, place.url, r"_published\.json cannot be used", overwrite=True)
    assert place.files() == {name: data for name, data in whole.items() if name != "_SUCCESS"} | {
        "_published.json": damage
    }
    assert bq.publish(run, place.url, progress=False).written == 0
    check_complete(place.files(), run)


def test_what_was_published_is_no_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "place"
    bq.publish(run, place, progress=False)
    for words in (["show"], ["status"], ["verify"], ["publish", str(tmp_path / "again")]):
        assert main.main([words[0], str(place), *words[1:]]) == 2
        assert capsys.readouterr().err == (
            f"bicliques: {place} is not the folder of a run: it has no options.json, because a run was published "
            f"there; read {place}/bicliques with other programs\n"
        )
    assert main.main(["show", "s3://someuser:geheim@lake/night"]) == 2
    assert capsys.readouterr().err == (
        "bicliques: s3://***@lake/night is written with a secret, and the address of a run is recorded; give it in the "
        "environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY\n"
    )


def test_names_that_may_be_published() -> None:
    for name in ("manifest.json", "report.html", "labels/left.parquet", "bicliques/part-000000-0123456789ab-0.parquet"):
        assert is_published(name)
    for name in ("options.json", "_SUCCESS", "graph/graph.json", "labels", "x/labels/left.parquet", "../manifest.json"):
        assert not is_published(name)
