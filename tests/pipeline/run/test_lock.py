"""The lock of a run. The locked file is the one in the folder, its text is whole, and its release hides no error."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from pipeline.run.lock import holder, locked
from schemas.errors import InputError, ResourceError


def test_a_lock_file_that_is_removed_meanwhile_is_locked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last holder removes its file between the opening and the locking, and another driver makes a new one."""
    file, flock, inodes = tmp_path / "run.lock", fcntl.flock, []

    def remove_first(descriptor: int, kind: int) -> None:
        flock(descriptor, kind)
        inodes.append(os.fstat(descriptor).st_ino)
        if len(inodes) == 1:
            file.rename(tmp_path / "removed")  # which keeps its inode from being used again
            file.touch()

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with locked(file):
        assert len(inodes) == 2
        assert file.stat().st_ino == inodes[1] != inodes[0]
        assert f'"pid": {os.getpid()}' in file.read_text()
        monkeypatch.setattr(fcntl, "flock", flock)
        with pytest.raises(InputError, match=f"is being worked on by process {os.getpid()} "), locked(file):
            raise AssertionError("two hold it")
    assert not file.exists()


def test_the_text_of_a_dead_process_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "run.lock"
    said = {"pid": 4_000_000_000, "host": socket.gethostname(), "since": "2026-01-01T00:00:00+00:00", "more": "x" * 999}
    file.write_text(json.dumps(said))
    with locked(file):
        assert json.loads(file.read_text())["pid"] == os.getpid()
        found = holder(file)
        assert found is not None
        assert found.alive
        assert f"process {os.getpid()} on {socket.gethostname()}" in found.words
    assert holder(file) is None


@pytest.mark.parametrize("text", ["", "{", "5", "[1]", '"x"', "null", "\xff\xfe", "[" * 4096])
def test_a_lock_file_with_damaged_text_holds_no_lock(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.lock"
    file.write_text(text, encoding="latin-1")
    assert holder(file) is None
    with locked(file):
        assert holder(file) is not None


def test_a_lock_that_cannot_be_removed_hides_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(ResourceError, match="the right sentence"), locked(tmp_path / "run.lock"):
        raise ResourceError("the right sentence")
    assert caplog.text == ""
    with locked(tmp_path / "run.lock"):
        pass
    assert "run.lock cannot be removed (Read-only file system); it locks nothing any more" in caplog.text


def test_a_lock_of_another_process_is_not_removed(tmp_path: Path) -> None:
    """The folder was deleted and made again while the first driver worked."""
    file = tmp_path / "run.lock"
    with locked(file):
        file.rename(tmp_path / "gone")
        file.write_text("theirs")
    assert file.read_text() == "theirs"


@pytest.mark.parametrize("call", ["ftruncate", "pwrite"])
def test_a_lock_is_given_up_when_its_text_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(ResourceError, match="No space left on device"), locked(tmp_path / "run.lock"):
            raise AssertionError("it is not signed")
    with locked(tmp_path / "run.lock"):
        pass


def test_a_lock_with_a_second_hard_link_is_not_written(tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("a user's own words")
    (tmp_path / "run.lock").hardlink_to(thesis)
    with pytest.raises(InputError, match="is a link or no file"), locked(tmp_path / "run.lock"):
        pass
    assert thesis.read_text() == "a user's own words"
