"""``flows > pipeline > kernels > schemas``, and import-linter sees to it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import LAYERS, ROOT, clean_environment, text_of, tracked

LINTER = Path(sys.executable).parent / "lint-imports"

#: Where a line is added, the line, and which contract that breaks.
POINTING_UP = [
    ("schemas/graph.py", "import bicliques.kernels.reference.engine", "layers point down"),
    ("kernels/reference/engine.py", "import bicliques.pipeline.prepare.weights", "layers point down"),
    ("pipeline/prepare/weights.py", "import bicliques.flows", "layers point down"),
    ("pipeline/run/folder.py", "import bicliques.pipeline.cli.main", "rooms of the pipeline point down"),
    ("kernels/cpu/engine.py", "import bicliques.kernels.bitmatrix.engine", "engines do not know each other"),
    ("schemas/graph.py", "import numba", "schemas know no tool"),
    ("kernels/reference/engine.py", "import dask", "kernels are arrays in, arrays out"),
    ("pipeline/prepare/weights.py", "import prefect", "the pipeline runs without Prefect"),
    ("flows/__init__.py", "import cupy", "flows only orchestrate"),
]
#: The same of a file that others of its room are built on.
CIRCLE = (
    "pipeline/run/names.py",
    "def f(): import bicliques.pipeline.run.opened",
    "no files and no rooms import each other in a circle",
)


@pytest.fixture(scope="module")
def linted(tmp_path_factory):
    """What import-linter says of each contract when all those lines are there. `make check` runs it without them."""
    folder = tmp_path_factory.mktemp("tree")
    for layer in LAYERS:
        shutil.copytree(ROOT / layer, folder / layer, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "bicliques", folder / "bicliques", symlinks=True)
    for module, line, _ in (*POINTING_UP, CIRCLE):
        with (folder / module).open("a") as file:
            file.write(f"\n{line}\n")
    result = subprocess.run(
        [str(LINTER), "--no-cache", "--config", str(ROOT / "pyproject.toml")],
        cwd=folder,
        env=clean_environment(PYTHONPATH=str(folder), COLUMNS="500"),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 1, result.stdout + result.stderr
    verdicts, _, broken = result.stdout.partition("Broken contracts")
    assert verdicts.count(" BROKEN") == len({contract for _, _, contract in (*POINTING_UP, CIRCLE)})
    titles = re.split(r"(?m)^(.+)\n-+$", broken)
    return {title.strip(): text for title, text in zip(titles[1::2], titles[2::2], strict=True)}


@pytest.mark.parametrize(("module", "line", "contract"), POINTING_UP)
def test_an_import_that_points_up_is_refused(linted, module, line, contract):
    importer = "bicliques." + module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    imported = line.removeprefix("import ")
    assert re.search(rf"\b{re.escape(importer)} -> {re.escape(imported)}\b", linted[contract])


def test_files_that_import_each_other_in_a_circle_are_refused(linted):
    said = linted[CIRCLE[-1]]
    assert "No cycles are allowed in bicliques.pipeline.run.\n" in said
    assert "- .names -> .opened (1 import)" in said


#: An import of a module of tests, or from one.
OF_TESTS = re.compile(r"^\s*(?:(?:from|import) tests\.[\w.]*\btest_|from tests\.\w+ import .*\btest_)", re.MULTILINE)


def test_no_module_leans_on_one_of_tests():
    """What two of them need is in `tests.support`: a test may be changed, or go, without a look at the others."""
    sources = [path for path in tracked() if path.suffix == ".py"]
    assert len(sources) > 200
    others = [path for path in sources if (ROOT / path).name != Path(__file__).name]
    assert [str(path) for path in others if OF_TESTS.search(text_of(path))] == []
    for line in (
        "from tests.gpu.test_large import band",
        "from tests.gpu import test_large",
        "import tests.gpu.test_large as large",
        "def f():\n    from tests.test_peer_bugs import SHIPPED",
    ):
        assert OF_TESTS.search(line)
    assert not OF_TESTS.search("from tests.support import runs\nfrom tests.support.runs import answer")
