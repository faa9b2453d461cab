"""The command line: words, exit codes, one sentence an error, nothing written on bad input."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import bicliques as bq
from bicliques.pipeline.cli.commands import parser
from tests.support.commands import run
from tests.support.runs import ROOT, answer, bicliques, environment, manifest_pair, random_edges

EDGES = random_edges(40, 30, 0.3, 4)
ALONE = ("--workers", "0", "--quiet")


def test_no_arguments_print_help(capsys):
    code, output, error = run(capsys)
    assert (code, error) == (0, "")
    for word in ("mine", "count", "resume", "verify", "show", "formats", "demo", "exit codes", "130"):
        assert word in output


def test_the_module_and_the_script_are_the_same_program():
    ended = bicliques("formats")
    assert ended.returncode == 0
    assert "matrix-market" in ended.stdout
    assert "reference" in ended.stdout
    assert "https://, s3://, gs:// and others" in ended.stdout
    assert 'bicliques = "bicliques:program"' in (ROOT / "pyproject.toml").read_text()


def test_every_option_has_help_with_its_default():
    commands = parser()._subparsers._group_actions[0].choices
    for name, command in commands.items():
        for action in command._actions:
            if action.option_strings and action.dest not in ("help", "output", "dry_run", "count_only"):
                assert action.help, f"{name} {action.option_strings}"
                assert "default" in action.help or action.nargs == 0 or action.required, (
                    f"{name} {action.option_strings}: {action.help}"
                )


def test_what_is_written_is_named_in_the_same_two_ways_everywhere():
    commands = parser()._subparsers._group_actions[0].choices
    named = [action.option_strings for command in commands.values() for action in command._actions]
    assert [names for names in named if "--output" in names] == 9 * [["-o", "--output"]]


def test_mine_show_verify(capsys, source, tmp_path):
    out = tmp_path / "out"
    code, output, error = run(capsys, "mine", source, "-o", out, *ALONE)
    assert (code, error) == (0, "")
    count, fingerprint = answer(EDGES)
    assert f"bicliques: {count:,}, all of them" in output
    assert f"fingerprint: {fingerprint} (the same from Parquet)" in output
    code, output, _ = run(capsys, "show", out, "--top", "3", "--by", "balance")
    assert code == 0
    assert len(output.splitlines()) == 4
    everything = json.loads(run(capsys, "show", out, "--json", "--top", "9999")[1])
    left, right = everything[5]["left"][:2], everything[5]["right"][:1]
    members = ("--containing-left", *left, "--containing-right", *right)
    _, output, _ = run(capsys, "show", out, "--json", "--top", "3", *members)
    own = [row for row in everything if {*left} <= {*row["left"]} and {*right} <= {*row["right"]}]
    assert json.loads(output) == own[:3]
    code, output, _ = run(capsys, "verify", out, "--quiet")
    assert code == 0
    assert "no two rows are equal" in output
    assert "not proven" in output


@pytest.mark.parametrize("limit", [(), ("--max-results", "3")])
def test_status_gives_numbers_to_prometheus(capsys, tmp_path, limit):
    (tmp_path / 'a"\\b').mkdir()
    source, out = tmp_path / 'a"\\b' / "g\n.tsv", tmp_path / 'a"\\b' / "out"
    source.write_text("".join(f"{u}\t{v}\n" for u, v in EDGES))
    run(capsys, "mine", source, "-o", out, *ALONE, *limit)
    _, text, _ = run(capsys, "status", out, "--openmetrics")
    samples = {
        (sample.name.removeprefix("bicliques_"), sample.labels.pop("state", None)): (sample.value, sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    known = bq.status(out)
    assert samples["run", None] == (1, {"folder": str(out), "source": str(source)})
    assert samples["found", None] == (known.count, {"folder": str(out)})
    assert samples["part_bytes", None][0] == known.bytes > 0
    assert samples["mined_ratio", None][0] == known.share
    assert samples["mining_seconds", None][0] == known.mining_seconds
    assert samples["last_slice_timestamp_seconds", None][0] == known.workers[0].last_seen
    assert [state for (name, state), (value, _) in samples.items() if name == "state" and value] == [known.state]
    assert known.state == ("stopped" if limit else "complete")


def test_labels_cannot_spoil_the_terminal(capsys, tmp_path):
    source, out = tmp_path / "g.parquet", tmp_path / "out"
    pq.write_table(pa.table({"user": ["a\nb", "\x1b[2J"], "item": ["milk", "Käse"]}), source)
    run(capsys, "mine", source, "-o", out, *ALONE)
    _, output, _ = run(capsys, "show", out)
    assert len(output.splitlines()) == 3
    assert r"{'a\nb'} x {milk}" in output
    assert r"{'\x1b[2J'} x {Käse}" in output


def test_json_is_for_machines(capsys, source, tmp_path):
    out = tmp_path / "out"
    count, fingerprint = answer(EDGES)

    def read(*words: str | Path):
        code, output, _ = run(capsys, *words, "--json")
        assert code == 0
        return json.loads(output)

    mined = read("mine", source, "-o", out, *ALONE)
    assert (mined["count"], mined["fingerprint"], mined["complete"]) == (count, str(fingerprint), True)
    counted = read("count", source, "--fingerprint", *ALONE)
    assert (counted["count"], counted["fingerprint"], counted["outcome"]) == (count, str(fingerprint), "complete")
    rows = read("show", out, "--top", "2")
    assert rows[0]["n_left"] * rows[0]["n_right"] >= rows[1]["n_left"] * rows[1]["n_right"]
    assert read("verify", out, "--quiet")["count"] == count
    assert read("formats")["engines"]["cpu"] is None
    dry = read("mine", source, "--dry-run", "--sample-time", "0.5", "--quiet")
    assert dry["estimate"]["bicliques"]["low"] <= count <= dry["estimate"]["bicliques"]["high"]


def test_limits_end_with_3_and_say_how_to_go_on(capsys, source, tmp_path):
    out = tmp_path / "out"
    code, output, error = run(capsys, "mine", source, "-o", out, "--max-results", "7", *ALONE)
    assert code == 3
    assert "7 so far; not complete: the limit on the number of results was reached" in output
    assert error == f"bicliques: not complete; go on with: bicliques resume {out} --max-results none\n"
    assert f"bicliques resume {out} --max-results none\n" in output
    assert run(capsys, "resume", out, *ALONE)[0] == 3
    assert run(capsys, "resume", out, "--max-results", "none", *ALONE)[0] == 0
    assert manifest_pair(out) == answer(EDGES)
    code, output, _ = run(capsys, "count", source, "--max-results", "7", *ALONE)
    assert code == 3
    assert "at least 7" in output


def test_a_result_that_cannot_be_printed_is_a_failure_in_one_sentence():
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "bicliques", "formats"],
            cwd=ROOT,
            env=environment(),
            stdout=full,
            stderr=-1,
            text=True,
        )
    assert ended.returncode == 1
    assert re.fullmatch(r"bicliques: [^\n]+ \(No space left on device\); make room[^\n]+\n", ended.stderr)


def test_a_dry_run_touches_nothing(capsys, source, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    code, output, _ = run(
        capsys, "mine", source, "-o", tmp_path / "out", "--dry-run", "--sample-time", "0.5", "--quiet"
    )
    assert code == 0
    for word in (
        "degrees left",
        "root side",
        "plan",
        "memory: reading and building took",
        "output: about",
        "time: <1 s for ",
    ):
        assert word in output
    assert sorted(tmp_path.rglob("*")) == before


def test_progress_goes_to_stderr_in_plain_lines(capsys, source, tmp_path):
    _, output, error = run(capsys, "mine", source, "-o", tmp_path / "out", "--workers", "0")
    assert "% of the work" in error
    assert "\r" not in error
    assert "% of the work" not in output


BAD = {
    "not an edge list": (["mine", "words.csv", "-o", "OUT"], "column"),
    "output not empty": (["mine", "SOURCE", "-o", "full"], "is not empty; name another one"),
    "name too long": (["mine", "x" * 300, "-o", "OUT"], "cannot be opened (File name too long)"),
    "output name too long": (["mine", "SOURCE", "-o", "a/" + "x" * 300], "cannot be made (File name too long)"),
    "output name with a NUL": (["mine", "SOURCE", "-o", "a\0b"], "cannot be made (embedded null byte)"),
    "output where nobody writes": (
        ["mine", "SOURCE", "-o", "/proc/out"],
        "cannot be made (nothing can be made in /proc)",
    ),
    "nearly a command": (["mnie", "SOURCE"], "there is no command 'mnie' (did you mean mine?); see: bicliques --help"),
    "run with a long name": (["resume", "x" * 300], "is not the folder of a run"),
    "unknown option": (["mine", "SOURCE", "-o", "OUT", "--fast"], "unrecognized arguments: --fast"),
    "results beyond counting": (["mine", "SOURCE", "-o", "OUT", "--max-results", str(2**63)], "at most 2**63 - 1"),
    "threshold of a half": (
        ["mine", "SOURCE", "--dry-run", "--min-left", "2.5"],
        "--min-left must be a whole number, not '2.5'",
    ),
    "time not a number": (["count", "SOURCE", "--time-limit", "5m"], "--time-limit must be a number, not '5m'"),
    "seed not a number": (["verify", "full", "--seed", "x"], "--seed must be a whole number of 0 or more, not 'x'"),
    "nowhere to count": (["count", "SOURCE", "--folder", "gone"], "be put into gone (No such file or directory)"),
    "negative seed": (["verify", "full", "--seed", "-1"], "-1 is less than 0"),
    "resume nothing": (["resume", "OUT"], "OUT is not the folder of a run: it does not exist; check its name"),
    "verify nothing": (["verify", "full"], "is not the folder of a run: it has no options.json"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_exit_code_2_and_nothing_written(name, capsys, source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words.csv").write_text("only one column\n1\n2\n")
    Path("full").mkdir()
    Path("full/letter.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    words, expected = BAD[name]
    code, output, error = run(capsys, *(str(source) if word == "SOURCE" else word for word in words), *progress(words))
    assert (code, output) == (2, "")
    assert re.fullmatch(r"bicliques: [^\n]+\n", error), error
    assert expected in error
    assert sorted(tmp_path.rglob("*")) == before


def progress(words: list[str]) -> list[str]:
    return ["--quiet"] if words[0] in ("mine", "count", "resume", "verify") else []


def test_how_to_go_on_can_be_pasted_into_a_shell(capsys, source, tmp_path):
    out = tmp_path / "it's my run; $HOME 100 %"
    code, output, error = run(capsys, "mine", source, "-o", out, "--max-results", "7", *ALONE)
    assert code == 3
    for text in (output, error, run(capsys, "verify", out, "--quiet")[2], run(capsys, "status", out)[1]):
        command = text.partition("bicliques resume ")[2].splitlines()[0]
        assert shlex.split(command)[0] == str(out), text


def test_an_empty_output_folder_stays_when_the_input_is_bad(capsys, tmp_path):
    (tmp_path / "out").mkdir()
    assert run(capsys, "mine", "nothing.csv", "-o", tmp_path / "out", *ALONE)[0] == 2
    assert list((tmp_path / "out").iterdir()) == []


def test_folders_made_for_a_run_that_did_not_begin_are_removed(capsys, tmp_path):
    assert run(capsys, "mine", "nothing.csv", "-o", tmp_path / "a" / "b" / "c", *ALONE)[0] == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_mine_refuses_a_folder_that_it_may_not_write(capsys, source, tmp_path):
    (tmp_path / "out").mkdir(mode=0o500)
    code, _, error = run(capsys, "mine", source, "-o", tmp_path / "out", *ALONE)
    assert code == 2
    assert "is not writable" in error


def test_failure_is_exit_code_1(capsys, source, tmp_path):
    out = tmp_path / "out"
    run(capsys, "mine", source, "-o", out, *ALONE)
    part = next((out / "bicliques").iterdir())
    part.write_bytes(part.read_bytes()[:-1])
    code, output, error = run(capsys, "verify", out, "--quiet")
    assert (code, output) == (1, "")
    assert re.fullmatch(r"bicliques: [^\n]+\n", error)
    assert part.name in error


def test_a_run_that_is_not_complete_is_not_verified(capsys, source, tmp_path):
    out = tmp_path / "out"
    run(capsys, "mine", source, "-o", out, "--max-results", "5", *ALONE)
    code, _, error = run(capsys, "verify", out, "--quiet")
    assert code == 1
    assert f"continue with: bicliques resume {out}" in error
    assert run(capsys, "show", out)[0] == 0
