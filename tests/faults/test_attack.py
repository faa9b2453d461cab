"""Every file of a run, a comparison and a publication in turn is something else, as in a folder that somebody has sent.

Each command ends by itself, with a code that it is documented to have, and a sentence that helps. No row is lost, and
nothing that lies elsewhere is changed or removed. Commands have 8 GiB of address space, so none asks for more memory
because a file says so.
"""

import os
import random
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.pipeline.run.files import read_json
from bicliques.schemas.errors import BicliqueError
from bicliques.schemas.manifest import LedgerEntry
from bicliques.schemas.records import one_line
from bicliques.schemas.work import Subtrees
from tests.support.forks import Sweeper, sweeping
from tests.support.odd_files import FOREIGN, KINDS, ROOM, ended, forge
from tests.support.runs import load_ledger, manifest_pair, random_edges, rewrite_record, write_edges

EDGES = random_edges(24, 16, 0.35, 7)
#: Kinds that readers may take for the file, because the numbers in it are right where they look.
_FORGED = "huge"
#: Files of a complete run, by their places below its folder. PART is its only part.
FILES = (
    *("options.json", "manifest.json", "report.html", "_SUCCESS", "run.lock"),
    *(f"steps/{step}.json" for step in ("ingest", "build", "plan", "mine")),
    *("edges/edges.parquet", "labels/left.parquet", "labels/right.parquet"),
    *("graph/graph.json", "graph/left_labels.arrow", "graph/root_indptr.npy", "graph/base_hash.npy"),
    *("plan/roots.npy", "plan/weights.npy", "ledger/0.json"),
    *("summary/sizes.parquet", "summary/largest.parquet", "summary/left.parquet", "vertices/left.parquet", "PART"),
)
READERS = ("status", "show", "sizes", "sample", "export", "explain", "cover", "verify", "publish", "diff", "count")
#: Commands of each case. The others have their turn in other cases.
AT_A_TIME = 3


