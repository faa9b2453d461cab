"""Everything has one place, the four package names are ours, and nothing here belongs to one machine."""

import importlib.metadata
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from tests.house.tree import LAYERS, ROOT, text_of, tracked

TOP = {
    *(
        ".ci",
        ".gitignore",
        "Makefile",
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "SECURITY.md",
    ),
    *("MANIFEST.in", "pyproject.toml", "setup.py", "bicliques", "constraints.txt", "prefect.toml", "prefect.yaml"),
    *("Dockerfile", "Dockerfile.cuda", ".dockerignore"),
    *("benchmarks", "docs", "examples", "tests", *LAYERS),
}
MOST_LINES = {".cu": 700, ".cuh": 700}  # 500 for other sources
MOST_BYTES = 1_200_000  # a graph of Debian packages; nothing else comes near

#: What must not stand in a file of the project, and in which files it may all the same.
FORBIDDEN = {
    "the address of a package registry": (
        r"pypi\.org|pythonhosted|anaconda\.org|index-url|find-links[ =]\S*:|/simple/",
        (),
    ),
    "a path of one machine": (r"(?<![\w.~-])/(?:work|root|home|opt|Users)/\w", ()),
    "data beside the repository": (r"\bshared/", ("tests/", "benchmarks/")),
}


@pytest.mark.parametrize("package", LAYERS)
@pytest.mark.first(1)
def test_package_is_the_one_in_this_repository(package):
    """The names are general; another distribution that has one of them would be imported instead, in silence."""
    spec = importlib.util.find_spec(package)
    assert spec.origin is not None
    assert Path(spec.origin) == ROOT / package / "__init__.py"
    owners = set(importlib.metadata.packages_distributions().get(package, [])) - {"bicliques"}
    assert not owners, f"{', '.join(owners)} also installs a package {package}: uninstall it"


def test_top_level_holds_what_is_listed():
    assert {path.parts[0] for path in tracked()} <= TOP


def test_every_folder_of_code_is_a_package():
    folders = {path.parent for path in tracked() if path.parts[0] in LAYERS and path.suffix == ".py"}
    assert {folder for folder in folders if not (ROOT / folder / "__init__.py").exists()} == set()


def test_no_module_is_a_drawer_and_none_hides_a_standard_one():
    modules = [path for path in tracked() if path.suffix == ".py"]
    assert [path for path in modules if path.stem in ("utils", "util", "helpers", "misc", "common")] == []
    # a flow started by its path has its folder first on sys.path
    assert [path for path in modules if path.parts[0] == "flows" and path.stem in sys.stdlib_module_names] == []


def test_files_are_of_a_size_to_be_read():
    sources = [path for path in tracked() if path.suffix in (".py", ".cu", ".cuh", ".h", ".cpp")]
    lines = {path: text_of(path).count("\n") for path in sources}
    assert {str(path): n for path, n in lines.items() if n > MOST_LINES.get(path.suffix, 500)} == {}
    assert {str(path): n for path in tracked() if (n := (ROOT / path).stat().st_size) > MOST_BYTES} == {}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what):
    pattern, allowed = FORBIDDEN[what]
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in tracked()
        if not str(path).startswith(("tests/house/", *allowed))
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert not found, f"{what}:\n" + "\n".join(found)


def test_what_is_forbidden_is_found():
    for what, line in (
        ("the address of a package registry", "--extra-index-url https://example.com/simple/numpy"),
        ("the address of a package registry", "https://files.pythonhosted.org/packages/x.whl"),
        ("the address of a package registry", "--find-links https://example.com/wheels"),
        ("a path of one machine", 'DATA = "/home/ann/graphs"'),
        ("data beside the repository", "see ../shared/DESIGN.md"),
    ):
        assert re.search(FORBIDDEN[what][0], line)
