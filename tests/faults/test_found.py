"""Files that a run finds and nobody named: somebody else may have written them, and they decide nothing."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.run.files import checksum, read_json
from bicliques.schemas.records import with_checksum
from tests.support.runs import manifest_pair, random_edges, write_edges

EDGES = random_edges(24, 16, 0.35, 7)
#: A store that nobody answers for, so that a request to it fails.
STRANGER = {"url": "s3://evil/x?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1"}


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("found")
    source = write_edges(folder / "g.parquet", EDGES, strings=True)
    return bq.mine(source, folder / "out", workers=0, progress=False, report=False).path


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
    assert bq.resume(out, workers=0, progress=False, report=False).complete
    assert {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()} == before
    again = bq.mine(out, out.parent / "next", workers=0, progress=False, report=False)
    assert manifest_pair(again.path) == manifest_pair(out)
    assert list((again.path / "bicliques").iterdir())


@pytest.mark.parametrize("record", ["manifest.json", "ledger/0.json"])
@pytest.mark.parametrize("way", ["up", "absolute", "folder"])
@pytest.mark.first(3)
def test_a_record_does_not_name_rows_of_others(complete, out, record, way, capfd):
    """A run that somebody has sent, whose records have right checksums and name a file of this user as a part."""
    source = out.parent / "private.csv"
    source.write_text("user,item\nsecret 1,x\nsecret 1,y\nsecret 2,x\n")
    private = bq.mine(source, out.parent / "private", workers=0, progress=False, report=False).path
    [part] = (private / "bicliques").iterdir()
    name = {"up": f"../../private/bicliques/{part.name}", "absolute": str(part), "folder": f"x/../{part.name}"}[way]
    data = read_json(out / record)
    data["parts"] = [data["parts"][0] | {"name": name, "bytes": part.stat().st_size}]
    (out / record).write_text(json.dumps(with_checksum(data)))
    if record != "manifest.json":
        (out / "manifest.json").unlink()
    before = part.read_bytes()
    for command in ("show", "sample", "export", "explain", "cover", "report", "verify", "sizes"):
        code = main.main([command, str(out)])
        told = capfd.readouterr()
        assert "secret" not in told.out + told.err, command
        if record == "manifest.json":
            assert (code, told.out) == (1, ""), command
            assert "is not the name of a part" in told.err
            assert f"mend it with: bicliques resume {out}" in told.err
    assert bq.resume(out, workers=0, progress=False, report=False).complete
    assert manifest_pair(out) == manifest_pair(complete)
    assert part.read_bytes() == before


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("vertex", [-1, 24, 2**31 - 1])
@pytest.mark.first(2)
def test_edges_of_vertices_that_do_not_exist_are_refused(out, side, vertex, capfd):
    """With a right checksum. Compiled code would read memory that is not its own."""
    file = out / "edges" / "edges.parquet"
    edges = pq.read_table(file)
    ids = edges[side].to_pylist()
    ids[-1] = vertex
    at = edges.column_names.index(side)
    pq.write_table(edges.set_column(at, edges.schema.field(at), pa.array(ids, edges.schema.field(at).type)), file)
    record = read_json(out / "steps" / "ingest.json")
    record["files"]["edges/edges.parquet"] = checksum(file)
    (out / "steps" / "ingest.json").write_text(json.dumps(with_checksum(record)))
    new = str(out.parent / "new")
    for command in (
        ["verify", out],
        ["explain", out],
        ["report", out],
        ["count", out],
        ["count", out, "--containing-left", "u11"],
        ["mine", out, "-o", new],
        ["largest", out],
        ["export", out, "--format", "adj"],
        ["show", out, "--by", "surprise"],
    ):
        assert main.main([str(word) for word in command]) == 1, command
        told = capfd.readouterr()
        assert "edges.parquet cannot be read (it has the vertices" in told.err, command
        assert "delete it and resume the run" in told.err
