"""Memory of publishing is pieces of four files: it grows neither with the size of files nor with their number."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.output import part_writer, stretch
from tests.pipeline.publishing.conftest import Somewhere
from tests.support.published import contents
from tests.support.runs import environment, random_edges, write_edges

#: Pieces are smaller than usual, because the tests' store is slow. Its client never has less than 10 MB of a file.
PEAK = """
import sys, bicliques as bq
from bicliques.pipeline.publishing import publish_run, place
from tests.support.own_memory import OwnMemory
publish_run.PIECE = place.PIECE = 1 << 20
place._IN_FLIGHT = 4 << 20
bq.publish(sys.argv[1], sys.argv[3], overwrite=True, progress=False)  # imports what it needs
memory = OwnMemory()
found = bq.publish(sys.argv[2], sys.argv[3], overwrite=True, progress=False)
print(found.bytes, memory.peak())
"""
#: Of what is published, files whose content nobody looks at.
LARGE = ("report.html", "changes/gone.parquet", "changes/new.parquet")
MB = 1 << 20


def published(small: Path, run: Path, url: str) -> tuple[int, int]:
    """Bytes of all files, and the peak memory of a process that publishes them after a small run."""
    command = [sys.executable, "-c", PEAK, str(small), str(run), url]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300, check=True)
    size, peak = map(int, ended.stdout.split())
    return size, peak


@pytest.mark.exhaustive
@pytest.mark.parametrize("place", ["local", "store"], indirect=True)
def test_memory_does_not_follow_the_size_of_files(run: Path, place: Somewhere, tmp_path: Path) -> None:
    found = []
    for size in (12 * MB, 36 * MB):
        copy = shutil.copytree(run, tmp_path / str(size))
        (copy / "changes").mkdir()
        for name in LARGE:
            with (copy / name).open("wb") as file:
                file.truncate(size)
        found.append(published(run, copy, place.url))
    (few, before), (many, after) = found
    assert many - few == len(LARGE) * 24 * MB
    assert after - before < 16 * MB


@pytest.mark.exhaustive
@pytest.mark.parametrize("place", ["local", "store"], indirect=True)
def test_memory_does_not_follow_the_number_of_files(run, place, tmp_path, monkeypatch):
    source = write_edges(tmp_path / "g.parquet", random_edges(24, 16, 0.4, 4))
    with monkeypatch.context() as patch:
        patch.setattr(stretch, "GROUP_MEMBERS", 8)
        patch.setattr(stretch, "STRETCH_ROWS", 2)
        patch.setattr(part_writer, "PART_BYTES", 1)
        many = bq.mine(source, tmp_path / "many", workers=0, progress=False, report=False).path
    assert len(contents(many)) > 5 * len(contents(run))
    _, before = published(run, run, place.url)
    _, after = published(run, many, place.url)
    assert after - before < 16 * MB
