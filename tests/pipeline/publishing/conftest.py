"""Two runs, and the places that they are published to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import fsspec
import pytest

from bicliques.pipeline.publishing import place
from tests.support.bucket import Bucket, impatient_file_system
from tests.support.published import files_below, run_in_parts


@dataclass(frozen=True)
class Somewhere:
    """A place: its URL, all files in it, and how another one is put there."""

    url: str
    files: Callable[[], dict[str, bytes]]
    put: Callable[[str, bytes], object]
    remove: Callable[[str], object]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_in_parts(tmp_path_factory.mktemp("publishing") / "run", report=True)


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of nearly the same graph."""
    return run_in_parts(tmp_path_factory.mktemp("publishing") / "other", less=5)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that tries twice."""
    monkeypatch.setattr(place, "file_system", impatient_file_system)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that tries twice, and waits for a second each time. Where a machine is busy, any request may fail."""
    monkeypatch.setattr(place, "file_system", partial(impatient_file_system, request_timeout=1.0))


@pytest.fixture
def local(tmp_path: Path) -> Somewhere:
    top = tmp_path / "some where" / "ü%20'\"\n"

    def put(name: str, data: bytes) -> None:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(data)

    return Somewhere(str(top), lambda: files_below(top), put, lambda name: (top / name).unlink())


@pytest.fixture
def memory() -> Iterator[Somewhere]:
    """A file system of fsspec, which does not tell when a file was written."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    top = "/lake/night"

    def files() -> dict[str, bytes]:
        return {name.removeprefix(f"{top}/"): system.cat(name) for name in system.find(top)}

    def put(name: str, data: bytes) -> None:
        system.pipe(f"{top}/{name}", data)

    yield Somewhere(f"memory:/{top}", files, put, lambda name: system.rm(f"{top}/{name}"))
    system.store.clear()


@pytest.fixture
def store(bucket: Bucket) -> Somewhere:
    prefix = "nights/2026 ü+'&=;"

    def put(name: str, data: bytes) -> None:
        bucket.put(f"{prefix}/{name}", data)

    return Somewhere(
        bucket.url(prefix), lambda: bucket.below(prefix), put, lambda name: bucket.delete(f"{prefix}/{name}")
    )


@pytest.fixture(name="place", params=["local", "memory", "store"])
def any_place(request: pytest.FixtureRequest) -> Somewhere:
    found: Somewhere = request.getfixturevalue(request.param)
    return found
