"""Input files in a format that their names say, and the folder of a run that an error must leave alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.pipeline.ingest.step import IngestSummary, ingest
from bicliques.pipeline.run.names import EDGES_FILE, LEFT_LABELS_FILE, RIGHT_LABELS_FILE
from bicliques.schemas.options import IngestOptions


def write(path: Path, content: str | bytes | pa.Table) -> Path:
    """A file of text, bytes or a table."""
    if isinstance(content, str):
        path.write_bytes(content.encode())
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif path.suffix == ".parquet":
        pq.write_table(content, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, content.schema) as writer:
            writer.write_table(content)
    return path


def read_edges(source: object, folder: Path, **options: object) -> tuple[list, IngestSummary]:
    """The edges of a source, as pairs of labels in order, and the summary. The tables are left in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = ingest(source, IngestOptions(**options), folder)  # type: ignore[arg-type]
    left, right = (pq.read_table(folder / name)["label"].to_pylist() for name in (LEFT_LABELS_FILE, RIGHT_LABELS_FILE))
    table = pq.read_table(folder / EDGES_FILE)
    pairs = zip(table["left"].to_pylist(), table["right"].to_pylist(), strict=True)
    return [(left[u], right[v]) for u, v in pairs], summary


@contextmanager
def untouched_run(place: Path) -> Iterator[Path]:
    """The folder of a run, with files of its own, which must be the same after the block."""
    root = place / "run"
    (root / "labels").mkdir(parents=True)
    (root / "labels" / "left.parquet").write_text("old")
    before = _snapshot(root)
    yield root
    assert _snapshot(root) == before


def _snapshot(root: Path) -> dict[Path, bytes | bool]:
    return {path: path.is_dir() or path.read_bytes() for path in root.rglob("*")}
