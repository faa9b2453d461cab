"""A thread writes ledger entries to the disk. If an entry fails, its error is raised, and closing waits for all."""

import threading
from typing import Any

import pytest

from bicliques.pipeline.mining.driver import Commits
from bicliques.schemas.errors import ResourceError


class Disk:
    """Stands for a ledger, whose `commit` waits until the disk is `ready`."""

    def __init__(self, error: Exception | None = None):
        self.ready, self.error, self.written = threading.Event(), error, list[Any]()

    def commit(self, entry: Any, left_over: bytes) -> None:
        self.ready.wait()
        if self.error is not None:
            raise self.error
        self.written.append(entry)


def begun(disk: Disk) -> Commits:
    commits = Commits(disk)  # type: ignore[arg-type]
    commits.begin("an entry", b"", "its context")  # type: ignore[arg-type]
    return commits


def test_a_context_is_returned_after_its_entry_is_written() -> None:
    disk = Disk()
    commits = begun(disk)
    assert commits.ended() == []
    assert len(commits) == 1
    disk.ready.set()
    commits.close()
    assert disk.written == ["an entry"]
    assert commits.ended() == ["its context"]
    assert len(commits) == 0


def test_entries_that_are_written_at_the_same_time_are_returned_together() -> None:
    disk = Disk()
    commits = begun(disk)
    commits.begin("another", b"", "its own context")  # type: ignore[arg-type]
    disk.ready.set()
    commits.close()
    assert sorted(commits.ended()) == ["its context", "its own context"]
    assert commits.ended() == []


def test_the_error_of_an_entry_that_cannot_be_written_is_raised() -> None:
    disk = Disk(ResourceError("the disk is full"))
    commits = begun(disk)
    disk.ready.set()
    commits.close()
    with pytest.raises(ResourceError, match="the disk is full"):
        commits.ended()


def test_closing_waits_for_the_entry_that_is_being_written() -> None:
    disk = Disk()
    commits = begun(disk)
    threading.Timer(0.05, disk.ready.set).start()
    commits.close()
    assert disk.written == ["an entry"]
