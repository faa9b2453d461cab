"""Files that go into a store in pieces, with requests that fail, and runs whose files all do."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.s3 import models

import bicliques as bq
from bicliques.pipeline.remote import objects
from bicliques.pipeline.remote.objects import Objects
from bicliques.schemas.errors import ResourceError
from tests.support.bucket import Asked
from tests.support.runs import ROOT, environment
from tests.support.stored import Machines, check_whole, machines_with_a_bucket, source_in

CONTENT = bytes(range(256)) * 20
PIECES = ["begin", "complete", "part", "part", "part"]


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    """A machine whose files of more than 2,000 bytes go in pieces."""
    monkeypatch.setattr(objects, "PIECE_BYTES", 2000)
    monkeypatch.setattr(models, "S3_UPLOAD_PART_MIN_SIZE", 1)
    with machines_with_a_bucket(tmp_path, monkeypatch) as there:
        yield there


def put(machines: Machines, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    Objects(machines.url).put("bicliques/a", tmp_path / "file")


def whats(machines: Machines) -> list[str]:
    return sorted(asked.what for asked in machines.bucket.asked)


def test_a_large_file_goes_in_pieces(machines: Machines, tmp_path: Path) -> None:
    put(machines, tmp_path)
    assert whats(machines) == PIECES
    assert machines.there() == {"bicliques/a": CONTENT}
    assert b"".join(Objects(machines.url).pieces("bicliques/a")) == CONTENT
    machines.bucket.well()
    (tmp_path / "small").write_bytes(CONTENT[:1999])
    Objects(machines.url).put("b", tmp_path / "small")
    assert whats(machines) == ["put"]


@pytest.mark.parametrize("what", ["begin", "part", "complete"])
@pytest.mark.parametrize("fault", ["cut before", "cut after", "error"])
def test_a_fault_that_passes(machines: Machines, tmp_path: Path, what: str, fault: str) -> None:
    seen: set[Asked] = set()

    def once(asked: Asked) -> str | None:
        is_new = asked not in seen
        seen.add(asked)
        return fault if is_new and asked.what == what else None

    machines.bucket.fault = once
    put(machines, tmp_path)
    assert whats(machines) == sorted([*PIECES, what])
    assert machines.there() == {"bicliques/a": CONTENT}
    left = (what, fault) == ("begin", "cut after")  # nobody knows the upload that was begun then
    assert machines.bucket.uploads() == left


@pytest.mark.parametrize("what", ["begin", "part", "complete"])
@pytest.mark.parametrize("fault", ["cut before", "cut after", "error", "refuse"])
def test_a_store_that_stays_broken(machines: Machines, tmp_path: Path, what: str, fault: str) -> None:
    """The pieces are given up, and one sentence says why."""
    machines.bucket.fault = lambda asked: fault if asked.what == what else None
    why = {"error": "the store answers 500 Internal", "refuse": "the store answers 403 Forbidden"}.get(
        fault, "no answer"
    )
    with pytest.raises(ResourceError, match=rf"bicliques/a cannot be written \({why}") as told:
        put(machines, tmp_path)
    assert "uploadId" not in str(told.value)
    assert ("abort" in whats(machines)) == (what != "begin")
    assert machines.bucket.uploads() == (2 if (what, fault) == ("begin", "cut after") else 0)
    machines.bucket.well()
    put(machines, tmp_path)
    assert machines.there() == {"bicliques/a": CONTENT}


def test_a_run_whose_files_go_in_pieces(machines: Machines, tmp_path: Path) -> None:
    """Rows cannot be put. Another machine goes on."""
    source = source_in(tmp_path)
    machines.bucket.fault = lambda asked: "error" if asked.what == "part" and "bicliques/part-" in asked.key else None
    with pytest.raises(ResourceError, match="cannot be written"):
        bq.mine(source, machines.url, workers=0, progress=False, report=False)
    assert "abort" in whats(machines)
    assert machines.bucket.uploads() == 0
    machines.bucket.well()
    machines.change()
    bq.mine(source, machines.url, workers=0, progress=False, report=True)
    kept = {key.rpartition("/")[2].partition("-")[0] for key in machines.bucket.whats("complete")}
    assert {"part", "report.html"} <= kept
    check_whole(machines)
    assert machines.bucket.uploads() == 0


def test_a_driver_that_is_killed_in_an_upload(machines: Machines, tmp_path: Path) -> None:
    """What was sent stays as an upload that nobody reads. Another machine goes on."""
    source = source_in(tmp_path)
    words = ["mine", str(source), "-o", machines.url, "--quiet", "--workers", "0", "--no-report"]
    code = "import sys; from bicliques.pipeline.remote import objects; objects.PIECE_BYTES = 2000; "
    code += "from bicliques.pipeline.cli.main import main; sys.exit(main(sys.argv[1:]))"
    pids: list[int] = []

    def kill(asked: Asked) -> str | None:
        if not (asked.what == "part" and "bicliques/part-" in asked.key):
            return None
        os.kill(pids[0], signal.SIGKILL)
        return "cut after"

    machines.bucket.fault = kill
    variables = environment() | machines.variables
    with subprocess.Popen([sys.executable, "-c", code, *words], cwd=ROOT, env=variables) as process:
        pids.append(process.pid)
        assert process.wait() == -signal.SIGKILL
    machines.bucket.well()
    assert machines.bucket.uploads() == 1
    assert not [key for key in machines.there() if key.startswith("bicliques/")]
    machines.change()
    bq.mine(source, machines.url, workers=0, progress=False, report=False)
    check_whole(machines)
