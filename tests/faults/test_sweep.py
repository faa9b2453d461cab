"""System calls fail, one after the other. Each gives a sentence, never a traceback, and later the same answer.

The normal suite takes a spread of the calls. All of them, in some hours: ``BICLIQUES_ALL_FAULTS=1``.
"""

import errno
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.run import names
from tests.faults.sweeper import KINDS
from tests.support.compared import rows_of
from tests.support.forks import Sweeper, sweeping
from tests.support.published import check_complete, check_honest, files_below
from tests.support.runs import ROOT, answer, manifest_pair, random_edges, write_edges

EDGES = random_edges(24, 16, 0.4, 3)
EXPECTED = answer(EDGES)
ALL = "BICLIQUES_ALL_FAULTS" in os.environ
#: What a call may say: the disk is full, has turned read-only, is broken; a user's limit; somebody else's permission.
ERRORS = {
    **dict.fromkeys(KINDS, (errno.EIO,)),
    "open": (errno.ENOSPC, errno.EROFS, errno.EMFILE),
    "look": (errno.EIO, errno.EACCES, errno.EMFILE),
    "write": (errno.ENOSPC, errno.EDQUOT, errno.EIO),
    "rename": (errno.EROFS, errno.ENOSPC),
    "mkdir": (errno.ENOSPC, errno.EROFS),
    "unlink": (errno.EROFS, errno.EACCES),
    "ftruncate": (errno.EROFS, errno.EIO),
    "flock": (errno.ENOLCK,),
}
COMMANDS = ("mine", "resume", "report", "verify", "prune", "count", "status", "show", "diff", "publish", "refresh")


