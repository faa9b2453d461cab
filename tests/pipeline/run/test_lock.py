"""The lock of a run. The locked file is the one in the folder, its text is whole, and its release hides no error."""

import errno
import fcntl
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from bicliques.pipeline.run.lock import holder, locked
from bicliques.schemas.errors import InputError, ResourceError


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


def test_a_lock_that_cannot_be_removed_hides_no_error(tmp_path, monkeypatch, caplog):
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
def test_a_lock_is_given_up_when_its_text_cannot_be_written(tmp_path, monkeypatch, call):
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


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """What a driver in another container leaves that was killed: its text, and no lock."""
    file = tmp_path / "run.lock"
    with locked(file):
        said = json.loads(file.read_text())
    file.write_text(json.dumps(said | {"pid": 1, "host": "540478cdc183"}))
    return file


def test_a_container_that_was_killed_holds_no_lock_on_its_machine(killed: Path) -> None:
    found = holder(killed)
    assert found is not None
    assert not found.alive
    assert "process 1 on 540478cdc183" in found.words
    with locked(killed):
        assert json.loads(killed.read_text())["host"] == socket.gethostname()


def test_a_container_that_is_alive_holds_its_lock(killed: Path) -> None:
    descriptor = os.open(killed, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        found = holder(killed)
        assert found is not None
        assert found.alive
        with pytest.raises(InputError, match="is being worked on by process 1 on 540478cdc183"), locked(killed):
            raise AssertionError("two hold it")
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("part", ["kernel", "device", "both"])
def test_locks_of_another_kernel_or_mount_are_respected(killed: Path, part: str) -> None:
    said = json.loads(killed.read_text())
    kernel, device = said["table"].split()
    table = {"kernel": f"another {device}", "device": f"{kernel} {int(device) + 1}", "both": ""}[part]
    killed.write_text(json.dumps(said | {"table": table}))
    found = holder(killed)
    assert found is not None
    assert found.alive
    with pytest.raises(InputError, match="if that process is dead, delete"), locked(killed):
        raise AssertionError("it may be held elsewhere")


def test_where_kernels_have_no_names_another_host_is_respected(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bicliques.pipeline.process.cores._BOOT_FILE", killed.with_name("missing"))
    for table in ({}, {"table": ""}):
        killed.write_text(json.dumps({"pid": 1, "host": "540478cdc183", "since": "then"} | table))
        found = holder(killed)
        assert found is not None
        assert found.alive