@pytest.fixture(scope="module")
def sweeper() -> Iterator[Sweeper]:
    with sweeping() as process:
        resource.prlimit(process.process.pid, resource.RLIMIT_AS, (ROOM, ROOM))
        yield process


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run, one that stopped and has a left-over, an older one, and a publication and a comparison."""
    place = tmp_path_factory.mktemp("attacked")
    source = write_edges(place / "g.parquet", EDGES, strings=True)
    bq.mine(source, place / "complete", workers=0, progress=False, per_vertex=True)
    bq.mine(source, place / "stopped", workers=0, progress=False, report=False, max_results=20)
    less = write_edges(place / "less.parquet", EDGES[:-5], strings=True)
    bq.mine(less, place / "older", workers=0, progress=False, report=False)
    bq.publish(place / "complete", place / "published", progress=False)
    bq.diff(place / "older", place / "complete", output=place / "changes", progress=False)
    shutil.copy(source, place / FOREIGN)
    return place


def words_of(command: str, model: Path, out: Path) -> list[str]:
    beside = out.parent
    more = {
        "publish": [str(beside / "place")],
        "count": ["--workers", "0"],
        "resume": ["--workers", "0", "--max-results", "none"],
    }
    quietly = ["--quiet"] if command in ("verify", "publish", "diff", "count", "report", "resume") else []
    runs = [str(model / "older"), str(out)] if command == "diff" else [str(out)]
    return [command, *runs, *more.get(command, []), *quietly]


def put(kind: str, file: Path, model: Path) -> bytes | None:
    """Put something in the place of a file. Returns what a link leads to, and must stay."""
    data = file.read_bytes() if file.exists() else b"{}"
    foreign = file.parents[1] / FOREIGN
    shutil.copy(model / FOREIGN, foreign)
    if kind != _FORGED:
        file.unlink(missing_ok=True)
    KINDS[kind](file, data)
    return foreign.read_bytes()


def remove(path: Path) -> None:
    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


@pytest.mark.values
@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for i, name in enumerate(FILES) for j, kind in enumerate(KINDS) if kind == _FORGED or (i + j) % 2],
)
def test_no_file_of_a_run_stops_a_command_or_leads_it_elsewhere(sweeper, model, tmp_path, name, kind):
    out = Path(shutil.copytree(model / "complete", tmp_path / "below" / "out"))
    part = next((out / "bicliques").iterdir())
    file, rows = (part if name == "PART" else out / name), part.read_bytes()
    if kind == _FORGED and not file.exists():
        pytest.skip("a complete run has no lock")
    foreign = put(kind, file, model)
    there = file.lstat()
    for command in random.Random(f"{name} {kind}").sample(READERS, AT_A_TIME):
        ended(sweeper, tmp_path, words_of(command, model, out))
        assert os.path.samestat(file.lstat(), there), command
    code, told = ended(sweeper, tmp_path, words_of("resume", model, out))
    if code and ("move it away" in told or "delete it" in told):
        remove(file)
        code, told = ended(sweeper, tmp_path, words_of("resume", model, out))
    if name == "options.json" and code:
        assert "start the run again in another folder" in told or (kind == _FORGED and "use version" in told)
        assert part.read_bytes() == rows
    elif kind == _FORGED and code:
        assert "start the run again" in told
    else:
        assert code == 0, told
        assert manifest_pair(out) == manifest_pair(model / "complete")
    if code == 0 and kind != _FORGED:
        code, told = ended(sweeper, tmp_path, words_of("verify", model, out))
        if code and "delete it" in told:  # a part that kept its size, which only verifying looks into
            remove(file)
            assert ended(sweeper, tmp_path, words_of("resume", model, out))[0] == 0
            code, told = ended(sweeper, tmp_path, words_of("verify", model, out))
        assert code == 0, told
    assert (file.parents[1] / FOREIGN).read_bytes() == foreign


@pytest.mark.values
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["manifest.json", "_published.json", "_SUCCESS", "labels/left.parquet", "PART"])
def test_no_file_of_a_publication_stops_the_next_one(sweeper, model, tmp_path, name, kind):
    place = Path(shutil.copytree(model / "published", tmp_path / "below" / "place"))
    file = next((place / "bicliques").iterdir()) if name == "PART" else place / name
    foreign = put(kind, file, model)
    out = Path(shutil.copytree(model / "complete", tmp_path / "below" / "out"))
    for words in (["show", str(place)], *(["publish", str(out), str(place), "--quiet"] for _ in range(2))):
        ended(sweeper, tmp_path, words)
    assert (file.parents[1] / FOREIGN).read_bytes() == foreign


@pytest.mark.values
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["gone.parquet", "new.parquet", "vertices_left.parquet", "diff.json"])
def test_no_file_of_a_comparison_stops_who_reads_it(model: Path, tmp_path: Path, name: str, kind: str) -> None:
    changes = Path(shutil.copytree(model / "changes", tmp_path / "below" / "changes"))
    foreign = put(kind, changes / name, model)
    found = None
    with suppress(BicliqueError):
        found = bq.Difference(changes)
    for read in (lambda: found.gone.top(3), lambda: found.new.top(3), lambda: found.vertices) if found else ():
        with suppress(BicliqueError):
            read()
    assert (changes.parent / FOREIGN).read_bytes() == foreign


def other_row(indices: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """The first row has other neighbours, as many and in order. So only the other direction tells."""
    row = indices[: indptr[1]]
    others = np.setdiff1d(np.arange(indices.max() + 1), row)
    indices[: indptr[1]] = np.sort(np.r_[others[: len(row)], row[len(others) :]])
    return indices


#: Arrays that nobody but an attacker writes, by what is odd in them.
ODD_ARRAYS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "a neighbour behind the last": ("graph/root_indices.npy", lambda a: np.r_[a[:-1], np.int32(2**31 - 1)]),
    "a neighbour before the first": ("graph/base_indices.npy", lambda a: np.r_[np.int32(-5), a[1:]]),
    "an offset far away": ("graph/root_indptr.npy", lambda a: np.r_[a[:1], 2**40, a[2:]]),
    "offsets that descend": ("graph/base_indptr.npy", lambda a: np.r_[a[:1], a[2], a[1], a[3:]]),
    "no offset": ("graph/root_indptr.npy", lambda a: a[:0]),
    "fewer hashes": ("graph/root_hash.npy", lambda a: a[:-1]),
    "a member behind the last": ("graph/root_members.npy", lambda a: np.r_[a[:-1], np.int32(2**31 - 1)]),
    "floats": ("graph/base_members.npy", lambda a: a.astype(np.float64)),
    "objects": ("graph/base_members.npy", lambda a: a.astype(object)),
    "two dimensions": ("graph/root_indices.npy", lambda a: a[None]),
    "a root behind the last": ("plan/roots.npy", lambda a: np.r_[np.int32(10**9), a[1:]]),
    "a root before the first": ("plan/roots.npy", lambda a: np.r_[np.int32(-1), a[1:]]),
    "a weight that is no number": ("plan/weights.npy", lambda a: np.r_[np.nan, a[1:]]),
    "fewer weights": ("plan/weights.npy", lambda a: a[:-1]),
}


@pytest.mark.parametrize("odd", [*ODD_ARRAYS, "another row"])
def test_an_array_that_no_step_makes_is_not_searched(sweeper: Sweeper, model: Path, tmp_path: Path, odd: str) -> None:
    """Its checksum is right. Compiled code would write where its numbers lead."""
    out = Path(shutil.copytree(model / "stopped", tmp_path / "below" / "out"))
    if odd == "another row":
        file = out / "graph" / "root_indices.npy"
        array = other_row(np.load(file), np.load(out / "graph" / "root_indptr.npy"))
    else:
        file = out / ODD_ARRAYS[odd][0]
        array = ODD_ARRAYS[odd][1](np.load(file))
    np.save(file, array)
    forge(file)
    code, told = ended(sweeper, tmp_path, words_of("resume", model, out))
    assert code == 1
    assert f"step {'plan' if 'plan' in str(file) else 'build'} of {out} does not give again what it gave" in told


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("odd", ["offsets", "missing", "lists", "fewer"])
def test_labels_that_no_step_writes_are_not_read(sweeper, model, tmp_path, side, odd):
    out = Path(shutil.copytree(model / "stopped", tmp_path / "below" / "out"))
    file = out / "graph" / f"{side}_labels.arrow"
    texts = pa.ipc.open_file(file.read_bytes()).read_all()["label"].to_pylist()
    if odd == "offsets":
        far = np.r_[0, np.full(len(texts) - 1, 2**31 - 1), 64].astype(np.int32)
        made = pa.Array.from_buffers(pa.string(), len(texts), [None, pa.py_buffer(far), pa.py_buffer(b"x" * 64)])
    else:
        made = pa.array({"missing": [None, *texts[1:]], "lists": [[t] for t in texts], "fewer": texts[1:]}[odd])
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, pa.schema({"label": made.type})) as writer:
        writer.write_table(pa.table({"label": made}))
    forge(file)
    for command in ("show", "verify"):
        ended(sweeper, tmp_path, words_of(command, model, out))
    code, told = ended(sweeper, tmp_path, words_of("resume", model, out))
    assert code == 1
    assert f"step build of {out} does not give again what it gave" in told


def odd_nodes(nodes: Subtrees, odd: str) -> Subtrees:
    """Nodes of the search that no slice leaves."""
    fields = {name: np.array(getattr(nodes, name)) for name in vars(nodes)}
    if odd == "todo":
        fields["todo"][0] = 2**31 - 1
    elif odd.endswith("indptr"):
        fields[odd][1] = 2**40
    else:
        fields[odd] = np.full(max(len(fields[odd]), 1), 2**31 - 1, np.int32)
    return Subtrees(**fields)


@pytest.mark.parametrize("odd", ["path", "todo", "path_indptr"])
def test_a_left_over_that_no_slice_leaves_is_not_searched(sweeper, model, tmp_path, odd):
    out = Path(shutil.copytree(model / "stopped", tmp_path / "below" / "out"))
    ledger = load_ledger(out)
    number = next(k for k, entry in ledger.entries.items() if entry.result.n_left_over)
    entry, packed = LedgerEntry.from_json(read_json(ledger.file(number)), ledger.job)
    odd_packed = packed_anyway(odd_nodes(Subtrees.from_bytes(packed), odd))
    ledger.file(number).write_bytes(one_line(entry.to_json(odd_packed)))
    code, told = ended(sweeper, tmp_path, words_of("resume", model, out))
    assert code == 1
    assert f"ledger entry {ledger.file(number)} cannot be used (" in told
    ledger.file(number).unlink()
    assert ended(sweeper, tmp_path, words_of("resume", model, out))[0] == 0
    assert manifest_pair(out) == manifest_pair(model / "complete")


def packed_anyway(nodes: Subtrees) -> bytes:
    """As `Subtrees.to_bytes`, which would refuse offsets that lead nowhere."""
    lists = [
        pa.LargeListArray.from_buffers(
            pa.large_list(pa.int32()), len(nodes), [None, pa.py_buffer(indptr)], children=[pa.array(values)]
        )
        for indptr, values in ((nodes.path_indptr, nodes.path), (nodes.candidate_indptr, nodes.candidates))
    ]
    batch = pa.record_batch(
        [*lists, pa.array(nodes.todo), pa.array(nodes.fresh), pa.array(nodes.ranged)],
        names=["path", "candidates", "todo", "fresh", "ranged"],
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("command", ["verify", "explain", "report", "show --by surprise", "count", "resume"])
def test_more_vertices_than_edges_are_not_made_room_for(sweeper, model, tmp_path, command):
    """Each vertex has an edge. Records with right checksums say that there are as many as ids allow."""
    out = Path(shutil.copytree(model / "complete", tmp_path / "below" / "out"))
    rewrite_record(out / "steps" / "ingest.json", n_left=2**31 - 1)
    rewrite_record(out / "manifest.json", input=read_json(out / "manifest.json")["input"] | {"n_left": 2**31 - 1})
    first, *more = command.split()
    code, told = ended(sweeper, tmp_path, [*words_of(first, model, out), *more])
    assert code == 1
    if first != "resume":
        assert f"edges.parquet has {len(EDGES)} edges, too few for 2,147,483,647 vertices; delete it and resume" in told
