"""The benchmarks run for a stranger, on any graph, beside any program, and write nothing that nobody asked for."""

import importlib
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks import commands, cpu, facts
from benchmarks.command import output_file, run
from benchmarks.rivals import KNOWN, named
from benchmarks.runs import Bounds, Edges, read
from bicliques.schemas.errors import InputError, ResourceError
from tests.house.tree import ROOT

MODULES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))
PROGRAMS = [name for name in MODULES if "__main__" in (ROOT / f"benchmarks/{name}.py").read_text()]

#: What the programs print, of the same graph. The last two as their sources have it, the others as they did.
SAID = {
    "AdaMBE": "graph, AdaMBEFinder, 0.000829, 4.852000, 460, 757, 64",
    "ParAdaMBE": "task:0\n0\ngraph, ParAdaMBEFinder, 0.000829, 5.100000, 460, 757, 64, 2",
    "ooMBEA": "graph, ooMBEAFinder, 0.000829, 3.872000, 460, 1568, 4, 1.582609",
    "MBET": "[DBG] cnt=0 time=0.0002\n[Run-1] cnt=460 , time: 8.29e-04\n[Average(1)] avg_time: 1",
    "GMBE": "Graph load time: 0.001525 s\nTotal processing time: 0.000829 seconds\nmaximal nodes:460\n",
    "cuMBE": "|R|: 254, |L|: 614, |E|: 1255\nmaximal bicliques: 460\ntime percentage: 1.0 2.0\nruntime (s): 0.000829\n",
    "LCM": "460\n0\n25\n",
}


def contents() -> dict[Path, tuple[int, int]]:
    """When the files that benchmarks could write were last changed, and their sizes."""
    files = [path for folder in ("benchmarks", "docs") for path in (ROOT / folder).rglob("*") if path.is_file()]
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in files if "__pycache__" not in path.parts}


def module(name: str):
    return importlib.import_module(f"benchmarks.{name}")


def program(folder: Path, said: str) -> Path:
    """A program that prints its arguments and then `said`."""
    file = folder / "program"
    file.write_text(f"#!/bin/sh\necho \"called with $*\"\ncat <<'END'\n{said}\nEND\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_of_a_benchmark_only_helps(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = contents()
    with pytest.raises(SystemExit) as ended:
        module(name).main(["--help"])
    assert ended.value.code == 0
    assert f"usage: python -m benchmarks.{name}" in capsys.readouterr().out
    assert (contents(), list(tmp_path.iterdir())) == (before, [])


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_has_a_parser_and_a_main_or_does_nothing(name):
    has = {what for what in ("parser", "main") if hasattr(module(name), what)}
    assert has == ({"parser", "main"} if name in PROGRAMS else set())
    assert (name not in PROGRAMS) or "    run(main)\n" in (ROOT / f"benchmarks/{name}.py").read_text()


@pytest.mark.parametrize("name", ["tables", "gpu_tables"])
def test_pages_are_written_only_when_that_is_asked_for(name, capsys):
    before = contents()
    with pytest.raises(SystemExit) as ended:
        module(name).main([])
    assert ended.value.code == 2
    assert "--write --check is required" in capsys.readouterr().err
    module(name).main(["--check"])  # the numbers of the pages are what was recorded
    assert contents() == before


@pytest.mark.parametrize(
    "name", [name for name in PROGRAMS if name not in ("tables", "gpu_tables", "cumbe", "one_hot")]
)
def test_recorded_numbers_are_overwritten_only_when_that_is_asked_for(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {"simulate": ["run"]}.get(name, [])
    words = module(name).parser().parse_args(before)
    assert output_file(words, name).absolute().parent == tmp_path
    words = module(name).parser().parse_args([*before, "--record"])
    assert output_file(words, name).parent == facts.FOLDER
    with pytest.raises(SystemExit):
        module(name).parser().parse_args([*before, "--record", "--output", "x.json"])


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "--repeats" in module(name).parser().format_help()])
def test_nothing_is_measured_zero_times(name, capsys):
    assert module(name).parser().parse_args(["--repeats", "1"]).repeats == 1
    for said in ("0", "-1", "x"):
        with pytest.raises(SystemExit):
            module(name).parser().parse_args([f"--repeats={said}"])
        assert "argument --repeats: " in capsys.readouterr().err


