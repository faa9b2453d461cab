"""New counts are recorded only if every search of a graph has found the same."""

import json
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from benchmarks import counts
from bicliques.schemas.errors import InputError, ResourceError
from tests.support.runs import QUIET, random_edges, write_edges


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of one graph, from both root sides."""
    folder = tmp_path_factory.mktemp("counts")
    source = write_edges(folder / "graph.parquet", random_edges(12, 9, 0.4, 1))
    wanted = {"count_only": True, "engine": "reference", **QUIET}
    return [bq.mine(source, folder / side, root_side=side, **wanted).path for side in ("left", "right")]


def manifest(run: Path) -> dict[str, Any]:
    return json.loads((run / "manifest.json").read_text())


def test_runs_of_a_graph_are_recorded_together_and_once(runs, tmp_path, capsys):
    file = tmp_path / "counts.json"
    for _ in range(2):
        counts.main([*map(str, runs), "--machine", "here", "--output", str(file)])
    [(name, entry)] = json.loads(file.read_text()).items()
    assert name == "graph"
    assert entry["bicliques"] == manifest(runs[0])["count"] > 1
    assert [one["root_side"] for one in entry["runs"]] == ["left", "right"]
    capsys.readouterr()
    counts.main(["--table", str(file)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[2].startswith(
        f"| graph | {entry['edges']} | {entry['bicliques']} | {entry['fingerprint']} | `reference`"
    )
    assert lines[3].startswith("| | | | | `reference`, right roots | here, ")


@pytest.mark.parametrize("source", ["x/shape (1 file)", "x/shape (1,024 files)", "x/shape.parquet"])
def test_a_graph_is_called_as_its_file_or_folder(source, runs):
    one = manifest(runs[0])
    assert list(counts.added({}, one | {"input": one["input"] | {"source": source}}, "here", "c0ffee")) == ["shape"]


@pytest.mark.parametrize("what", ["count", "fingerprint"])
def test_a_search_that_found_something_else_is_refused(what, runs):
    first, second = map(manifest, runs)
    recorded = counts.added({}, first, "here", "c0ffee")
    with pytest.raises(ResourceError, match="of graph: reference found 7, and recorded is"):
        counts.added(recorded, second | {what: 7}, "here", "c0ffee")


def test_another_graph_of_the_same_name_is_refused(runs):
    first, second = map(manifest, runs)
    other = second | {"input": second["input"] | {"digest": "0"}}
    with pytest.raises(InputError, match="another graph"):
        counts.added(counts.added({}, first, "here", "c0ffee"), other, "here", "c0ffee")


@pytest.mark.parametrize(
    ("option", "value"), [("min_left", 2), ("max_right", 5), ("largest", 1), ("containing_left", [1])]
)
def test_a_run_with_bounds_is_refused(option, value, runs):
    one = manifest(runs[0])
    search = one["options"]["search"] | {option: value}
    with pytest.raises(InputError, match="without thresholds"):
        counts.added({}, one | {"options": one["options"] | {"search": search}}, "here", "c0ffee")


def test_runs_and_their_machine_must_be_named(runs):
    for words in ([], [str(runs[0])], ["--machine", "here"]):
        with pytest.raises(InputError, match="--machine TEXT"):
            counts.main(words)


def test_recorded_graphs_were_counted_at_least_twice():
    for name, entry in json.loads(counts.RESULT.read_text()).items():
        found_by = {(one["engine"], one["root_side"]) for one in entry["runs"]}
        assert len(found_by) > 1, name
