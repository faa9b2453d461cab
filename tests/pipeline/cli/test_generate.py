"""The command ``bicliques generate``."""

import json

import pytest

import bicliques as bq
from bicliques.pipeline.cli import main

GRAPH = "--n-left 300 --n-right 200 --edges 3000 --seed 1 --plant 9x12 --plant 20x5".split()


def test_it_writes_a_graph_that_can_be_mined(tmp_path, capsys):
    place = tmp_path / "a graph"
    assert main.main(["generate", *GRAPH, "--output", str(place), "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "3,000 edges in 1 file\n" in said.out
    assert "planted: 9 x 12, 108 edges" in said.out
    assert f"bicliques mine '{place}' --output OUT" in said.out
    same = bq.generate(tmp_path / "h", n_left=300, n_right=200, edges=3000, seed=1, plant=[(9, 12), (20, 5)])
    assert f"fingerprint: {same.fingerprint}" in said.out
    assert main.main(["count", str(place), "--min-left", "9", "--min-right", "12", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["count"] == 1


def test_all_options_reach_the_graph(tmp_path, capsys):
    options = (
        "--left-exponent 2.1 --right-exponent 3 --max-left-degree 90 --max-right-degree 80 --noise 0.2 --labels text"
    )
    words = [
        *GRAPH,
        *options.split(),
        "--part-edges",
        "700",
        "--threads",
        "2",
        "--output",
        str(tmp_path / "g"),
        "--json",
    ]
    assert main.main(["generate", *words, "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["options"] == {
        "n_left": 300,
        "n_right": 200,
        "edges": 3000,
        "left_exponent": "2.1",
        "right_exponent": "3",
        "max_left_degree": 90,
        "max_right_degree": 80,
        "plant": [[9, 12], [20, 5]],
        "noise": "0.2",
        "labels": "text",
        "seed": 1,
        "part_edges": 700,
    }


def test_a_dry_run_writes_nothing(tmp_path, capsys):
    place = tmp_path / "g"
    words = "generate --n-left 20000000 --n-right 20000000 --edges 1000000000 --threads 16 --dry-run --output".split()
    assert main.main([*words, str(place)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "would draw 1,000,000,000 edges into 239 files"
    assert [line.partition(":")[0] for line in lines[1:]] == ["disk", "memory", "time"]
    assert main.main([*words, str(place), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["edges"], found["parts"], found["threads"]) == (10**9, 239, 16)
    assert not place.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (GRAPH, "needs a folder; name it with --output"),
        ([*GRAPH, "--plant", "3", "--dry-run"], "'3' is not of the form 60x40"),
        ([*GRAPH, "--edges", "60001", "--dry-run"], "have room for"),
        ([*GRAPH, "--part-edges", "0", "--dry-run"], "--part-edges is 0; it has to be at least 1"),
        ([*GRAPH, "--threads", "-5", "--dry-run"], "--threads is -5; it has to be at least 1"),
        ([*GRAPH, "--labels", "bytes", "--dry-run"], "--labels must be one of integers, text, not 'bytes'"),
        ([*GRAPH, "--output", "s3://lake/g"], "s3://lake/g is a URL, and results are written to this machine"),
    ],
)
def test_errors_are_one_sentence(words, says, capsys):
    assert main.main(["generate", *words]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
