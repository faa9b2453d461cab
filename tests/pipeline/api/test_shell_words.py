"""A command in a sentence can be pasted into a shell, whatever the name of a folder is."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.api.runs import verify
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.schemas.errors import IncompleteError, as_word, written
from tests.support.runs import random_edges, write_edges

NAMES = [
    *("OUT", "it's", 'a "b"', "$HOME `date` !!", "a\\nb", "", "東京 🌟", "~", "-x"),
    *("a\nb", "\t\r\x1b[31m'\\", "\u202egnp é", "byte \udcff\udcfe", "\x017", "\x7f\x85", "$'\n'", "\\\n", "\n "),
]
SHELLS = [name for name in ("bash", "zsh", "ksh") if shutil.which(name)]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_word_is_one_line(name: str) -> None:
    assert as_word(name).isprintable()


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_read_the_same_name(shell: str) -> None:
    command = f"printf '%s\\0' {' '.join(map(as_word, NAMES))}"
    found = subprocess.run([shell, "-c", os.fsencode(command)], capture_output=True, check=True, timeout=60)
    assert [os.fsdecode(each) for each in found.stdout.split(b"\0")[:-1]] == NAMES


@pytest.mark.skipif("bash" not in SHELLS, reason="needs bash")
def test_the_remedy_of_an_error_goes_on_with_the_run(tmp_path: Path) -> None:
    out = tmp_path / "new\nline, it's"
    source = write_edges(tmp_path / "g.parquet", random_edges(12, 9, 0.4, 1))
    bq.mine(source, out, workers=0, progress=False, report=False, max_results=3)

    with pytest.raises(IncompleteError) as raised:
        verify(out)
    said = raised.value.written
    assert said.isprintable()
    command = said.partition("continue with: ")[2]
    assert command == written(how_to_resume(out, "max_results"))
    script = 'bicliques() { printf "%s" "$2"; }; ' + command
    found = subprocess.run(["bash", "-c", script], capture_output=True, check=True, timeout=60)
    assert os.fsdecode(found.stdout) == str(out)
