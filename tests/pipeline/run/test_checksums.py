"""Checksums of files whose pieces are read on threads."""

import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bicliques.pipeline.run import files
from bicliques.pipeline.run.files import checksum, checksums_of, joined


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_two_checksums_become_one(one: bytes, other: bytes) -> None:
    assert joined(zlib.crc32(one), zlib.crc32(other), len(other)) == zlib.crc32(one + other)


def test_a_long_text_behind_another_one() -> None:
    text = bytes(range(256)) * 5000
    assert joined(zlib.crc32(b"x"), zlib.crc32(text), len(text)) == zlib.crc32(b"x" + text)


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 1234])
def test_pieces_make_the_checksum_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(files, "_PIECE", 100)
    monkeypatch.setattr(files, "_BLOCK", 30)
    text = bytes(k * k % 251 for k in range(size))
    (tmp_path / "x").write_bytes(text)
    (tmp_path / "y").write_bytes(b"other")
    assert checksum(tmp_path / "x") == zlib.crc32(text)
    assert checksums_of([tmp_path / "y", tmp_path / "x"]) == {
        tmp_path / "y": zlib.crc32(b"other"),
        tmp_path / "x": zlib.crc32(text),
    }


def test_no_file_has_no_checksum() -> None:
    assert checksums_of([]) == {}


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        checksum(tmp_path / "x")
