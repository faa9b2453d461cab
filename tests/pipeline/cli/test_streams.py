"""A run goes on when what it says cannot be written: stderr on a full disk, closed, or with nobody who reads it."""

import subprocess
import sys

import pytest

import bicliques as bq
from tests.support.runs import environment, random_edges, write_edges

EDGES = random_edges(12, 9, 0.4, 1)
CODE = "from bicliques.pipeline.cli.main import program; program()"


@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-", "<&- >&- 2>&-", "2> >(true)"])
@pytest.mark.first(1)
def test_a_run_does_not_end_because_stderr_fails(tmp_path, streams):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    words = [sys.executable, "-c", CODE, "mine", source, "-o", tmp_path / "out", "--workers", "0", "--no-report"]
    ended = subprocess.run(["bash", "-c", f'"$@" {streams}', "bash", *words], capture_output=True, check=False)
    assert ended.returncode == 0
    assert bq.open_run(tmp_path / "out").complete


@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-"])
@pytest.mark.first(1)
def test_an_error_that_cannot_be_said_keeps_its_exit_code(tmp_path, streams):
    words = [sys.executable, "-c", CODE, "status", tmp_path]
    ended = subprocess.run(["bash", "-c", f'"$@" {streams}', "bash", *words], capture_output=True, check=False)
    assert ended.returncode == 2


def test_a_result_that_cannot_be_written_is_a_failure(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    words = [sys.executable, "-c", CODE, "count", source, "--workers", "0", "--quiet"]
    told = subprocess.run(words, capture_output=True, check=False)
    assert (told.returncode, told.stdout[:11]) == (0, b"bicliques: ")
    ended = subprocess.run(["bash", "-c", '"$@" >/dev/full', "bash", *words], capture_output=True, check=False)
    assert ended.returncode == 1


def test_a_reader_that_goes_early_gets_what_it_reads(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    words = [sys.executable, "-c", CODE, "count", source, "--workers", "0", "--quiet"]
    ended = subprocess.run(["bash", "-c", '"$@" | head -c 9', "bash", *words], capture_output=True, check=False)
    assert (ended.stdout, ended.stderr) == (b"bicliques", b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_no_file_of_a_run(closed, tmp_path):
    """The first file that is opened would take its number, and what is printed would be in the file."""
    program = "import os; from bicliques.pipeline.cli.main import _open_streams as s; s(); os.open('/', 0) > 2 or 1 / 0"
    command = f'"$0" -c "$1" {closed}'
    ended = subprocess.run(["sh", "-c", command, sys.executable, program], env=environment(), check=False)
    assert ended.returncode == 0
