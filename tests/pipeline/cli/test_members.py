"""Given members on the command line: several labels, labels of files, runs as SOURCE, sentences and exit codes."""

import json

import pytest

import bicliques as bq
from tests.support.commands import run
from tests.support.runs import OWN, random_edges

EDGES = random_edges(20, 14, 0.45, 3)
#: A right vertex that is joined to the left ones 5 and 8.
RIGHT = 8
ALONE = ("--workers", "0", "--quiet")


def test_labels_may_be_given_one_by_one_together_and_in_files(source, tmp_path, capsys):
    expected = bq.count(source, containing_left=[5, 8], containing_right=[RIGHT], **OWN)
    assert expected.count > 0
    (tmp_path / "right.txt").write_text(f"{RIGHT}\n")
    right = ("--containing-right-from", tmp_path / "right.txt")
    for left in (["--containing-left", "5", "8"], ["--containing-left", "5", "--containing-left=8"]):
        code, output, _ = run(capsys, "count", source, *left, *right, "--json", *ALONE)
        assert (code, json.loads(output)["count"]) == (0, expected.count)
        assert json.loads(output)["options"]["search"]["containing_left"] == ["5", "8"]
    assert run(capsys, "mine", source, "-o", tmp_path / "out", *left, *right, *ALONE)[0] == 0
    code, output, _ = run(capsys, "count", tmp_path / "out", *left, *right, *ALONE)
    assert (code, output.splitlines()[0]) == (0, f"bicliques: {expected.count}")
    assert f"only with: on the left '5' and '8', on the right {str(RIGHT)!r}" in output
    code, output, _ = run(capsys, "mine", tmp_path / "out", "--dry-run", *left, "--workers", "0", "--quiet")
    assert code == 0


def test_none_is_an_answer_with_a_reason(source, tmp_path, capsys):
    u, v = next((u, v) for u in range(20) for v in range(14) if [u, v] not in EDGES.tolist())
    words = ("--containing-left", str(3 * u + 5), "--containing-right", str(7 * v + 1))
    reason = f"none: left {3 * u + 5} and right {7 * v + 1} are not joined by an edge"
    for command in (("count",), ("mine", "--output", tmp_path / "out"), ("mine", "--dry-run")):
        code, output, error = run(capsys, command[0], source, *words, *command[1:], *ALONE)
        assert (code, error) == (0, "")
        assert f"bicliques: {reason}\n" in f"{output}\n"
    assert (tmp_path / "out" / "manifest.json").exists()
    code, output, _ = run(capsys, "count", source, "--min-left", "14", "--containing-right", "1", *ALONE)
    assert (code, output.splitlines()[0][:15]) == (0, "bicliques: none")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--containing-left", "6"], "has the label '6'; near it are 5, 8; correct --containing-left"),
        (["--containing-left", "1"], "'1' is a right label (item) of"),
        (["--containing-left=-x"], "'-x' is none; correct --containing-left"),
        (["--containing-left"], "expected at least one argument"),
        (["--containing-right-from", "nowhere"], "nowhere cannot be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_labels_are_one_sentence_and_nothing_is_written(source, tmp_path, capsys, words, sentence):
    code, output, error = run(capsys, "mine", source, "--output", tmp_path / "out", *words, "--quiet")
    assert (code, output) == (2, "")
    assert sentence in error
    assert error.startswith("bicliques: ")
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
    assert run(capsys, "count", source, *words, *ALONE)[0] == 2
