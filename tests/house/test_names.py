"""A file or a module that a document, a comment or a docstring names is there."""

import re
from pathlib import Path

import pytest

from tests.house.tree import LAYERS, ROOT, text_of, tracked

TOPS = "|".join((*LAYERS, "tests", "benchmarks", "docs", "examples"))
#: A path below one of our folders, with a folder of its own or a suffix: `kernels/cuda/*.cuh`, not "kernels/cpu time".
PATH = re.compile(rf"(?<![\w./~-])(?:{TOPS})(?:/[\w*-]+)*/(?:[\w*-]+(?:\.[\w*]+)+|(?=`))")
#: A dotted name between backticks, as docstrings have it.
DOTTED = re.compile(rf"`(?:bicliques\.)?((?:{'|'.join(LAYERS)})(?:\.\w+)+)`")

#: A file without its folder between backticks: the reader has read the folder before.
BARE = re.compile(r"`([\w-]+\.(?:py|cu|cuh|cpp))`")

TEXTS = [path for path in tracked() if path.suffix in (".md", ".py", ".cu", ".cuh", ".h", ".cpp", ".toml", ".yaml")]
CHECKED = [path for path in TEXTS if not str(path).startswith(("tests/mutants/", "tests/house/test_", "docs/lab/"))]


def missing_paths(text: str) -> list[str]:
    """Files and folders below ours that `text` names and that are not there."""
    named = {match[0] for match in PATH.finditer(text) if "NAME" not in match[0]}
    return sorted(name for name in named if not any(ROOT.glob(name.rstrip("/"))))


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something that a module defines in its text."""
    module, rest = name, ""
    while not (ROOT / module.replace(".", "/")).with_suffix(".py").exists():
        if (ROOT / module.replace(".", "/") / "__init__.py").exists():
            module = f"{module}.__init__"
            break
        module, _, last = module.rpartition(".")
        rest = f"{last}.{rest}".rstrip(".")
        if not module:
            return False
    text = text_of(Path(module.replace(".", "/")).with_suffix(".py"))
    return not rest or all(re.search(rf"\b{part}\b", text) for part in rest.split("."))


@pytest.mark.parametrize("kind", [".md", ".py", ".cu", ".cuh", ".toml"])
def test_files_that_a_text_names_are_there(kind):
    texts = [path for path in CHECKED if path.suffix == kind]
    assert {str(path): names for path in texts if (names := missing_paths(text_of(path)))} == {}


def test_files_that_a_document_names_without_their_folder_are_there():
    names = {path.name for path in tracked()}
    documents = [path for path in CHECKED if path.suffix == ".md"]
    found = {str(path): sorted(set(BARE.findall(text_of(path))) - names) for path in documents}
    assert {path: missing for path, missing in found.items() if missing} == {}
    assert BARE.findall("`lease.py`, `pipeline/run/journal.py` and lock.py") == ["lease.py"]


def test_what_a_document_says_is_in_a_file_is_in_it():
    """As "`mine_slice` in `pipeline/slices/worker.py`"."""
    found = [
        (str(path), name, file)
        for path in CHECKED
        if path.suffix == ".md"
        for name, file in re.findall(rf"`(\w+)` in `((?:{TOPS})/[\w/]+\.\w+)`", text_of(path))
    ]
    assert len(found) > 10
    assert [each for each in found if not re.search(rf"\b{each[1]}\b", text_of(Path(each[2])))] == []


def test_modules_that_a_text_names_are_there():
    found = {str(path): [name for name in DOTTED.findall(text_of(path)) if not is_there(name)] for path in CHECKED}
    assert {path: names for path, names in found.items() if names} == {}


def test_what_has_moved_is_noticed():
    gone = ("pipeline.worker", "schemas.work.NoSuchThing", "kernels.cpu.engine.CpuEngine.gone")
    assert not any(map(is_there, gone))
    assert is_there("kernels.cpu.engine.CpuEngine.mine")
    text = "See `pipeline/worker.py`, `pipeline/slices/worker.py`, `kernels/cuda/common/*.cuh` and docs/nothing.md."
    assert missing_paths(text) == ["docs/nothing.md", "pipeline/worker.py"]
    assert missing_paths("in `kernels/opencl/` and `kernels/cuda/`") == ["kernels/opencl/"]
