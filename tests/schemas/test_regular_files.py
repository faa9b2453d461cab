"""What is no regular file is neither waited for nor read, and errors of the system stay what they are."""

import errno
import os
import re
import socket
from pathlib import Path

import pytest

from bicliques.schemas.regular_files import open_regular, read_regular, regular


def test_a_file_and_a_link_to_it_are_read(tmp_path):
    (tmp_path / "file").write_bytes(b"text\n")
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        assert read_regular(tmp_path / name) == b"text\n"
        assert regular(tmp_path / name) == tmp_path / name
        with open_regular(tmp_path / name) as opened:
            assert not os.get_inheritable(opened.fileno())


def listen(path: Path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # the whole path may be too long for an address


@pytest.mark.parametrize("make", [os.mkfifo, listen, lambda path: path.symlink_to("/dev/null")])
@pytest.mark.parametrize("call", [open_regular, read_regular, regular])
def test_a_pipe_a_socket_and_a_device_are_refused(tmp_path, call, make):
    make(tmp_path / "odd")
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(OSError, match=re.escape(f"It is not a regular file: '{tmp_path / 'odd'}'")):
        call(tmp_path / "odd")
    assert set(Path("/proc/self/fd").iterdir()) <= before, "others may be closed meanwhile, of tests before this one"


@pytest.mark.parametrize("call", [open_regular, read_regular, regular])
def test_other_errors_stay_what_they_are(tmp_path, call):
    with pytest.raises(FileNotFoundError):
        call(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        call(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links") as ended:
        call(tmp_path / "loop")
    assert ended.value.errno == errno.ELOOP
