"""The core on other versions of Python: it counts where there is an interpreter, and has wheels for all of them."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.house.tree import LAYERS, PYTHONS, ROOT, clean_environment, tracked
from tests.support.runs import random_edges, write_edges

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: What pip says when it reaches no registry.
_NO_REGISTRY = re.compile("NewConnectionError|NameResolutionError|ReadTimeout|ProxyError")
_JUMPS = (ast.Return, ast.Break, ast.Continue)


def sources() -> list[Path]:
    return [ROOT / path for path in tracked() if path.suffix == ".py" and path.parts[0] in (*LAYERS, "bicliques")]


def newest() -> tuple[str, str]:
    """The newest Python that is here, and its program. What a version warns of or lacks, later ones do, too."""
    for python in PYTHONS[:0:-1]:
        if (found := found_interpreter(python)) is not None:
            return python, found
    pytest.skip(f"there is no interpreter of Python {PYTHONS[-1]}; pyenv would have one")


@cache
def found_interpreter(python: str) -> str | None:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [shutil.which(f"python{python}"), *map(str, sorted(pyenv.glob(f"{python}.*/bin/python")))]
    for place in filter(None, places):
        program = "import sys; print('%d.%d' % sys.version_info[:2])"
        ended = subprocess.run([place, "-c", program], capture_output=True, text=True, check=False, timeout=120)
        if ended.stdout.strip() == python:
            return place
    return None


def pip(*words: str):
    """Run pip with the pins. Skips where no registry can be reached."""
    ended = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"), *words],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    if _NO_REGISTRY.search(ended.stderr):
        pytest.skip("no package registry can be reached")
    assert ended.returncode == 0, ended.stderr[-2000:]


@pytest.fixture
def site():
    """A folder for packages. It goes afterwards, because the core takes 450 MB."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


PROGRAM = """
import sys
import bicliques as bq
print(bq.count("g.parquet", workers=0, progress=False).count, bq.count("g.parquet", progress=False).count)
results = bq.mine("g.parquet", "OUT", workers=0, progress=False)
print(len(results), results.complete, bq.verify("OUT", progress=False).count, results.top(2).num_rows)
print("%d.%d" % sys.version_info[:2])
import importlib, pkgutil
for module in pkgutil.walk_packages(bq.__path__, "bicliques."):
    try:
        module.name.startswith("bicliques.flows") or importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        print(module.name, error)
"""


@pytest.mark.registry
@pytest.mark.exhaustive
@pytest.mark.timeout(1800)  # a download and a compilation, on a machine that may be busy
def test_the_core_counts_and_mines_with_the_newest_python_that_is_here(site, tmp_path):
    """With the pins, warnings as errors, and nothing of this environment. Every module can be imported, too.

    This suite runs on the oldest.
    """
    python, program = newest()
    binary = ["--only-binary", ":all:", "--python-version", python, "--target", str(site)]
    pip("--no-compile", *binary, *PROJECT["dependencies"])  # it would compile all modules, and for this Python
    write_edges(tmp_path / "g.parquet", random_edges(20, 15, 0.4, 1))
    environment = clean_environment(
        PYTHONPATH=os.pathsep.join([str(ROOT), str(site)]),
        PYTHONPYCACHEPREFIX=str(tmp_path / "modules"),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
        NUMBA_CACHE_DIR=str(tmp_path / "cache"),
        NUMBA_OPT="0",  # what is compiled is not optimised
    )
    ended = subprocess.run(
        [program, "-W", "error", "-c", PROGRAM],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    counted, mined, version, *cannot = ended.stdout.splitlines()
    one, threads = counted.split()
    assert one == threads != "0"
    assert mined.split() == [one, "True", one, "2"]
    assert version == python
    of_extras = re.compile(
        r"bicliques\.pipeline\.(workers\.\w+ .*'(dask|distributed)'$|api\.estimator .*needs scikit-learn)"
    )
    assert [line for line in cannot if not of_extras.match(line)] == []


def test_all_sources_are_compiled_by_another_python_without_a_warning(tmp_path):
    program = newest()[1]
    (tmp_path / "files.json").write_text(json.dumps([str(path) for path in sources()]))
    compiling = "import json\nfor path in json.load(open('files.json')):\n    compile(open(path).read(), path, 'exec')"
    ended = subprocess.run(
        [program, "-W", "error", "-c", compiling],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]


#: Modules of the standard library that are gone in a version up to 3.14, or are to go.
_GONE = set(
    "aifc asynchat asyncore audioop cgi cgitb chunk crypt distutils imghdr imp lib2to3 mailcap msilib nis".split()
    + "nntplib ossaudiodev pipes smtpd sndhdr spwd sunau telnetlib uu xdrlib".split()
)


def test_sources_fit_the_oldest_and_the_newest_python():
    """The grammar of 3.11, no jump out of a ``finally``, of which 3.14 warns, and no import of what is gone."""
    assert len(sources()) > 200
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 11))):
            if isinstance(node, ast.Try):
                inside = [each for line in node.finalbody for each in ast.walk(line)]
                assert not [each for each in inside if isinstance(each, _JUMPS)], f"{path}: {node.lineno}"
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not {name.partition(".")[0] for name in names} & _GONE, path


@pytest.mark.registry
@pytest.mark.exhaustive
@pytest.mark.parametrize("python", PYTHONS[1:])
def test_there_is_a_wheel_of_every_pinned_package_of_the_core(python, tmp_path):
    """As `pip install -c constraints.txt .` with this Python. Nothing is built, and no interpreter is needed."""
    report = tmp_path / "report.json"
    binary = ["--only-binary", ":all:", "--python-version", python, "--target", str(tmp_path / "site")]
    pip("--dry-run", "--ignore-installed", "--report", str(report), *binary, *PROJECT["dependencies"])
    found = [each["download_info"]["url"].rpartition("/")[2] for each in json.loads(report.read_text())["install"]]
    tag = f"cp{python.replace('.', '')}"
    assert all(name.endswith(".whl") for name in found)
    assert {name.partition("-")[0] for name in found if tag in name} >= {
        "numba",
        "llvmlite",
        "numpy",
        "pandas",
        "pyarrow",
    }


def test_make_names_a_python_that_is_too_old_and_leaves_nothing(tmp_path):
    """And clears what an attempt has left that did not end."""
    for name in ("Makefile", "pyproject.toml", "setup.py", "constraints.txt"):
        (tmp_path / name).symlink_to(ROOT / name)
    old = tmp_path / "old"
    old.write_text(
        f"#!/bin/sh\n[ $1 = -c ] && exec {sys.executable} -c 'import sys; sys.version_info = (3, 9, 18)\n'\"$2\"\n"
    )
    old.chmod(0o755)
    command = ["make", "environment", f"PYTHON={old}"]
    ended = subprocess.run(command, cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert f"Python 3.11 to 3.14 is needed, and {old} is 3.9; name another one" in ended.stderr
    assert not (tmp_path / ".venv").exists()
    told = subprocess.run(["make", "-n", *command[1:]], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "-m venv --clear .venv" in told
