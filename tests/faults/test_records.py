"""Damage to the JSON records of a run: said in one sentence with a remedy, mended where that can be; no traceback."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.cli import main
from bicliques.pipeline.run.files import read_json
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.ledger import Ledger
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import BicliqueError, IncompleteError, InputError
from bicliques.schemas.jobs import AllMaximal
from bicliques.schemas.manifest import LedgerEntry
from bicliques.schemas.options import RunLimits, RunOptions
from bicliques.schemas.records import checked, one_line, read_as, with_checksum
from bicliques.schemas.search import Search
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.work import Subtrees
from tests.support.runs import (
    answer,
    ledger_entry,
    load_ledger,
    manifest_pair,
    random_edges,
    rewrite_record,
    write_edges,
)

EDGES = random_edges(30, 20, 0.3, 4)
EXPECTED = answer(EDGES)
RECORDS = (
    "options.json",
    "manifest.json",
    "steps/ingest.json",
    "steps/build.json",
    "steps/plan.json",
    "steps/mine.json",
)
#: Names that no part has, and that may lead to files of others.
FORMS = (
    "../../priv/{}",
    "/priv/{}",
    "a/{}",
    "{}/",
    "..",
    ".",
    "",
    "{}\0",
    "{}\n",
    "x{}",
    "\x1b[2J",
    "part-1-0-0.parquet",
)
NO_PARTS = [form.format("part-000000-0123456789ab-0.parquet") for form in FORMS]
COMMANDS = ("status", "show", "sizes", "sample", "verify", "report")


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    source = write_edges(folder / "g.parquet", EDGES)
    return bq.mine(source, folder / "out", workers=0, progress=False, report=False).path


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopped")
    source = write_edges(folder / "g.parquet", EDGES)
    return bq.mine(source, folder / "out", max_results=20, workers=0, progress=False, report=False).path


@pytest.fixture
def out(complete: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(complete, tmp_path / "out"))


def resumed(out: Path) -> None:
    assert bq.resume(out, max_results=None, workers=0, progress=False, report=False).complete
    assert manifest_pair(out) == EXPECTED
    assert bq.verify(out, progress=False).count == EXPECTED[0]


def places(data: Any, name: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a record."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield (*name, key)
        yield from places(value, (*name, key))


def changed(data: dict[str, Any], place: tuple[Any, ...], change: Callable[[Any, Any], None]) -> dict[str, Any]:
    """A copy of a record that was written without a checksum, with a change at one place."""
    copy = json.loads(json.dumps({key: value for key, value in data.items() if key != "crc32"}))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    change(inner, place[-1])
    return dict(copy)


def lose(inner: Any, key: Any) -> None:
    del inner[key]


def misspell(inner: Any, key: Any) -> None:
    if isinstance(inner, dict):
        inner[f"{key}x"] = inner.pop(key)


def put(value: Any) -> Callable[[Any, Any], None]:
    def change(inner: Any, key: Any) -> None:
        inner[key] = value

    return change


CHANGES = {
    "lost": lose,
    "misspelt": misspell,
    "a list": put([1, [2]]),
    "huge": put(10**30),
    "many": put(10**12),
    "text": put("x"),
    "null": put(None),
    "an object": put({"x": {}}),
}


@pytest.mark.values
@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("name", RECORDS)
def test_no_value_of_a_record_without_a_checksum_ends_in_a_traceback(out: Path, name: str, how: str) -> None:
    """Such a value was written by a program of another version, or with an editor."""
    file = out / name
    data = json.loads(file.read_text())
    refused = []
    for place in places(changed(data, ("crc32",), lambda *_: None)):
        file.write_text(json.dumps(changed(data, place, CHANGES[how])))
        for read in readers_of(out, name):
            try:
                read()
            except (IncompleteError, InputError) as error:
                refused.append(str(error))
    assert refused
    remedies = ("bicliques resume", "bicliques.resume", "start the run again", "use version")
    assert [text for text in refused if str(out) not in text or not any(word in text for word in remedies)] == []


def readers_of(out: Path, name: str) -> list[Callable[[], object]]:
    """What reads a record, each by itself."""
    folder = RunFolder(out)
    readers: list[Callable[[], object]] = [lambda: bq.status(out)]
    if name.startswith("steps/"):
        step = Path(name).stem
        return [*readers, lambda: folder.facts(step), lambda: folder.checksums(step)]
    if name == "options.json":
        readers += [folder.limits, folder.origin]
    return [*readers, lambda: bq.open_run(out).manifest]


@pytest.mark.parametrize("name", RECORDS)
def test_a_change_of_any_byte_of_a_record_is_noticed(complete: Path, tmp_path: Path, name: str) -> None:
    """A record that was changed and can still be read would be believed."""
    whole = (complete / name).read_bytes()
    before, file = read_json(complete / name), tmp_path / "record.json"
    for k in range(0, 8 * len(whole), 7):
        flipped = bytearray(whole)
        flipped[k // 8] ^= 1 << k % 8
        file.write_bytes(flipped)
        try:
            found = read_json(file)
        except IncompleteError:
            continue
        assert found == before or before.keys() < found.keys(), "only the word crc32 may have been hit"


@pytest.mark.values
@pytest.mark.parametrize("name", [name for name in RECORDS if name.startswith("steps")])
@pytest.mark.parametrize("damage", ["in the facts", "in a checksum", "half of it", "a list", "huge"])
@pytest.mark.parametrize("state", ["complete", "stopped"])
def test_a_damaged_step_is_done_again(request, tmp_path, state, name, damage):
    """Its files are whole, and made again they are the same."""
    out = Path(shutil.copytree(request.getfixturevalue(state), tmp_path / "out"))
    file = out / name
    text = file.read_text()
    if damage == "in the facts":
        changed_text = text.replace('"seconds": 0', '"seconds": 1', 1)
        file.write_text(changed_text if changed_text != text else text.replace("1", "2", 1))
    elif damage == "in a checksum":
        file.write_text(text.replace("npy", "npz", 1).replace('parquet"', 'parquex"', 1).replace("reason", "season"))
    elif damage == "half of it":
        file.write_text(text[: len(text) // 2])
    elif damage == "a list":
        file.write_text("[]")
    else:
        data = json.loads(text)
        key = next(key for key in ("n_left", "merged_left", "n_roots", "sessions") if key in data)
        file.write_text(json.dumps({name: value for name, value in data.items() if name != "crc32"} | {key: 10**20}))
    with pytest.raises(IncompleteError, match=f"{file} .*mend it with: bicliques.resume\\({str(out)!r}\\)$"):
        RunFolder(out).facts(file.stem)
    resumed(out)
    assert bq.status(out).state == "complete"
    assert json.loads(file.read_text()).keys() == json.loads(text).keys()


def test_a_damaged_step_is_not_made_from_another_input(stopped: Path, tmp_path: Path) -> None:
    """Neither the first time nor the second, when the files there are those of the other input."""
    out = tmp_path / "out"
    shutil.copytree(stopped, out)
    header = json.loads((out / "options.json").read_text())
    source = write_edges(tmp_path / "g.parquet", EDGES[:-1])
    rewrite_record(out / "options.json", options=header["options"] | {"source": str(source)})
    file = out / "steps" / "ingest.json"
    file.write_text(file.read_text().replace('"n_left": 3', '"n_left": 1'))
    for _ in range(2):
        with pytest.raises(IncompleteError, match=r"step ingest .* does not give again what it gave"):
            bq.resume(out, workers=0, progress=False, report=False)
    write_edges(source, EDGES)
    resumed(out)


@pytest.mark.values
@pytest.mark.parametrize("command", [*COMMANDS, "resume"])
@pytest.mark.parametrize("damage", ["flipped", "cut", "misspelt", "null"])
def test_damaged_options_give_one_sentence(out, damage, command, capsys):
    file = out / "options.json"
    text = file.read_text()
    data = json.loads(text)
    file.write_text(
        {
            "flipped": text.replace('"min_left": 1', '"min_left": 3'),
            "cut": text[:-9],
            "misspelt": json.dumps(changed(data, ("options", "search", "min_left"), misspell)),
            "null": json.dumps(changed(data, ("options", "search"), put(None))),
        }[damage]
    )
    assert main.main([command, str(out)]) == 1
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith(f"bicliques: {file} ")
    assert "start the run again in another folder" in said


def test_fields_of_a_later_version_are_left_alone(out: Path) -> None:
    (out / "manifest.json").unlink()
    for file in (out / "options.json", *(out / "steps").iterdir(), out / "ledger" / "0.json"):
        rewrite_record(file, later={"x": [1]})
    header = json.loads((out / "options.json").read_text())
    header["options"]["search"]["later"] = 7
    header["options"]["later"] = header["limits"]["later"] = header["origin"]["later"] = "y"
    rewrite_record(out / "options.json", **header)
    assert bq.resume(out, max_results=10**6, workers=0, progress=False, report=False).complete
    kept = json.loads((out / "options.json").read_text())
    assert kept["limits"] == header["limits"] | {"max_results": 10**6}
    assert [kept[key] for key in ("later", "options", "origin")] == [header[k] for k in ("later", "options", "origin")]
    rewrite_record(out / "manifest.json", later=1, options=header["options"])
    assert bq.open_run(out).manifest.count == EXPECTED[0]
    assert main.main(["report", str(out)]) == 0


def test_records_of_an_earlier_version_have_no_checksum(out: Path) -> None:
    for name in (*RECORDS, "ledger/0.json"):
        data = json.loads((out / name).read_text())
        (out / name).write_text(json.dumps({key: value for key, value in data.items() if key != "crc32"}))
    entry = read_json(out / "ledger" / "0.json")
    del entry["stats"]["pieces"]
    (out / "ledger" / "0.json").write_text(json.dumps(with_checksum(entry), indent=1))
    data = read_json(out / "manifest.json")
    (out / "manifest.json").write_text(json.dumps({k: v for k, v in data.items() if k != "compared_rows"}))
    assert bq.open_run(out).manifest.compared_rows == 0
    assert bq.status(out).state == "complete"
    assert steps.run(out, WorkerOptions(workers=0), RunLimits(), False) is None
    assert bq.verify(out, progress=False).count == EXPECTED[0]
    assert main.main(["report", str(out)]) == 0


def test_a_record_is_read_as_it_was_written() -> None:
    data = {"a": 1, "b": {"c": [1.5, None, "é"]}, "left_over": "x" * 1000}
    assert checked(json.loads(json.dumps(with_checksum(data)))) == data
    assert with_checksum(data) == with_checksum(with_checksum(data))
    for changes in ({"a": 2}, {"left_over": "y"}, {"more": 0}, {"crc32": None}):
        with pytest.raises(IncompleteError, match="its checksum is another"):
            checked(with_checksum(data) | changes)
    for one in (data, {"a": 1}):
        line = one_line(one)
        assert json.loads(line) == with_checksum(one)
        assert line.endswith(b"}\n")
        assert line.count(b"\n") == 1


COUNTING = AllMaximal(Search("count"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"took": [[-1, 0]]}, r"took\[0\] is \[-1, 0\], not a list of 3"),
        ({"count": 1.5}, "count is 1.5, not a whole number"),
        ({"parts": [{"name": "p"}]}, r"parts\[0\] has no 'bytes'$"),
        ({"parts": [{"name": "p", "byte": 1}]}, r"parts\[0\] has no 'bytes', but 'byte'$"),
        *(({"parts": [{"name": name, "rows": 1, "bytes": 9}]}, "is not the name of a part") for name in NO_PARTS),
        ({"stats": [1]}, r"stats is \[1\], not an object"),
        ({"fingerprint": 7}, "the fingerprint is 7, not a decimal string"),
        ({"worker": None}, "worker is None, not text"),
        ({"n_left_over": 10**12}, "it promises 1000000000000 left-over nodes and holds 0"),
        ({"left_over": [1]}, "it is damaged"),
    ],
    ids=str,
)
def test_odd_values_of_a_ledger_entry_are_refused(changes: dict[str, Any], words: str) -> None:
    data = json.loads(json.dumps(ledger_entry(0).to_json(b"")))
    with pytest.raises(IncompleteError, match=words):
        LedgerEntry.from_json(data | changes, COUNTING)


def test_a_left_over_of_another_number_of_nodes_is_refused_and_so_is_a_torn_one() -> None:
    three = Subtrees.of_roots(np.array([3, 1, 2])).to_bytes()
    for packed, words in ((three, "it promises 0 left-over nodes and holds 3"), (three[:50], "cannot be read")):
        data = json.loads(json.dumps(ledger_entry(0).to_json(packed)))
        with pytest.raises(IncompleteError, match=words):
            LedgerEntry.from_json(data, COUNTING)


@pytest.mark.parametrize("n_left", [[-1], [2**40], [[1]], 7, [1, 2]], ids=str)
def test_odd_counts_by_size_are_refused(n_left: Any) -> None:
    with pytest.raises(IncompleteError, match="its counts by size are damaged"):
        SizeCounts.from_json({"n_left": n_left, "n_right": [1], "count": [1]})


def test_a_value_that_no_user_could_choose_is_refused() -> None:
    with pytest.raises(IncompleteError, match="max_results must be at least 1, not 0"):
        read_as(RunLimits, {"max_results": 0}, "limits")
    with pytest.raises(IncompleteError, match=r"options\.search\.mode is 'all', not one of count, fingerprint, list"):
        RunOptions.from_json(RunOptions(source="x").to_json() | {"search": vars(Search()) | {"mode": "all"}})


@pytest.mark.parametrize("took", [[[-1, 0, 41]], [[-1, 3, 3]]])
def test_an_entry_that_takes_nodes_that_do_not_exist_is_refused(complete: Path, took: list[list[int]]) -> None:
    """A node behind the end, and no node at all."""
    ledger = load_ledger(complete)
    assert ledger.n_plan == 20
    data = read_json(ledger.file(0)) | {"took": [[-1, 0, ledger.n_plan + 1]] if took[0][2] == 41 else took}
    entry, _ = LedgerEntry.from_json(data, ledger.job)
    reason = Ledger(ledger.folder, ledger.job, ledger.n_plan, {}).problem(entry)
    start, stop = entry.took[0][1:]
    assert reason == f"it took nodes {start} to {stop} of source -1, which has 20"
    with pytest.raises(BicliqueError):
        LedgerEntry.from_json({}, COUNTING)
