"""A run in a store whose objects somebody has damaged or forged, and a cache with odd things in the place of files."""

import json
import random
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.remote.objects import objects_at
from bicliques.pipeline.run import bucket_cache
from bicliques.pipeline.run.bucket_ledger import Journal
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.records import with_checksum
from tests.support.forks import sweeping
from tests.support.odd_files import KINDS, ROOM, ended, with_numbers
from tests.support.stored import Machines, check_whole, machines_with_a_bucket, source_in

#: Damage to an object, by its name.
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "garbage": lambda data: random.Random(0).randbytes(len(data)),
    "a list": lambda data: b"[]",
    "deep": lambda data: b"[" * 100_000,
}
#: Objects that are damaged. Those of a run that cannot go on say so.
OBJECTS = (
    *(f"steps/{step}.json" for step in ("ingest", "build", "plan", "mine")),
    *("edges/edges.parquet", "labels/left.parquet", "graph/graph.json", "graph/root_indices.npy", "plan/roots.npy"),
    *("ledger/1/0.json", "manifest.json", "summary/sizes.parquet", "run.lock"),
)

#: Objects by the number of bicliques after which their run stopped.
Runs = dict[int | None, dict[str, bytes]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The objects of a run that stopped after 60 bicliques, and of one that is complete."""
    folder, found = tmp_path_factory.mktemp("runs"), Runs()
    source = source_in(folder)
    with pytest.MonkeyPatch.context() as patch, machines_with_a_bucket(folder, patch) as machines:
        for most in (60, None):
            machines.empty()
            machines.change()
            bq.mine(source, machines.url, workers=0, progress=False, max_results=most, report=False)
            found[most] = machines.there()
    return found


@pytest.mark.values
@pytest.mark.parametrize(
    ("name", "how"), [(name, how) for i, name in enumerate(OBJECTS) for j, how in enumerate(DAMAGE) if (i + j) % 2]
)
@pytest.mark.parametrize("most", [60, None], ids=["stopped", "complete"])
def test_a_damaged_object_of_a_run_is_made_again_by_a_machine_that_knows_nothing(
    machines: Machines, runs: Runs, name: str, how: str, most: int | None, capfd: pytest.CaptureFixture[str]
) -> None:
    machines.put_all(runs[most] | {name: DAMAGE[how](runs[most].get(name, b"{}"))})
    for command in ("status", "show", "verify"):
        code = main.main([command, machines.url])
        told = capfd.readouterr().err
        assert code in (0, 1, 2, 3), command
        assert "Traceback" not in told
    assert bq.resume(machines.url, workers=0, progress=False, max_results=None, report=False).complete
    check_whole(machines)


@pytest.mark.parametrize("name", ["options.json", "sessions/1.json"])
@pytest.mark.parametrize("how", DAMAGE)
def test_an_object_that_cannot_be_made_again_says_what_to_do(machines, runs, name, how, capfd):
    machines.put_all(runs[60] | {name: DAMAGE[how](runs[60][name])})
    for words in (["status", machines.url], ["resume", machines.url, "--workers", "0", "--quiet"]):
        assert main.main(words) == 1
        told = capfd.readouterr().err
        assert f"{name} " in told
        assert told.strip().splitlines()[-1].endswith(("in another folder", "in another place"))


def of_session(counts: Any, **more: Any) -> bytes:
    return json.dumps(with_checksum({"run": "r", "first": 1, "counts": counts, "by": "b", "of": "o"} | more)).encode()


@pytest.mark.parametrize(
    "said",
    [
        of_session({"1": [[0, 10**12]]}),
        of_session({"1": [[0, 2**62]]}),
        of_session({"1": [[0, 10**30]]}),
        of_session({str(k): [[0, 10**6]] for k in range(20)}),
        *(of_session(odd) for odd in ([1], {"x": [[0, 1]]}, {"1": [0, 1]}, {"1": [[0]]}, {"1": [[-5, 1]]}, {"1": 7})),
        *(of_session({}, **odd) for odd in ({"first": -1}, {"first": 10**30}, {"first": "1"}, {"run": 5})),
    ],
    ids=lambda said: said[26:80].decode(),
)
def test_numbers_of_a_session_are_checked_before_there_is_memory_for_each(machines: Machines, said: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    machines.put("sessions/1.json", said)
    with pytest.raises(IncompleteError, match=r"sessions/1\.json is damaged \(.*\); start the run again in another"):
        Journal(objects_at(machines.url), "r")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # KiB


@pytest.mark.values
@pytest.mark.parametrize("number", [10**12, 2**62, 2**31 - 1, -1])
@pytest.mark.parametrize("name", ["steps/ingest.json", "steps/plan.json", "ledger/1/0.json", "manifest.json"])
def test_forged_numbers_of_an_object_are_a_sentence(machines, runs, name, number, capfd):
    """With a right checksum."""
    forged = with_numbers(json.loads(runs[None][name]), number)
    machines.put_all(runs[None] | {name: json.dumps(with_checksum(forged)).encode()})
    for words in (["status"], ["show"], ["verify", "--quiet"], ["resume", "--workers", "0", "--quiet"]):
        code = main.main([words[0], machines.url, *words[1:]])
        told = capfd.readouterr().err
        assert code in (0, 1, 2), words
        assert "Traceback" not in told


def test_other_things_in_the_cache_of_a_run_are_not_waited_for(machines: Machines, tmp_path: Path) -> None:
    """In the place of every file that processes have there, but for the one that they lock. The things take turns."""
    odd = ("pipe", "socket", "device", "loop", "empty", "garbage")
    bq.mine(source_in(tmp_path), machines.url, workers=0, progress=False, max_results=60, report=False)
    cache = Path(machines.variables["XDG_CACHE_HOME"]) / "bicliques" / "stores"
    with sweeping(machines.variables) as sweeper:
        resource.prlimit(sweeper.process.pid, resource.RLIMIT_AS, (ROOM, ROOM))
        for turn in range(4):
            go_on = ["resume", "--workers", "0", "--quiet", "--max-results", f"{61 + turn}"]
            for words in (go_on, ["status"], ["show"]):
                files = [path for path in cache.rglob("*") if path.is_file() and path.name != "in-use"]
                for number, file in enumerate(sorted(files), turn):
                    data = file.read_bytes()
                    file.unlink()
                    KINDS["folder" if turn == 3 else odd[number % len(odd)]](file, data)
                code, told = ended(sweeper, tmp_path, [words[0], machines.url, *words[1:]])
                assert len(files) > 8 or turn == 3
                if turn == 3:  # folders may hold what somebody wants
                    assert words[0] == "resume" or "(Is a directory); move it away" in told
                else:
                    assert code == (0 if words[0] == "show" else 3), told
    machines.change()
    assert bq.resume(machines.url, workers=0, progress=False, max_results=None, report=False).complete
    check_whole(machines)


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "loop", "folder"])
def test_another_thing_in_the_place_of_a_lock_of_the_cache_is_named(machines, runs, kind, monkeypatch, capfd):
    machines.put_all(runs[60])
    assert main.main(["status", machines.url]) == 3
    monkeypatch.setattr(bucket_cache, "_held", {})  # as in another process
    [lock] = Path(machines.variables["XDG_CACHE_HOME"]).rglob("in-use")
    lock.unlink()
    KINDS[kind](lock, b"")
    assert main.main(["show", machines.url]) == 2
    assert f"{lock} is a link or no file, and so no lock of a run; delete it" in capfd.readouterr().err