def test_the_benchmark_runs_as_printed_without_any_data(tmp_path, monkeypatch, capsys):
    """On the graphs that ship, which is all that a clone has."""
    monkeypatch.chdir(tmp_path)
    before = contents()
    cpu.main(["--data", str(tmp_path), "--repeats", "1"])
    assert contents() == before
    [file] = tmp_path.iterdir()
    recorded = json.loads(file.read_text())
    counts = {name: entry["bicliques"] for name, entry in recorded["graphs"].items()}
    assert counts == {name: facts.GOLDEN[name] for name in facts.shipped()}
    said = capsys.readouterr().out
    assert f"numbers: {file.name}" in said
    assert "| debian12_package_tag | 112,118 | 56,688 | " in said
    cpu.main(["--table", str(file)])
    assert capsys.readouterr().out in said


@pytest.mark.parametrize("name", KNOWN)
def test_known_programs_need_only_their_place(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = program(tmp_path, SAID[name])
    cpu.main(["unicode_languages", "--repeats", "2", "--rival", f"{name}={file}", "--output", "numbers.json"])
    entry = json.loads((tmp_path / "numbers.json").read_text())["graphs"]["unicode_languages"]
    assert (entry["edges"], entry["bicliques"], len(entry["all_s"]["rival"])) == (1255, 460, 2)
    assert entry["rival_s"] == 0.000829 if name != "LCM" else 0 < entry["rival_s"] < 60  # of the processor
    assert f"| {name}, s | / search | / both |" in capsys.readouterr().out


@pytest.mark.exhaustive
def test_whole_commands_are_timed_with_their_steps(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = program(tmp_path, SAID["AdaMBE"])
    commands.main(
        ["unicode_languages", "--repeats", "1", "--rival", f"AdaMBE={file}", "--output", str(tmp_path / "numbers.json")]
    )
    [(kind, recorded)] = json.loads((tmp_path / "numbers.json").read_text()).items()
    assert kind == f"{os.cpu_count()} cores"
    assert recorded["commands"].keys() == {"--version", "--help"}
    found = recorded["graphs"]["unicode_languages"]["commands"]
    assert found.keys() == {"count", "mine --no-report", "mine", "verify", "AdaMBE"}
    for name, entry in found.items():
        assert (
            entry["seconds"] == entry["all_seconds"][0] == pytest.approx(sum(entry["steps"].values()) + entry["rest"])
        )
        assert (name == "AdaMBE") == ("both" in entry)
        page = ["report"] if name == "mine" else []
        steps = ["startup", "ingest", "build", "plan", "mine", "prove", *page, "end"]
        steps = {"AdaMBE": ["search"], "verify": ["verify", "end"]}.get(name, steps)
        assert list(entry["steps"]) == steps
        assert name in ("AdaMBE", "verify") or entry["rest"] < 0.25 * entry["seconds"], "most of the time is explained"
    said = capsys.readouterr().out
    assert "| mine --no-report, unicode_languages | " in said
    commands.main(["--table", str(tmp_path / "numbers.json")])
    assert capsys.readouterr().out in said


@pytest.mark.parametrize(
    ("known", "said"),
    [(3, "count counts 2 .* in mine, not 3"), (None, "AdaMBE from the left side counts 460 .*, not 2")],
)
@pytest.mark.first(1)
def test_a_program_that_counts_something_else_is_named(known, said, tmp_path):
    """The rival, too, where nobody knows the count."""
    source = tmp_path / "mine.csv"
    source.write_text("ann,x\nann,y\nbob,x\n")
    rival = named(f"AdaMBE={program(tmp_path, SAID['AdaMBE'])}", None, None, 60)
    graph = facts.Graph("mine", source, known)
    with pytest.raises(ResourceError, match=said):
        commands.of_graph(graph, read(source), 1, [rival], ["count"])


def test_a_command_that_fails_is_shown_with_what_it_said(tmp_path):
    with pytest.raises(ResourceError, match=r"ended with 2: bicliques: .*nothing.csv does not exist"):
        commands.command(["count", str(tmp_path / "nothing.csv"), "--json", "--quiet"])


def test_any_program_and_any_graph_can_be_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("ann,x\nann,y\nbob,x\n")
    file = program(tmp_path, "2 found in 1.5 s")
    rival = [
        "--rival",
        f"other={file}",
        "--arguments",
        "{edges}",
        "--pattern",
        r"(?P<count>\d+) found in (?P<seconds>\S+)",
    ]
    cpu.main(["mine.csv", "--no-header", "--repeats", "1", *rival])
    assert "| mine | 3 | 2 | " in capsys.readouterr().out
    cpu.main(["mine.csv", "--no-header", "--repeats", "1", "--count", "2"])
    with pytest.raises(ResourceError, match="counts 2 maximal bicliques in mine, not 3"):
        cpu.main(["mine.csv", "--no-header", "--repeats", "1", "--count", "3"])
    cpu.main(["mine.csv@2x1", "mine.csv", "--no-header", "--repeats", "1", "--output", "least.json"])
    found = json.loads((tmp_path / "least.json").read_text())["graphs"]
    assert {name: entry["bicliques"] for name, entry in found.items()} == {"mine@2x1": 1, "mine": 2}
    with pytest.raises(InputError, match="--count is that of one graph, and 2 are to be measured"):
        cpu.main(["mine.csv", "crowns", "--count", "3"])


def test_a_file_that_is_called_like_a_known_graph_has_no_known_count(tmp_path):
    (tmp_path / "crowns.csv").write_text("a,b\n1,2\n")
    assert facts.find(str(tmp_path / "crowns.csv")).known is None
    assert facts.find("crowns").known == facts.find(str(facts.find("crowns").path)).known == 21766
    with pytest.raises(InputError, match=r"nothing is no file, and there is no nothing\.parquet in"):
        facts.find("nothing")


def test_output_that_does_not_match_is_shown_instead_of_a_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rival = f"AdaMBE={program(tmp_path, 'count 6 after 7 seconds')}"
    with pytest.raises(ResourceError, match="AdaMBE said nothing like ") as told:
        cpu.main(["unicode_languages", "--repeats", "1", "--rival", rival])
    assert str(told.value).splitlines()[1:] == ["  called with -i graph.adj -s 7", "  count 6 after 7 seconds"]
    assert "counts" not in str(told.value)
    rival = f"AdaMBE={program(tmp_path, SAID['AdaMBE'] + chr(10) + 'END' + chr(10) + 'exit 3' + chr(10) + ': <<END')}"
    with pytest.raises(ResourceError, match=r"AdaMBE ended with 3; the end of its output:\n.*called with"):
        cpu.main(["unicode_languages", "--repeats", "1", "--rival", rival])


def test_counts_that_differ_are_both_named_with_the_pattern(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rival = f"AdaMBE={program(tmp_path, SAID['AdaMBE'].replace('460', '461'))}"
    said = r"AdaMBE counts 461 maximal bicliques in unicode_languages, this program 460, .*by the pattern '.*Finder"
    with pytest.raises(ResourceError, match=said):
        cpu.main(["unicode_languages", "--repeats", "1", "--rival", rival])


@pytest.mark.parametrize(
    ("word", "arguments", "pattern", "said"),
    [
        ("AdaMBE", None, None, "--rival is NAME=PROGRAM"),
        ("AdaMBE=/not/there", None, None, "there is no program /not/there"),
        ("new=sh", None, None, "nothing is known of a program new"),
        ("new=sh", "{graph}", "x", "must name a file of the graph"),
        ("new=sh", "-i 'graph", "x", "cannot be read: No closing quotation"),
        ("AdaMBE=sh", None, "(?P<count>", "is no regular expression"),
        ("AdaMBE=sh", None, r"(?P<count>\d+)", "must have the groups"),
    ],
)
def test_a_program_that_cannot_be_called_is_refused_in_a_sentence(word, arguments, pattern, said):
    with pytest.raises(InputError) as told:
        named(word, arguments, pattern, 1.0)
    assert said in str(told.value)


def test_a_program_gets_the_graph_in_the_form_that_it_reads(tmp_path):
    left, right = np.array([[0, 1], [0, 2], [1, 1], [2, 0], [2, 2]], np.int32).T
    arguments = "{adjacency} {edges} {csr} {threads} {min_left} {min_right}"
    rival = named("all=sh", arguments, "(?P<count>)(?P<seconds>)", 1.0)
    command = rival.prepare(Edges(left, right, 3, 3), tmp_path, Bounds(4, 2))
    assert command[1:4] == ["graph.adj", "graph.txt", "graph.bi"]
    assert command[5:] == ["4", "2"]
    assert int(command[4]) >= 2  # with one thread ParAdaMBE waits for ever
    assert (tmp_path / "graph.adj").read_text() == "1 2\n1\n0 2\n"
    assert (tmp_path / "graph.txt").read_text() == "0 1\n0 2\n1 1\n2 0\n2 2\n"
    assert (tmp_path / "graph.bi").read_text().split("\n")[:5] == ["3 3 5", "0 2", "2 1", "3 2", "1 1"]


def test_a_program_that_never_ends_is_given_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rival = ["--rival", "slow=sleep", "--arguments", "60 # {edges}", "--pattern", "(?P<count>)(?P<seconds>)"]
    (tmp_path / "sleep").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "sleep").chmod(0o755)
    with pytest.raises(ResourceError, match=r"slow took more than 0.1 s; give it more with --limit"):
        cpu.main(["unicode_languages", "--repeats", "1", *rival, "--limit", "0.1"])


@pytest.mark.parametrize("name", ["gpu", "gpu_ingest", "gpu_power", "gpu_scaling", "gpu_write"])
def test_without_the_tool_of_the_driver_a_gpu_is_missed_in_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shutil.which", lambda tool: None)
    with pytest.raises(ResourceError, match="nvidia-smi is not installed here"):
        module(name).main([])


def test_a_driver_without_a_gpu_is_told_in_its_words(tmp_path, monkeypatch):
    tool = program(tmp_path, "NVIDIA-SMI has failed")
    tool.write_text(tool.read_text() + "exit 9\n")
    monkeypatch.setattr("shutil.which", lambda name: str(tool))
    with pytest.raises(ResourceError, match=r"nvidia-smi says: .*NVIDIA-SMI has failed"):
        facts.nvidia_smi("name")


def test_numbers_have_a_place_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for wrong, said in (("no/where.json", "is no folder; make it first"), (".", "is a folder; name another file")):
        with pytest.raises(InputError, match=said):
            cpu.main(["unicode_languages", "--output", wrong])


@pytest.mark.parametrize(("error", "code"), [(InputError("bad"), 2), (ResourceError("bad"), 1)])
def test_an_error_is_a_sentence_and_an_exit_code(error, code, capsys):
    def fail():
        raise error

    with pytest.raises(SystemExit) as ended:
        run(fail)
    assert (ended.value.code, capsys.readouterr().err) == (code, "error: bad\n")


def test_numbers_that_were_just_recorded_do_not_change_the_commit(tmp_path, monkeypatch):
    """So that several runs of a benchmark can record the same commit."""

    def git(*words: str):
        who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    (tmp_path / "benchmarks").mkdir()
    for name in ("benchmarks/numbers.json", "benchmarks/program.py"):
        (tmp_path / name).write_text("1")
    git("init")
    git("add", ".")
    git("commit", "--message", "first")
    monkeypatch.setattr(facts, "ROOT", tmp_path)
    monkeypatch.delenv("BICLIQUES_COMMIT", raising=False)
    clean = facts.commit()
    assert len(clean) == 12
    (tmp_path / "benchmarks/numbers.json").write_text("2")
    assert facts.commit() == clean
    (tmp_path / "benchmarks/program.py").write_text("2")
    assert facts.commit() == f"{clean}+"
