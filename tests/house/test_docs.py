"""README and docs are true: commands run, options exist, links lead somewhere, numbers are the ones of a run."""

import ast
import importlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from benchmarks import commands, cpu, tables
from bicliques.kernels import engines, shipped
from bicliques.kernels.compiled.jit import code_folder
from bicliques.pipeline.cli.commands import parser
from bicliques.pipeline.ingest.readers import formats
from tests.house.reader import printed
from tests.house.tree import LAYERS, ROOT, clean_environment, text_of, tracked

README = (ROOT / "README.md").read_text()
COMMANDS, SPEED, FORMATS = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("commands", "speed", "formats"))
DOCUMENTS = [Path(name) for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
DOCUMENTS += sorted(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md"))
EXAMPLE = "examples/debian12_package_tag.parquet"


def blocks(text: str, language: str) -> list[str]:
    """Fenced blocks whose first line is exactly `language`."""
    return re.findall(rf"(?ms)^```{re.escape(language)}\n(.*?)^```", text)


def shell_lines(text: str) -> list[str]:
    return [line.partition("#")[0].strip() for block in blocks(text, "sh") for line in block.splitlines() if line]


def typed_in(text: str) -> list[list[str]]:
    """The commands of a page; `make` targets are looked up, since these tests are inside one of them."""
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    commands = []
    for line in shell_lines(text):
        program, *words = shlex.split(line)
        if program == "make":
            assert words[0] in targets, line
        else:
            assert program == "bicliques", f"no rule to try this command: {line}"
            commands.append(words)
    return commands


@pytest.mark.exhaustive
def test_commands_of_the_page_run_one_after_the_other(tmp_path):
    for folder in ("examples", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    commands = [words for words in typed_in(COMMANDS) if "--complete" not in words]  # which takes as long as all others
    assert all(printed(tmp_path, commands))


def test_the_readme_runs(tmp_path):
    """What `make demo` runs, the lines of pandas that it prints all commands, and the program."""
    assert shell_lines(README)[0] == "make demo"
    recipe = re.search(r"(?m)^demo:.*\n\t\$\(BIN\)/bicliques (.*)$", (ROOT / "Makefile").read_text())
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    [program], [output] = blocks(README, "python"), blocks(README, "text")
    demo, *others, said = printed(tmp_path, [shlex.split(recipe[1]), *typed_in(README), program])
    assert all(others)
    assert said.splitlines() == output.splitlines()
    lines = demo.partition("Read them with pandas:")[2].strip()
    assert len(lines.splitlines()) == 3
    assert "n_left" in printed(tmp_path, [lines])[0]
    manifest = json.loads((tmp_path / "demo-output" / "manifest.json").read_text())
    facts = (manifest["count"], *(manifest["input"][name] for name in ("n_left", "n_right", "n_edges")))
    assert all(f"{n:,}" in README for n in facts), facts


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_program_of_a_document_imports_what_there_is(document):
    """Also those that no test runs: they are Python, and the names they take from our packages exist."""
    text = (ROOT / document).read_text()
    for program in blocks(text, "python"):
        for node in ast.walk(ast.parse(program)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in LAYERS:
                module = importlib.import_module(node.module)
                assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == [], node.module


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_command_line_of_a_document_is_understood(document):
    text = (ROOT / document).read_text()
    lines = re.findall(r"(?m)^(?: {4}|\$ )(bicliques [a-z].*)$", text)
    lines += [line for line in shell_lines(text) if line.startswith("bicliques ")]
    lines += re.findall(r"`(bicliques [a-z]+ (?!-)[^`\n]+)`", text)  # with what it is about; else it is a name
    for line in lines:
        words = shlex.split(line.partition(" #")[0].partition(" > ")[0])
        parser().parse_args(words[1:])


def test_the_page_of_commands_names_every_command_and_every_deployment():
    [commands] = [action.choices for action in parser()._actions if action.dest == "command"]
    assert [name for name in commands if f"bicliques {name}" not in COMMANDS and f"make {name}" not in README] == []
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    assert [deployment["name"] for deployment in deployments] == ["refresh", "on-demand", "verify"]  # "three of them"


def test_tables_of_formats_and_engines_are_those_of_the_program():
    named = re.findall(r"(?m)^\| `([a-z-]+)` \| ", COMMANDS)
    assert named == [kind.name for kind in engines.kinds()]
    named = [name for cell in re.findall(r"(?m)^\| ([^|]+) \|", FORMATS) for name in re.findall(r"`([a-z-]+)`", cell)]
    assert {format.name for format in formats()} <= set(named)


def test_extras_that_are_named_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for path in tracked():
        for names in re.findall(r"pip install '\.\[([a-z,]+)\]'", text_of(path)):
            assert set(names.split(",")) <= set(extras), f"{path} names the extra {names}"


def test_known_counts_in_the_readme_are_the_golden_ones():
    golden = json.loads((ROOT / "tests/golden/golden.json").read_text())
    for name in ("youtube", "bookcrossing_core", "cp4im_heart_cleveland"):
        assert f"{golden[name]['bicliques']:,}" in README


@pytest.mark.parametrize(("kind", "rival"), [("2 cores", "AdaMBE"), ("NVIDIA H200", "GMBE")])
def test_the_whole_commands_of_the_readme_are_the_recorded_ones(kind, rival):
    recorded = json.loads((ROOT / "benchmarks" / "commands.json").read_text())[kind]["graphs"]
    machine = kind.removeprefix("NVIDIA ")
    shown = dict(re.findall(rf"(?m)^\| (\w+) \| [\d,]+ \| {machine} \| (.*) \|$", README))
    assert shown.keys() >= set(commands.PUBLISHED)
    for graph, cells in shown.items():
        of = recorded[graph]["commands"]
        seconds = [f"{of[name]['seconds']:.2f}" if name in of else "not measured" for name in ("count", "mine", rival)]
        assert cells.replace(f"{rival} ", "") == " | ".join(seconds), graph


def test_speed_of_one_core_is_the_recorded_one(capsys):
    shown = re.search(r"(?s)<!-- cpu table -->\n(.*?)\n<!-- end of cpu table -->", SPEED)
    cpu.main(["--table"])
    assert shown[1] == capsys.readouterr().out.strip()


def test_the_ratios_of_one_gpu_that_pages_name_are_the_recorded_ones():
    """Nobody sees them beside the table of docs/benchmarks.md, so each record made them stale."""
    recorded = json.loads((ROOT / "benchmarks" / "h200.json").read_text())["graphs"]
    rivals = json.loads((ROOT / "benchmarks" / "rivals.json").read_text())["graphs"]
    ours = {name: tables.taken(entry) for name, entry in recorded.items()}
    over = {
        who: [rivals[name][who] / one["kernel_s"] for name, one in ours.items()]
        for who in ("gmbe_s", "cumbe_s", "best_s")
    }
    gmbe, cumbe, best = (f"{tables.geometric_mean(ratios):.0f}" for ratios in over.values())
    words = " ".join(re.sub(r"\[(\w+)\]\(\S+\)", r"\1", SPEED).split())
    assert f"{gmbe} times as fast as GMBE (SC 2023), {cumbe} times as fast as cuMBE, and {best} times as fast" in words
    assert f"the least is {min(over['best_s']):.0f} times" in words
    assert f"is {best} times as fast on one H200 as the fastest of GMBE, cuMBE and\nParAdaMBE" in README
    listing = sorted(recorded[name]["list"]["kernel_s"] / one["kernel_s"] for name, one in ours.items())
    assert f"takes {listing[0]:.1f} to {listing[-1]:.1f} times as long as counting" in words
    busy = sorted(round(100 * one["busy_ratio"]) for one in ours.values() if one["kernel_s"] < 0.0003)
    assert f"busy for {busy[0]} to {busy[-1]} % of the time" in (ROOT / "docs/kernels.md").read_text()


def test_the_kernels_of_a_wheel_are_counted_right():
    operations = " ".join((ROOT / "docs/operations.md").read_text().split())
    variants = shipped.shipped()
    assert f"There are {len(variants)} kernels:" in operations
    assert f"With the PTX these are {len(variants) * len(shipped.TARGETS)} files" in operations


@pytest.mark.exhaustive
def test_guides_run_and_print_what_stands_there(tmp_path):
    """The commands of a guide first, then its programs as one. A program for a package that is not here is left out."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    typed, expected = [], []
    for guide in sorted((ROOT / "docs" / "guides").glob("*.md")):
        text = guide.read_text()
        commands = [shlex.split(line)[1:] for line in shell_lines(text)]
        parts = re.findall(r"(?ms)^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", text)
        parts = [part for part in parts if all(map(importlib.util.find_spec, packages_of(part[0])))]
        typed += [*commands, "".join(program for program, _ in parts)]
        expected += [*(None for _ in commands), "".join(output for _, output in parts)]
    assert len(expected) >= 8
    outputs = printed(tmp_path, typed)
    assert [output for output, wanted in zip(outputs, expected, strict=True) if wanted is not None] == [
        wanted for wanted in expected if wanted is not None
    ]


def packages_of(program: str) -> set[str]:
    """The packages that a program imports."""
    nodes = list(ast.walk(ast.parse(program)))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.partition(".")[0] for name in names}


def test_the_script_for_a_batch_system_runs(tmp_path):
    """In a shell, with the command in the path: the run is complete, and nothing is queued again."""
    [script] = blocks((ROOT / "docs" / "guides" / "slurm.md").read_text(), "bash")
    (tmp_path / "numba").symlink_to(code_folder().parent)  # to compile takes 20 s
    environment = clean_environment(
        PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin", SOURCE=str(ROOT / EXAMPLE), OUT="out", TMPDIR=str(tmp_path)
    )
    ended = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["count"] == 11869
