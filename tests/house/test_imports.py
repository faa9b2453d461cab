"""The packages import in any order, without a GPU package, and bring no more than their layer may use."""

import itertools
import subprocess
import sys

import pytest

from tests.house.tree import LAYERS, ROOT, clean_environment

#: Refuses every GPU package, as if none were installed.
_WITHOUT_GPU = """
import importlib.abc, sys
GPU = {"cupy", "cupy_backends", "cupyx", "cudf", "pylibcudf", "rmm", "dask_cudf", "dask_cuda", "pynvml", "cuda"}
class NoGpu(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in GPU:
            raise ModuleNotFoundError(f"no GPU package here: {name}", name=name)
sys.meta_path.insert(0, NoGpu())
"""

#: What a layer must not have loaded when it has been imported alone.
_UNWANTED = {
    "schemas": {"numba", "pandas", "dask", "distributed", "prefect", "duckdb", "polars"},
    "kernels": {"pandas", "dask", "distributed", "prefect", "duckdb", "polars"},
    "pipeline": {"pandas", "dask", "distributed", "prefect", "duckdb", "polars"},
    "flows": {"pandas", "distributed"},
}


def run(program: str) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", _WITHOUT_GPU + program],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


@pytest.mark.parametrize("first", LAYERS)
def test_each_package_can_be_the_first(first):
    others = [layer for layer in LAYERS if layer != first]
    loaded = run(
        f"import bicliques.{first}\nprint(*{{name.partition('.')[0] for name in sys.modules}})\n"
        f"from bicliques import {', '.join(others)}"
    )
    assert not set(loaded.split()) & _UNWANTED[first]


@pytest.mark.exhaustive
def test_every_module_imports_without_a_gpu():
    """Forwards, and once more in the opposite order: no module leans on another one having come first."""
    modules = [
        ".".join(("bicliques", *path.with_suffix("").parts)).removesuffix(".__init__")
        for layer in LAYERS
        for path in sorted(p.relative_to(ROOT) for p in (ROOT / layer).rglob("*.py"))
        if path.stem != "__main__"
    ]
    assert len(modules) > 50
    run(
        f"import importlib\nmodules = {modules}\n"
        "for name in modules: importlib.import_module(name)\n"
        "for name in modules: del sys.modules[name]\n"
        "for name in reversed(modules): importlib.import_module(name)\n"
    )


@pytest.mark.exhaustive  # each can be the first: see above
def test_the_order_of_the_packages_does_not_matter():
    for order in itertools.islice(itertools.permutations(LAYERS), 0, None, 5):
        run("\n".join(f"import bicliques.{layer}" for layer in order))


def test_no_code_asks_arrow_for_types_through_pandas():
    """A command hides pandas, and Arrow 25 then fails in `to_pandas_dtype`, whichever version of Arrow is here."""
    asking = [
        str(path.relative_to(ROOT))
        for layer in LAYERS
        for path in (ROOT / layer).rglob("*.py")
        if "to_pandas_dtype" in path.read_text()
    ]
    assert asking == []
