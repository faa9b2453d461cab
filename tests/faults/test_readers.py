"""Whoever reads ``bicliques/*.parquet`` sees only rows that count, at every moment of a run, also if it is killed."""

import json
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest

import bicliques as bq
from tests.faults.watching import seen_by_readers
from tests.support.forks import Sweeper, sweeping
from tests.support.runs import answer, manifest_pair, random_edges, write_edges

EDGES = random_edges(40, 30, 0.35, 1)
LESS = EDGES[:-9]


@pytest.fixture(scope="module")
def sweeper() -> Iterator[Sweeper]:
    with sweeping() as process:
        yield process


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two inputs; of the first a run that stopped twice, and the same one complete. So each has several parts."""
    place = tmp_path_factory.mktemp("model")
    quietly: dict[str, Any] = {"workers": 0, "progress": False}
    first, _ = write_edges(place / "g.parquet", EDGES), write_edges(place / "less.parquet", LESS)
    third = answer(EDGES)[0] // 3
    bq.mine(first, place / "stopped", max_results=third, **quietly)
    bq.resume(place / "stopped", max_results=2 * third, **quietly)
    copytree(place / "stopped", place / "complete")
    bq.resume(place / "complete", max_results=None, report=False, **quietly)
    assert len(list((place / "complete" / "bicliques").iterdir())) >= 3
    return place


def damage_entry(out: Path) -> set[str]:
    """Damage an entry of the ledger, as a disk may. Returns the names of its parts, whose slice is mined again."""
    entry = next(file for file in sorted((out / "ledger").iterdir()) if json.loads(file.read_text())["parts"])
    names = {part["name"] for part in json.loads(entry.read_text())["parts"]}
    entry.write_text(entry.read_text()[:-40])
    return names


def prepared(model: Path, place: Path, case: str) -> tuple[list[str], set[str]]:
    """The words of a command in a new folder, and the parts that do not count before it begins."""
    out = place / "below" / "out"
    out.parent.mkdir(parents=True)
    how = ["--workers", "0", "--quiet", "--no-report"]
    go_on = ["resume", str(out), *how, "--max-results", "none"]
    if case == "mine":
        return ["mine", str(model / "g.parquet"), "--output", str(out), *how], set()
    copytree(model / ("stopped" if case in ("resume", "an entry is damaged") else "complete"), out)
    if case == "overwrite":
        return ["mine", str(model / "less.parquet"), "--output", str(out), *how, "--overwrite"], set()
    return go_on, set() if case == "resume" else damage_entry(out)


CASES = ("mine", "resume", "overwrite")
MORE_CASES = ("an entry is damaged", "an entry of a complete run is damaged")


def looks_of(place: Path, damaged: set[str]) -> list[dict[str, Any]]:
    """What was seen. No row was there that does not count, at any moment.

    If the disk has damaged an entry, the rows of its slice are there until the command removes them, which it does
    before it mines the slice again: so no row is there twice.
    """
    looks: list[dict[str, Any]] = [json.loads(line) for line in (place / "seen").read_text().splitlines()]
    for look in looks:
        left = [words for words in look["wrong"] if words.removesuffix(" does not count") not in damaged]
        assert left == [], look["call"]
    return looks


def kills(looks: list[dict[str, Any]], is_last: bool) -> list[int]:
    """The numbers of the first, or of the last, change of each kind that has to do with rows, the ledger or the run."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, look in enumerate(looks, start=1):
        call, _, path = look["call"].partition(" ")
        folder, name = Path(path).parent.name, Path(path).name
        is_lasting = call == "os.rename" or (call in ("os.remove", "os.rmdir") and not name.startswith("."))
        if is_lasting and folder not in ("steps", "summary"):
            found[f"{call} {folder}"].append(number)
    return sorted({numbers[-1 if is_last else 0] for numbers in found.values()})


@pytest.mark.parametrize(
    ("case", "is_last"),
    [
        *((case, False) for case in CASES),
        *(pytest.param(case, True, marks=pytest.mark.exhaustive) for case in CASES),
        *(pytest.param(case, False, marks=pytest.mark.exhaustive) for case in MORE_CASES),
    ],
)
def test_rows_count_before_every_change_of_a_file_and_after_a_kill_there(sweeper, model, tmp_path, case, is_last):
    """It is killed in the place of the first, or of the last, change of each kind, and goes on."""
    words, damaged = prepared(model, tmp_path / "whole", case)
    out = tmp_path / "whole" / "below" / "out"
    assert sweeper.run(tmp_path / "whole", words, watched=out) == 0, (tmp_path / "whole" / "err").read_text()
    looks = looks_of(tmp_path / "whole", damaged)
    assert len({look["files"] for look in looks}) > 1, "it looked while parts came and went"
    assert seen_by_readers(out)[1] == []
    expected = answer(LESS if case == "overwrite" else EDGES)
    assert manifest_pair(out) == expected
    chosen = kills(looks, is_last)
    assert len(chosen) >= 4
    for at in chosen:
        place = tmp_path / str(at)
        words, damaged = prepared(model, place, case)
        out = place / "below" / "out"
        code = sweeper.run(place, words, watched=out, killed_at=at)
        if len(looks_of(place, damaged)) < at:  # slices end by the clock, and so fewer files may have been written
            assert code == 0
            continue
        assert code == -signal.SIGKILL, (place / "err").read_text()
        assert set(seen_by_readers(out)[1]) <= {f"{name} does not count" for name in damaged}
        if (out / "options.json").exists():
            words = ["resume", str(out), "--workers", "0", "--quiet", "--no-report", "--max-results", "none"]
        assert sweeper.run(place, words, watched=out) == 0, (place / "err").read_text()
        looks_of(place, damaged)
        assert seen_by_readers(out)[1] == []
        assert manifest_pair(out) in (expected, answer(EDGES))
        rmtree(place)
