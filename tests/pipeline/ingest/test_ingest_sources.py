"""Sources that cannot be opened or read give one sentence, and nothing is written."""

import gzip
import io
import lzma
import os
import re
from pathlib import Path

import pyarrow as pa
import pytest

from bicliques.pipeline.cli import main
from bicliques.pipeline.ingest.readers import opening
from bicliques.pipeline.ingest.step import ingest
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from tests.support.inputs import untouched_run, write


@pytest.fixture
def folder(tmp_path):
    with untouched_run(tmp_path) as folder:
        yield folder


def test_a_column_number_of_thousands_of_digits_is_an_unknown_name(tmp_path, capsys):
    path = write(tmp_path / "x.csv", "a,b\n1,2\n")
    assert main.main(["mine", str(path), "-o", str(tmp_path / "o"), "--left", 5000 * "9", "--right", "1"]) == 2
    assert "no column '999" in capsys.readouterr().err


def test_a_missing_file(tmp_path, folder):
    with pytest.raises(InputError, match=r"nothing\.csv does not exist; check the name"):
        ingest(tmp_path / "nothing.csv", IngestOptions(), folder)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x.csv", "memory://none/x.parquet", "gs+x://b/x.csv"])
def test_a_url_that_cannot_be_read_is_named_as_it_was_given(url, folder, tmp_path, capsys, monkeypatch):
    said = f"^{re.escape(url)} (cannot be read|does not exist)"
    with pytest.raises(InputError, match=said):
        ingest(url, IngestOptions(), folder)
    assert main.main(["mine", url, "-o", str(tmp_path / "out"), "--quiet"]) == 2
    assert f"bicliques: {url} " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match=said):
        ingest(Path(url), IngestOptions(), folder)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a:").mkdir()
    assert ingest(write(Path("a:/x.csv"), "1,2\n"), IngestOptions(), tmp_path).n_edges == 1, "a folder of that name"


def test_a_named_pipe_instead_of_a_file(tmp_path, folder):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is not a regular file; name a file, or pipe the edges into the command"):
        ingest(str(tmp_path / "pipe"), IngestOptions(), folder)


def test_a_file_that_may_not_be_opened(tmp_path, folder, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path / "x.csv", "1,2\n")
    monkeypatch.setattr(opening, "open_regular", refuse)
    with pytest.raises(InputError, match=r"x\.csv cannot be opened \(Permission denied\); check its permissions"):
        ingest(path, IngestOptions(), folder)


def test_a_disk_that_fails_while_the_input_is_read(tmp_path, folder, monkeypatch):
    """Compressed or not."""

    class Failing(io.FileIO):
        def readinto(self, buffer):
            raise OSError(5, "Input/output error")

        read = readinto

    compress = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": lambda b: pa.compress(b, "zstd", True)}
    paths = [write(tmp_path / f"x.csv{suffix}", how(b"1,2\n")) for suffix, how in compress.items()]
    monkeypatch.setattr(opening, "open_regular", lambda path: Failing(str(path)))
    for path in paths:
        with pytest.raises(
            InputError, match=r"x\.csv.* cannot be read \(Input/output error\); copy it to another disk"
        ):
            ingest(path, IngestOptions(), folder)
