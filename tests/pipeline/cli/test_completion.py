"""What a shell offers is what the parser takes."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bicliques.pipeline.cli import main
from bicliques.pipeline.cli.commands import SHELLS, parser, script

#: Words up to where the key is pressed, and what has to be offered.
CASES = {
    ("co",): {"communities", "completion", "count", "cover"},
    ("mine", "--min-l"): {"--min-left"},
    ("largest", "--by", "e"): {"edges"},
    ("count", "--engine", "cu"): {"cumbe"},
    ("completion", ""): {"bash", "zsh", "fish"},
}


def offered_by_bash(words: tuple[str, ...], file: Path) -> set[str]:
    line = " ".join(f"'{word}'" for word in ("bicliques", *words))
    program = f'source {file}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _bicliques; echo "${{COMPREPLY[@]}}"'
    return set(subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True).stdout.split())


def offered_by_fish(words: tuple[str, ...], file: Path) -> set[str]:
    program = f'source {file}; complete -C "bicliques {" ".join(words)}"'
    told = subprocess.run(["fish", "-N", "-c", program], capture_output=True, text=True, check=True).stdout
    return {line.partition("\t")[0] for line in told.splitlines()}


def written(shell: str, folder: Path) -> Path:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    file = folder / f"completion.{shell}"
    file.write_text(script(shell, parser()))
    return file


@pytest.mark.parametrize("words", CASES)
@pytest.mark.parametrize(("shell", "offered"), [("bash", offered_by_bash), ("fish", offered_by_fish)])
def test_a_shell_offers_what_is_taken(shell, offered, words, tmp_path):
    assert offered(words, written(shell, tmp_path)) == CASES[words]


def test_zsh_reads_the_script_and_completes_our_command(tmp_path):
    file = written("zsh", tmp_path)
    program = f"autoload -U compinit; compinit -u -D; source {file}; echo $_comps[bicliques]"
    told = subprocess.run(["zsh", "-fc", program], capture_output=True, text=True, check=True)
    assert (told.stdout, told.stderr) == ("_bicliques\n", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_every_option_is_there(shell):
    text = script(shell, parser())
    [commands] = [action.choices for action in parser()._actions if action.dest == "command"]
    for name, command in commands.items():
        assert name in text
        for option in (name for action in command._actions for name in action.option_strings):
            assert (f"-l {option[2:]} " if shell == "fish" and option.startswith("--") else option) in text


@pytest.mark.parametrize("shell", SHELLS)
def test_no_help_can_end_a_quotation(shell):
    assert all(line.count("'") % 2 == 0 for line in script(shell, parser()).splitlines())


def test_the_command_prints_it(capsys):
    assert main.main(["completion", "bash"]) == 0
    text = capsys.readouterr().out
    assert main.main(["completion", "bash", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"shell": "bash", "script": text.rstrip("\n")}
    assert main.main(["completion", "tcsh"]) == 2


def test_fish_offers_the_values_of_an_option_that_has_some_and_no_others():
    lines = script("fish", parser()).splitlines()
    of_mine = {line.partition(" -l ")[2].partition(" ")[0]: line for line in lines if "from mine'" in line}
    assert " -x -a 'auto bitmatrix cpu " in of_mine["engine"]
    assert " -x " not in of_mine["min-left"]
    assert " -r " in of_mine["min-left"]
    assert not re.search(" -[xr] ", of_mine["quiet"])