@pytest.fixture(scope="module")
def sweeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sweeper]:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None or sys.platform != "linux":
        pytest.skip("there is no C++ compiler for the shim that lets calls fail")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    source = ROOT / "tests" / "faults" / "shim.cpp"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    with sweeping({"LD_PRELOAD": str(library)}) as process:
        yield process


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An input, a run of it that stopped, and a complete one."""
    place = tmp_path_factory.mktemp("model")
    source = write_edges(place / "g.parquet", EDGES)
    bq.mine(source, place / "stopped", workers=0, progress=False, report=False, max_results=60)
    bq.mine(source, place / "complete", workers=0, progress=False, report=False)
    less = write_edges(place / "less.parquet", EDGES[:-5])
    bq.mine(less, place / "older", workers=0, progress=False, report=False)
    return place


def prepared(model: Path, place: Path, command: str) -> list[str]:
    """Prepare the files of a command. Returns its words."""
    below = place / "below"
    below.mkdir(parents=True)
    shutil.copy(model / "g.parquet", below)
    out, source, quietly = below / "out", str(below / "g.parquet"), ["--workers", "0", "--quiet"]
    if command == "mine":
        return ["mine", source, "-o", str(out), *quietly, "--no-report"]
    if command == "count":
        return ["count", source, "--fingerprint", *quietly]
    if command == "prune":
        for name in ("a", "b"):
            shutil.copytree(model / "complete", below / "runs" / name)
        return ["prune", str(below / "runs"), "--keep", "1", "--remove"]
    if command == "diff":
        shutil.copytree(model / "older", below / "older")
        shutil.copytree(model / "complete", out)
        return ["diff", str(below / "older"), str(out), "--output", str(below / "changes"), "--quiet"]
    if command == "refresh":
        shutil.copytree(model / "older", below / "older")
        return ["refresh", str(below / "older"), source, "-o", str(out), *quietly, "--no-report"]
    shutil.copytree(model / ("stopped" if command == "resume" else "complete"), out)
    if command == "publish":
        return ["publish", str(out), str(below / "place"), "--quiet"]
    if command == "resume":
        return ["resume", str(out), *quietly, "--max-results", "none", "--no-report"]
    return [command, str(out), *(["--quiet"] if command in ("verify", "report") else [])]


def check_sentence(place: Path, code: int, killed: bool) -> None:
    told = (place / "err").read_text()
    assert "Traceback" not in told, told
    assert code in ((-9,) if killed else (0, 1, 2, 3)), (code, told)
    assert all(line.startswith("bicliques: ") for line in told.splitlines()), told
    if code in (1, 2):
        assert told, "it says nothing"


def check_after(sweeper: Sweeper, place: Path, command: str, words: list[str]) -> None:
    """Without faults everything goes on to the right answer."""
    below = place / "below"
    out = below / "out"
    if command == "prune":
        assert sweeper.run(place, words) == 0, (place / "err").read_text()
        assert len(list((below / "runs").iterdir())) == 1
        return
    if command == "diff":
        changes = below / "changes"
        if not (changes / "diff.json").exists():  # otherwise it was killed when all was done
            assert sweeper.run(place, words) == 0, (place / "err").read_text()
        found = bq.Difference(changes)
        assert (found.new_run.found.count, found.new_run.found.fingerprint) == EXPECTED
        assert rows_of(found.new) == rows_of(bq.open_run(out)) - rows_of(bq.open_run(below / "older"))
        assert len(list(changes.iterdir())) == 5
        return
    if command == "publish":
        check_honest(files_below(below / "place"), out)
        assert sweeper.run(place, words) == 0, (place / "err").read_text()
        check_complete(files_below(below / "place"), out)
        return
    if command == "refresh":
        assert sweeper.run(place, ["verify", str(below / "older"), "--quiet"]) == 0, (place / "err").read_text()
    if command in ("mine", "refresh") and (out / "options.json").exists():
        words = ["resume", str(out), "--workers", "0", "--quiet", "--no-report"]
    assert sweeper.run(place, words) == 0, (place / "err").read_text()
    if command == "count":
        assert f"bicliques: {EXPECTED[0]:,}\nfingerprint: {EXPECTED[1]}\n" in (place / "out").read_text()
        return
    assert manifest_pair(out) == EXPECTED
    assert names.stranger_in(out) is None
    assert not [path for path in out.rglob(".*") if path.name.startswith((".ingest", ".part"))]
    assert not (out / "pending").exists()
    assert sweeper.run(place, ["verify", str(out), "--quiet"]) == 0, (place / "err").read_text()


def cases(counts: dict[str, int], command: str, rest: int) -> Iterator[tuple[str, str, int, int]]:
    """Kind, manner, number of the call and errno, for all calls, or for one of every fourth kind.

    Where the first of these kinds is depends on the command, too, so that some command meets each kind.
    """
    chosen = random.Random(command)
    for number, kind in enumerate(KINDS, COMMANDS.index(command)):
        options = [("kill", 0), *((how, error) for how in ("once", "always") for error in ERRORS[kind])]
        calls = range(1, counts[kind] + 1)
        if ALL:
            yield from ((kind, how, at, error) for at in calls for how, error in options)
        elif calls:
            how, error = chosen.choice(options)
            at = chosen.choice(calls)
            if number % 4 == rest:
                yield kind, how, at, error


@pytest.mark.parametrize("rest", [0, pytest.param(2, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(
    "command",
    [*COMMANDS[:-1], pytest.param("refresh", marks=pytest.mark.exhaustive)],  # kills: test_refresh.py
)
def test_a_failing_system_call_gives_a_sentence_and_no_damage(sweeper, model, tmp_path, command, rest):
    place = tmp_path / "count"
    words = prepared(model, place, command)
    assert sweeper.run(place, words) == 0, (place / "err").read_text()
    counts: dict[str, int] = json.loads((place / "calls").read_text())
    assert counts["look"] + counts["open"] > 0, "the shim sees nothing"
    wrong = []
    for number, (kind, how, at, error) in enumerate(cases(counts, command, rest)):
        place = tmp_path / str(number)
        words = prepared(model, place, command)
        code = sweeper.run(place, words, kind, how, at, error)
        try:
            check_sentence(place, code, how == "kill" and code < 0)
            check_after(sweeper, place, command, words)
        except Exception as error_found:
            wrong.append(f"call {at} of {kind}, {how}, {errno.errorcode.get(error)}: {error_found}")
        shutil.rmtree(place)
    assert not wrong, "\n\n".join([f"{len(wrong)} of {number + 1}", *wrong])


@pytest.mark.exhaustive  # the first change of each kind: tests/faults/test_readers.py
@pytest.mark.parametrize("command", ["mine", "resume", "refresh"])
def test_killed_wherever_a_file_gets_its_name(sweeper: Sweeper, model: Path, tmp_path: Path, command: str) -> None:
    """After every such kill ``bicliques/*.parquet`` is what the ledger counts, and the run goes on to the same rows."""
    place = tmp_path / "count"
    assert sweeper.run(place, prepared(model, place, command)) == 0, (place / "err").read_text()
    calls, between = json.loads((place / "calls").read_text()), 0
    assert calls["fsync"] > calls["rename"], "folders are forced to the disk, too, or the shim does not see it"
    for at in range(1, calls["rename"] + 1):
        place = tmp_path / str(at)
        words, out = prepared(model, place, command), place / "below" / "out"
        assert sweeper.run(place, words, "rename", "kill", at) == -9
        if (out / "ledger").exists():
            entries = [json.loads(file.read_text()) for file in (out / "ledger").glob("[0-9]*.json")]
            named = {part["name"]: part["rows"] for entry in entries for part in entry["parts"]}
            seen = {path.name for path in (out / "bicliques").glob("*.parquet")}
            assert seen <= named.keys(), "a reader sees rows that do not count"
            results = bq.open_run(out)
            assert results.to_arrow(columns=["n_left"]).num_rows == len(results) == sum(named.values())
            between += len(named.keys() - seen) > 0
        check_after(sweeper, place, command, words)
        shutil.rmtree(place)
    assert between, "no kill came between an entry and the move of its parts"


def inputs(folder: Path) -> list[Path]:
    """Small files of five formats."""
    pairs = [(int(a), int(b)) for a, b in EDGES]
    files = [write_edges(folder / "g.parquet", EDGES, strings=True), folder / "g.arrow", folder / "g.csv"]
    files += [folder / "g.csv.gz", folder / "g.mtx"]
    table = pq.read_table(files[0])
    with pa.ipc.new_file(files[1], table.schema) as writer:
        writer.write_table(table)
    files[2].write_text("user,item\n" + "".join(f'"u{a}",{b}\n' for a, b in pairs))
    files[3].write_bytes(gzip.compress(files[2].read_bytes()))
    header = f"%%MatrixMarket matrix coordinate pattern general\n24 16 {len(pairs)}\n"
    files[4].write_text(header + "".join(f"{a + 1} {b + 1}\n" for a, b in pairs))
    return files


def damaged(data: bytes, chosen: random.Random) -> bytes:
    """Bytes changed, removed, repeated, or put in between."""
    start = chosen.randrange(len(data))
    stop = min(len(data), start + chosen.choice([1, 1, 4, 40]))
    how = chosen.choice(["change", "cut", "remove", "repeat", "put"])
    if how == "cut":
        return data[:start]
    if how == "remove":
        return data[:start] + data[stop:]
    if how == "repeat":
        return data[:stop] + data[start:]
    other = chosen.choice(
        [bytes(stop - start), chosen.randbytes(stop - start), b'"', b"\n", b"9" * 30, b"-1", b"\xff\xfe"]
    )
    return data[:start] + other + data[stop if how == "change" else start :]


def test_a_damaged_input_gives_a_result_or_a_sentence(sweeper: Sweeper, tmp_path: Path) -> None:
    chosen, codes = random.Random(11), set()
    for file in inputs(tmp_path):
        whole = file.read_bytes()
        for number in range(1000 if ALL else 5):
            file.write_bytes(damaged(whole, chosen))
            code = sweeper.run(tmp_path, ["count", str(file), "--workers", "0", "--quiet"])
            codes.add(code)
            try:
                assert code in (0, 1, 2), f"exit code {code}"
                check_sentence(tmp_path, code, False)
            except AssertionError as wrong:
                raise AssertionError(f"{file.name}, change {number}: {wrong}") from wrong
    assert codes >= {0, 2}
