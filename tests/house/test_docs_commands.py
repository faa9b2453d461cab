"""Commands of other programs in README and docs, and of the benchmarks: they are understood, and let nobody in."""

import importlib
import importlib.util
import re
import shlex

import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker

from tests.house.tree import ROOT

DOCUMENTS = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))
DASK = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}


def blocks(text: str, language: str) -> list[str]:
    """Fenced blocks whose first line is exactly `language`."""
    return re.findall(rf"(?ms)^```{re.escape(language)}\n(.*?)^```", text)


def dask_commands() -> list[list[str]]:
    """The words of every command that starts a part of Dask, also those of a container."""
    found = []
    for document in DOCUMENTS:
        text = document.read_text()
        found += [shlex.split(line) for line in re.findall(r"(?m)^(?: {4})?(dask .*)$", text)]
        found += [yaml.safe_load(words) for words in re.findall(r"(?m)args: (\[dask, .*\])$", text)]
    return found


@pytest.mark.parametrize("path", [*DOCUMENTS, *BENCHMARKS, ROOT / "Makefile"], ids=lambda path: path.name)
def test_every_command_of_a_benchmark_is_understood(path):
    """A line of its own, one in a sentence, one of a rule."""
    pattern = r"(?m)(?:^(?: {4})?python|`python|\$\(PYTHON\)) -m benchmarks\.(\w+)([^`\n]*)"
    for name, arguments in re.findall(pattern, path.read_text()):
        words = shlex.split(arguments.strip().partition("   ")[0])  # a remark is some blanks away
        importlib.import_module(f"benchmarks.{name}").parser().parse_args(words)


def test_every_part_of_dask_is_started_with_options_that_it_has():
    commands = dask_commands()
    assert len(commands) >= 5
    for _, program, *words in commands:
        if program != "cuda":  # dask-cuda's own, which is not here
            DASK[program].make_context(f"dask {program}", [str(word) for word in words])


def test_no_documented_part_of_dask_lets_strangers_in():
    """On 127.0.0.1 only, or with TLS; pages with what is going on on 127.0.0.1, but for those an operator asks."""
    for _, _, *words in dask_commands():
        line = " ".join(map(str, words))
        assert re.search(r"--host 127\.0\.0\.1( |$)|--protocol tls( |$)|(^| )tls://", line), line
        assert re.search(r"--dashboard-address 127\.0\.0\.1:\d+", line) or line == "--protocol tls", line
    for document in DOCUMENTS:
        assert re.findall(r"tcp://(?!127\.0\.0\.1)[\w.]+", document.read_text()) == [], document


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_of_a_document_can_be_read(document):
    for block in blocks(document.read_text(), "yaml"):
        assert isinstance(yaml.safe_load(block), dict)
