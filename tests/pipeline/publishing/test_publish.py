"""A run is published whole: to a folder, to a file system of fsspec, and to a bucket. Again, it costs nothing."""

import json
import shutil
import threading
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.publishing import publish_run
from bicliques.pipeline.publishing.place import Place, Seen, open_place
from bicliques.pipeline.publishing.record import Record, sealed
from bicliques.pipeline.run.progress import Progress
from bicliques.schemas.errors import IncompleteError, InputError, ResourceError
from bicliques.schemas.records import with_checksum
from tests.pipeline.publishing.conftest import Somewhere
from tests.support.published import EDGES, check_complete, contents
from tests.support.runs import manifest_pair, rewrite_record, write_edges

OTHERS = {"README.txt": b"mine", "labels/notes.txt": b"mine, too", "bicliques/_old/x.parquet": b"hidden"}


def publish(run: Path, place: Somewhere, **how: Any) -> bq.Published:
    return bq.publish(run, place.url, progress=False, **how)


def test_all_of_a_run_is_there_and_again_nothing_is_written(run: Path, place: Somewhere) -> None:
    for name, data in OTHERS.items():
        place.put(name, data)
    found = publish(run, place)
    check_complete(place.files(), run, OTHERS)
    expected = contents(run)
    assert (found.files, found.written, found.removed) == (len(expected), len(expected), 0)
    assert found.bytes == found.written_bytes == sum(map(len, expected.values()))
    assert (found.count, found.fingerprint) == manifest_pair(run)
    before = place.files()
    again = publish(run, place)
    assert (again.written, again.written_bytes, again.removed, again.files) == (0, 0, 0, len(expected))
    assert place.files() == before, "the record is the same, too"


@pytest.mark.values
@pytest.mark.parametrize("how", ["cut", "longer", "other bytes", "gone"])
def test_a_file_that_is_not_as_it_was_published_is_written_again(run: Path, place: Somewhere, how: str) -> None:
    publish(run, place)
    for name in ("bicliques", "labels", "manifest"):
        name = next(each for each in contents(run) if each.startswith(name))
        data = contents(run)[name]
        changed = {"cut": data[:-1], "longer": data + b"x", "other bytes": data[:-1] + bytes([data[-1] ^ 1])}
        if how == "gone":
            place.remove(name)
        else:
            place.put(name, changed[how])
        if how == "other bytes":
            made_older(place, name)
        assert publish(run, place).written == 1
        check_complete(place.files(), run)


def made_older(place: Somewhere, name: str) -> None:
    """Let the record say that the file was written at another time. A store tells of seconds, and a test has none."""
    record = json.loads(place.files()["_published.json"])
    if record["files"][name]["modified"] is not None:
        record["files"][name]["modified"] -= 10**9
        place.put("_published.json", json.dumps(with_checksum(record)).encode())


def test_a_file_that_was_written_again_with_the_same_content_stays(run: Path, place: Somewhere) -> None:
    publish(run, place)
    name = next(iter(contents(run)))
    place.put(name, contents(run)[name])
    made_older(place, name)
    assert publish(run, place).written == 0
    check_complete(place.files(), run)


def test_a_digest_that_is_in_the_record_must_be_that_of_the_run(run: Path, local: Somewhere) -> None:
    """The record alone does not say that the run is as it was, even if all sizes are."""
    publish(run, local)
    record = json.loads(local.files()["_published.json"])
    name = next(iter(contents(run)))
    record["files"][name]["blake3"] = "0" * 64
    local.put("_published.json", json.dumps(with_checksum(record)).encode())
    assert publish(run, local).written <= 1
    check_complete(local.files(), run)


