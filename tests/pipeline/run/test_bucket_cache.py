"""Places of the cache: who has which, and which go."""

import os
import time
from pathlib import Path

import pytest

from bicliques.pipeline.run import bucket_cache, store
from bicliques.pipeline.run.bucket import Bucket
from bicliques.pipeline.run.bucket_cache import others, own_place, shared_place
from bicliques.pipeline.run.opened import driven, here
from bicliques.pipeline.run.store import is_known, store_at
from bicliques.schemas.errors import InputError, ResourceError

URL = "s3://lake/night"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, of which this process has no place yet. Other tests may have left places taken."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    another_process(monkeypatch)


def stores(tmp_path: Path) -> Path:
    return tmp_path / "bicliques" / "stores"


def another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on places are taken as by another process. What was taken stays locked."""
    monkeypatch.setattr(bucket_cache, "_held", {})


def process_ends() -> None:
    for _, descriptor in bucket_cache._held.values():
        os.close(descriptor)
    bucket_cache._held.clear()


def look_again(tmp_path: Path) -> None:
    (stores(tmp_path) / "looked-at").unlink()


def test_each_process_has_a_place_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    first = own_place(URL, "reader")
    assert own_place(URL, "reader") == first
    driver, another = own_place(URL, "driver"), own_place("s3://lake/other", "reader")
    assert {place.name for place in (first, driver, another)} == {"reader-1", "driver-1"}
    assert another.parent != first.parent == driver.parent
    another_process(monkeypatch)
    second = own_place(URL, "reader")
    assert second.name == "reader-2"
    assert list(others(second)) == [driver / "run", first / "run"]
    assert list(others(second, "driver")) == [driver / "run"]
    process_ends()
    another_process(monkeypatch)
    assert own_place(URL, "reader") == second, "it takes what was left"


def test_a_fork_has_a_place_of_its_own() -> None:
    first = own_place(URL, "reader")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, own_place(URL, "reader").name.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert (first.name, os.read(reading, 99)) == ("reader-1", b"reader-2")
    os.close(reading)
    os.close(writing)


def test_workers_share_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    place = shared_place(URL, "a")
    another_process(monkeypatch)
    assert shared_place(URL, "a") == place
    assert shared_place(URL, "../b").parent == place.parent


def test_a_cache_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner could put a run there that this process would go on with, and keep in the store."""
    stores(tmp_path).mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: stores(tmp_path).stat().st_uid + 1)
    with pytest.raises(ResourceError, match=r"stores belongs to another user, .* XDG_CACHE_HOME"):
        own_place(URL, "driver")
    assert not list(stores(tmp_path).iterdir())


def test_a_link_of_another_user_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could lead to a folder of this user that somebody else has sent."""
    (tmp_path / "gift").mkdir()
    (tmp_path / "bicliques").mkdir()
    stores(tmp_path).symlink_to(tmp_path / "gift")
    assert own_place(URL, "driver").exists(), "a link of one's own may lead to another disk"
    process_ends()
    own = os.geteuid()
    found = Path.lstat
    monkeypatch.setattr(Path, "lstat", lambda path: _of(found(path), own + 1) if path.name == "stores" else found(path))
    with pytest.raises(ResourceError, match="belongs to another user"):
        own_place(URL, "driver")


def _of(found: os.stat_result, user: int) -> os.stat_result:
    return os.stat_result((*found[:4], user, *found[5:]))


def test_nobody_else_may_look_into_the_cache_or_write_there(tmp_path: Path) -> None:
    stores(tmp_path).mkdir(parents=True)
    stores(tmp_path).chmod(0o777)
    own_place(URL, "driver")
    assert stores(tmp_path).stat().st_mode & 0o777 == 0o700


def test_a_working_folder_is_known_by_the_url_that_was_given_alone(tmp_path, monkeypatch):
    is_known(Bucket(URL, own_place(URL, "driver")))
    folder = own_place(URL, "driver") / "run"
    (tmp_path / "link").symlink_to(folder)
    assert [store_at(path).url for path in (folder, tmp_path / "link", folder.parent)] == [URL, URL, None]
    assert here(folder) == folder
    monkeypatch.setattr(store, "_buckets", {})
    for path in (folder, tmp_path / "link"):
        for opened in (here, driven):
            with pytest.raises(InputError, match="is a copy of a run that is kept in a store; name the address"):
                opened(path)


def test_a_place_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    place = own_place(URL, "driver")
    stores(tmp_path).rename(tmp_path / "away")
    assert own_place(URL, "driver") == place
    assert (place / "in-use").exists()


def test_old_places_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, used = own_place(URL, "driver"), own_place("s3://lake/used", "driver")
    process_ends()
    held = [own_place(URL, "reader"), shared_place(URL, "a")]
    another_process(monkeypatch)
    left = gone.parent / ".driver-9.12345678.gone"
    left.mkdir()
    for place in (gone, *held):
        os.utime(place / "in-use", (0, 0))
    stay = own_place("s3://lake/other", "reader")
    assert gone.exists(), "it was looked a moment ago"
    look_again(tmp_path)
    another_process(monkeypatch)
    own_place("s3://lake/other", "reader")
    assert (gone.exists(), left.exists()) == (False, False)
    assert all(place.exists() for place in (*held, used, stay))


def test_a_place_that_is_used_again_is_not_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used = own_place(URL, "driver")
    process_ends()
    os.utime(used / "in-use", (0, 0))
    assert own_place(URL, "driver") == used
    process_ends()
    look_again(tmp_path)
    own_place("s3://lake/other", "reader")
    assert used.exists()


def test_the_oldest_go_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places, now = [own_place(f"s3://lake/{k}", "reader") for k in range(4)], time.time()
    for k, place in enumerate(places):
        (place / "graph").write_bytes(bytes(1000))
        os.utime(place / "in-use", (now - 100 * k, now - 100 * k))
    (places[0] / "graph").write_bytes(bytes(10_000))
    os.link(places[0] / "graph", places[1] / "graph 2")
    process_ends()
    monkeypatch.setattr(bucket_cache, "_MOST_BYTES", 20_000)
    look_again(tmp_path)
    own_place("s3://lake/0", "driver")
    assert all(place.exists() for place in places), "a file with two names does not take the room twice"
    process_ends()
    held = bucket_cache._locked(places[3], 2)
    assert held is not None
    os.utime(held, (0, 0))
    (places[1] / "graph").write_bytes(bytes(20_000))
    look_again(tmp_path)
    own_place("s3://lake/0", "driver")
    os.close(held)
    assert [place.exists() for place in places] == [True, False, False, True]
    assert not places[1].parent.exists()


def test_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ResourceError, match="cannot write"):
        own_place(URL, "reader")
