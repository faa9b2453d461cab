"""Files that a run finds and nobody named: somebody else may have written them, and they decide nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import pipeline
from pipeline.cli import main
from schemas.records import with_checksum
from tests.support.runs import manifest_pair, random_edges, write_edges

EDGES = random_edges(24, 16, 0.35, 7)
#: A store that nobody answers for, so that a request to it fails.
STRANGER = {"url": "s3://evil/x?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1"}


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("found")
    source = write_edges(folder / "g.parquet", EDGES, strings=True)
    return pipeline.mine(source, folder / "out", workers=0, progress=False, report=False).path


@pytest.fixture
def out(complete: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(complete, tmp_path / "out"))


@pytest.mark.parametrize("text", [json.dumps(STRANGER), json.dumps(with_checksum(STRANGER)), "{", None])
def test_a_file_beside_a_run_does_not_redirect_it(out: Path, text: str | None) -> None:
    for place in (out.parent, out):
        marker = place / ".bicliques-store.json"
        marker.write_text(text) if text is not None else marker.symlink_to("/proc/self/environ")
    before = {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    for command in ("status", "show", "sizes", "verify"):
        assert main.main([command, str(out)]) == 0
    assert pipeline.resume(out, workers=0, progress=False, report=False).complete
    assert {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()} == before
    again = pipeline.mine(out, out.parent / "next", workers=0, progress=False)
    assert manifest_pair(again.path) == manifest_pair(out)
    assert list((again.path / "bicliques").iterdir())