def test_a_page_that_was_made_again_is_all_that_is_written(run: Path, local: Somewhere, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    publish(copy, local)
    (copy / "report.html").write_text("another page")
    found = publish(copy, local)
    assert (found.written, found.written_bytes) == (1, len("another page"))
    check_complete(local.files(), copy)
    (copy / "report.html").unlink()
    assert (publish(copy, local).written, "report.html" in local.files()) == (0, False)
    check_complete(local.files(), copy)


def test_another_run_is_refused_and_replaced_if_that_is_asked_for(run, other, place, capsys):
    for name, data in OTHERS.items():
        place.put(name, data)
    publish(run, place)
    before = place.files()
    assert main.main(["publish", str(other), place.url, "--quiet"]) == 2
    error = capsys.readouterr().err
    assert f"holds another run, of {bq.open_run(run).manifest.created}, with " in error
    assert "bicliques (other ones); name another folder, or replace it with --overwrite" in error
    assert place.files() == before
    found = publish(other, place, overwrite=True)
    check_complete(place.files(), other, OTHERS)
    assert found.removed == len(contents(run).keys() - contents(other).keys()) >= 4
    same = {name for name, data in contents(other).items() if contents(run).get(name) == data}
    assert found.written == len(contents(other)) - len(same)
    check_complete(place.files(), other, OTHERS)


def test_a_run_without_rows_is_published(local: Somewhere, tmp_path: Path) -> None:
    source = write_edges(tmp_path / "g.parquet", EDGES)
    empty = bq.mine(source, tmp_path / "empty", min_left=24, min_right=16, progress=False, report=False)
    assert len(empty) == publish(empty.path, local).count == 0
    there = local.files()
    assert not [name for name in there if name.startswith("bicliques/")]
    assert {"_SUCCESS", "manifest.json"} <= there.keys()


def test_numbers_of_vertices_and_changes_are_published(local: Somewhere, tmp_path: Path) -> None:
    source = write_edges(tmp_path / "g.parquet", EDGES)
    out = bq.mine(source, tmp_path / "out", per_vertex=True, progress=False, report=False).path
    (out / "changes").mkdir()
    for name in ("diff.json", "gone.parquet", ".new.parquet.tmp", "mine.txt"):
        (out / "changes" / name).write_text("x")
    publish(out, local)
    there = local.files().keys()
    assert {"vertices/left.parquet", "vertices/right.parquet", "changes/diff.json", "changes/gone.parquet"} <= there
    assert not {"changes/.new.parquet.tmp", "changes/mine.txt", "options.json", "run.lock"} & there


def test_progress_grows_to_the_whole(run: Path, local: Somewhere) -> None:
    told: list[Progress] = []
    bq.publish(run, local.url, progress=told.append)
    shares = [progress.share for progress in told]
    assert shares == sorted(shares)
    assert (shares[-1], {progress.step for progress in told}) == (1.0, {"publish"})
    assert told[-1].bytes == sum(map(len, contents(run).values()))


def test_a_call_that_is_stopped_goes_on_later(run: Path, place: Somewhere) -> None:
    def stop(progress: Progress) -> None:
        if progress.share > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bq.publish(run, place.url, progress=stop)
    there = place.files()
    assert "_SUCCESS" not in there
    assert "manifest.json" not in there
    assert {name: data for name, data in there.items() if name != "_published.json"}.items() <= contents(run).items()
    assert publish(run, place).written < len(contents(run))
    check_complete(place.files(), run)


def test_nothing_goes_on_behind_an_error(run: Path, local: Somewhere, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of many pieces are given up in the middle, and their beginnings are no files."""

    def stop(progress: Progress) -> None:
        if progress.share > 0:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(publish_run, "PIECE", 100)
        with pytest.raises(KeyboardInterrupt):
            bq.publish(run, local.url, progress=stop)
    there = local.files()
    assert {name: data for name, data in there.items() if name != "_published.json"}.items() <= contents(run).items()
    assert len(there) < len(contents(run))
    publish(run, local)
    check_complete(local.files(), run)


def test_an_error_ends_what_is_being_written(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that has begun waits until it is told to end, and is. Nothing else keeps it from going on."""
    begun, stop, whole = threading.Event(), threading.Event(), list[str]()

    class Patient(Place):
        def write(self, name: str, pieces: Iterable[bytes]) -> Seen:
            first = iter(pieces)
            taken = [next(first)]
            begun.set()
            stop.wait(20)
            found = super().write(name, chain(taken, first))
            whole.append(name)
            return found

    def end(progress: Progress) -> None:
        if begun.is_set():
            raise KeyboardInterrupt

    monkeypatch.setattr(publish_run, "PIECE", 100)
    monkeypatch.setattr(publish_run, "Event", lambda: stop)
    copies = publish_run.Copying(sealed(run), Patient(tmp_path), end, lambda name: None)
    with pytest.raises(KeyboardInterrupt):
        list(copies.copies([name for name in contents(run) if name.startswith("bicliques/")]))
    assert whole == []


def test_what_another_command_does_not_know_of_is_taken_back(run: Path, other: Path, place: Somewhere) -> None:
    """It removes what the record names that it finds, so nobody would remove the rest."""
    known, unknown = sorted(contents(run))[:2]
    mine, theirs = (Record(sealed(each), open_place(place.url)) for each in (run, other))
    mine.write({}, contents(run))
    theirs.write({}, [known])
    for name in (known, unknown):
        place.put(name, b"mine")
        with pytest.raises(ResourceError, match=r"_published\.json was changed while the run was published"):
            mine.confirm(name)
    assert place.files().keys() == {known, "_published.json"}


def test_a_part_of_a_publication_is_replaced_by_another_run(run: Path, other: Path, local: Somewhere) -> None:
    def stop(progress: Progress) -> None:
        if progress.share > 0.6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bq.publish(run, local.url, progress=stop)
    publish(other, local, overwrite=True)
    check_complete(local.files(), other)


def test_a_mark_that_is_gone_is_made_again(run: Path, place: Somewhere) -> None:
    publish(run, place)
    place.remove("_SUCCESS")
    assert publish(run, place).written == 0
    check_complete(place.files(), run)


def test_a_file_of_the_run_that_goes_meanwhile_ends_it(run: Path, place: Somewhere, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    page = copy / "report.html"
    whole = page.read_bytes()

    def spoil(progress: Progress) -> None:
        page.unlink(missing_ok=True)

    with pytest.raises(IncompleteError, match=r"report\.html cannot be read \(No such file"):
        bq.publish(copy, place.url, progress=spoil)
    assert not {"_SUCCESS", "report.html", "manifest.json"} & place.files().keys()
    page.write_bytes(whole)
    publish(copy, place)
    check_complete(place.files(), copy)


def test_somebody_who_writes_there_too_is_noticed(run: Path, place: Somewhere) -> None:
    """Another command, or a file that another program puts among the rows before the end."""

    def disturb(progress: Progress) -> None:
        place.put("bicliques/mine.parquet", b"not a row")

    with pytest.raises(InputError, match=r"bicliques/mine\.parquet is of somebody else"):
        bq.publish(run, place.url, progress=disturb)
    assert "_SUCCESS" not in place.files()
    place.remove("bicliques/mine.parquet")
    first = next(iter(contents(run)))

    def change(progress: Progress) -> None:
        if progress.share > 0.8:
            place.put(first, b"short")

    with pytest.raises(ResourceError, match="was changed while the run was published"):
        bq.publish(run, place.url, progress=change)
    assert "_SUCCESS" not in place.files()
    publish(run, place)
    check_complete(place.files(), run)


def test_two_publications_at_a_time_do_not_both_succeed(run: Path, other: Path, place: Somewhere) -> None:
    inner: list[Exception | None] = []

    def meanwhile(progress: Progress) -> None:
        if progress.share > 0.4 and not inner:
            inner.append(None)
            bq.publish(other, place.url, overwrite=True, progress=False)

    with pytest.raises((ResourceError, InputError)):
        bq.publish(run, place.url, progress=meanwhile)
    publish(run, place, overwrite=True)
    check_complete(place.files(), run)


def test_another_word_that_all_is_there_is_noticed(run: Path, place: Somewhere) -> None:
    def say(progress: Progress) -> None:
        if progress.share == 1.0:
            place.put("_SUCCESS", b"")

    with pytest.raises(ResourceError, match="_SUCCESS was changed while the run was published"):
        bq.publish(run, place.url, progress=say)


def test_another_command_that_begins_at_the_very_end_is_noticed(run: Path, other: Path, place: Somewhere) -> None:
    """It has written its record and nothing else yet, so no file shows that it is there."""
    begun: list[None] = []

    def begin(progress: Progress) -> None:
        if progress.share == 1.0 and not begun:
            begun.append(None)
            Record(sealed(other), open_place(place.url)).write({}, contents(run))

    with pytest.raises(ResourceError, match=r"_published\.json was changed while the run was published"):
        bq.publish(run, place.url, progress=begin)
    assert "_SUCCESS" not in place.files()
    publish(other, place, overwrite=True)
    check_complete(place.files(), other)


def test_the_command(run: Path, place: Somewhere, capsys: pytest.CaptureFixture[str]) -> None:
    count, fingerprint = manifest_pair(run)
    shown = place.url.partition("?")[0]
    assert main.main(["publish", str(run), place.url, "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert f"{count:,} bicliques at {shown}" in said.out
    assert f"fingerprint: {fingerprint}" in said.out
    assert main.main(["publish", str(run), place.url, "--quiet", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    n = len(contents(run))
    assert (found["count"], found["fingerprint"], found["files"], found["written"]) == (count, str(fingerprint), n, 0)
    assert found["url"] == shown
    assert main.main(["publish", str(run), place.url, "--quiet"]) == 0
    assert f"written: nothing; there already: {n} of {n} files" in capsys.readouterr().out


def test_a_record_of_an_earlier_time_may_have_more_fields(run: Path, local: Somewhere) -> None:
    publish(run, local)
    rewrite_record(Path(local.url) / "_published.json", later="field")
    assert publish(run, local).written == 0
