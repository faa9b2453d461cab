"""The core mines, counts and shows where no extra is installed; what needs an extra says which."""

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.tree import PYTHONS, ROOT, clean_environment
from tests.support.runs import random_edges, write_edges

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Most packages that `pip install .` may bring.
MOST_PACKAGES = 35


def closure(requirements: list[str]) -> set[str]:
    """The distributions, of those installed here, that some requirements bring to the newest patch of this Python.

    Before 3.11.3, one more is needed.
    """
    python = {"python_full_version": f"{sys.version_info.major}.{sys.version_info.minor}.99"}
    found = set()
    todo = [(Requirement(line), "") for line in requirements]
    while todo:
        requirement, extra = todo.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({**python, "extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        if name in found:
            continue
        found.add(name)
        needed = importlib.metadata.distribution(name).requires or []
        todo += [(Requirement(line), each) for line in needed for each in ("", *requirement.extras)]
    return found


@pytest.fixture(scope="module")
def hidden():
    """The names of all modules that are installed here and belong to no package of the core."""
    core = closure(PROJECT["dependencies"]) | {PROJECT["name"]}
    owners = importlib.metadata.packages_distributions()
    return sorted(name for name, all_ in owners.items() if not {canonicalize_name(each) for each in all_} & core)


#: Refuses the modules that are named, as if they were not installed.
HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""


def without(hidden: list[str], program: str, folder: Path) -> list[str]:
    """The lines that a program prints where the modules are not installed."""
    ended = subprocess.run(
        [sys.executable, "-c", f"HIDDEN = set({hidden})\n{HIDE}\n{program}"],
        cwd=folder,
        env=clean_environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout.splitlines()


@pytest.fixture
def source(tmp_path):
    return write_edges(tmp_path / "g.parquet", random_edges(20, 15, 0.4, 1))


def test_what_is_hidden_is_not_of_the_core(hidden):
    assert {"dask", "distributed", "prefect", "duckdb", "scipy"} <= set(hidden)
    assert not {"numpy", "pandas", "pyarrow", "numba", "blake3", "jinja2", "markupsafe", "fsspec"} & set(hidden)
    assert 8 <= len(closure(PROJECT["dependencies"])) <= MOST_PACKAGES


def test_the_core_mines_counts_opens_and_verifies(hidden, source, tmp_path):
    lines = without(
        hidden,
        """
import bicliques as bq
source = "g.parquet"
made = bq.mine(source, "OUT", progress=False)
opened = bq.open_run("OUT")
counted = [bq.count(source, workers=workers, progress=False).count for workers in (None, 0)]
print(len(made) == len(opened) == counted[0] == counted[1] > 0, opened.complete)
print(len(opened.to_pandas()) == len(made), opened.top(3).num_rows, opened.sample(2).num_rows)
print(bq.verify("OUT", progress=False).count == len(made), bq.report("OUT").stat().st_size > 10_000)
print(bq.dry_run(source, progress=False, sample_time=0.1).estimate is not None)
""",
        tmp_path,
    )
    assert lines == ["True True", "True 3 2", "True True", "True"]


@pytest.mark.parametrize("words", [["--workers", "2"], ["--scheduler", "tls://127.0.0.1:1"]])
@pytest.mark.first(1)
def test_workers_without_dask_name_the_extra(hidden, source, tmp_path, words):
    program = f"""
import contextlib, io
from bicliques.pipeline.cli.main import main
told = io.StringIO()
with contextlib.redirect_stderr(told):
    code = main(["mine", "g.parquet", "-o", "OUT", "--quiet", *{words}])
print(code)
print(told.getvalue(), end="")
"""
    code, sentence = without(hidden, program, tmp_path)
    assert code == "1"
    assert sentence.startswith("bicliques: worker processes need Dask, but dask is not installed")
    assert "(pip install 'bicliques[cluster]')" in sentence
    assert not (tmp_path / "OUT").exists()


def test_flows_without_prefect_name_the_extra(hidden, tmp_path):
    program = "try:\n    import bicliques.flows.mine\nexcept ModuleNotFoundError as error:\n    print(error)"
    names = sorted({*hidden} - {"prefect"})
    [sentence] = without(names, f"sys.modules['prefect'] = None\n{program}", tmp_path)
    assert sentence.startswith("flows need Prefect, which is not installed (pip install 'bicliques[prefect]')")


def test_packages_of_the_gpu_that_are_missing_are_named_with_the_extra(tmp_path):
    """CuPy alone, then cuDF and dask-cuda beside a CuPy with a device."""
    program = """
import sys, types
from bicliques.kernels.gpu.device import why_no_gpu
from bicliques.pipeline.output.cudf_parquet import why_no_cudf
from bicliques.pipeline.workers.dask_tasks import start_cluster
print(why_no_gpu())
runtime = types.SimpleNamespace(getDeviceCount=lambda: 1)
sys.modules["cupy"] = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=runtime))
print(why_no_gpu(), why_no_cudf())
try:
    start_cluster(["0"], None, False)
except Exception as error:
    print(error)
"""
    remedy = "(pip install 'bicliques[gpu]')"
    assert without(["cupy", "dask_cuda", "pylibcudf"], program, tmp_path) == [
        f"CuPy is not installed {remedy}",
        f"None pylibcudf cannot be imported {remedy}",
        f"workers on GPUs need dask-cuda, but dask_cuda is not installed {remedy}; workers=0 uses one GPU without it",
    ]


def test_the_estimator_without_scikit_learn_names_the_extra(hidden, tmp_path):
    program = (
        "from bicliques import *\n"
        "try:\n    from bicliques import MaximalBicliques\nexcept ModuleNotFoundError as error:\n    print(error)"
    )
    [sentence] = without(hidden, program, tmp_path)
    assert sentence == (
        "MaximalBicliques needs scikit-learn, which is not installed (pip install 'bicliques[sklearn]')"
    )


def test_sentences_that_tell_to_install_name_an_extra_that_there_is():
    extras = PROJECT["optional-dependencies"]
    named = [
        told
        for package in ("flows", "pipeline", "kernels")
        for path in (ROOT / package).rglob("*.py")
        for told in re.findall(r"pip install ([^)\n]*)", path.read_text())
    ]
    assert {"'bicliques[cluster]'", "'bicliques[gpu]'"} <= set(named) <= {f"'bicliques[{name}]'" for name in extras}


def test_all_is_every_extra_for_a_machine_without_a_gpu():
    extras = PROJECT["optional-dependencies"]
    [line] = extras["all"]
    assert Requirement(line).extras == extras.keys() - {"all", "dev", "docs", "gpu", "nvrtc"}
    # Bokeh alone is not in the environment of `make test`, where nobody looks at the pages of Dask
    own = [Requirement(line).extras for line in extras["dev"] if Requirement(line).name == PROJECT["name"]]
    assert set().union(*own) >= Requirement(line).extras - {"dashboard"}


def test_only_the_extra_of_gpus_has_the_bounds_of_rapids():
    bounded = {"dask", "distributed", "numba", "numpy", "pandas"}
    for extra, lines in {**PROJECT["optional-dependencies"], "": PROJECT["dependencies"]}.items():
        for requirement in map(Requirement, lines):
            if requirement.name in bounded:
                has_most = any(each.operator in ("<", "<=", "==") for each in requirement.specifier)
                assert has_most == (extra == "gpu"), f"{extra}: {requirement}"


def in_the_page() -> dict[str, int]:
    """How many packages docs/install.md says that each extra brings; "" for the core."""
    page = (ROOT / "docs" / "install.md").read_text()
    lines = re.findall(r"(?m)^\| `pip install (?:\.|'\.\[(\w+)\]')` \|.*\| (\d+) \|$", page)
    return {extra: int(number) for extra, number in lines}


def flat(extra: str) -> list[str]:
    """The requirements of the core and of an extra, with those of the extras that it names."""
    lines = PROJECT["dependencies"] if not extra else PROJECT["optional-dependencies"][extra]
    named = [own for line in lines for own in Requirement(line).extras if Requirement(line).name == PROJECT["name"]]
    plain = [line for line in lines if Requirement(line).name != PROJECT["name"]]
    return [*PROJECT["dependencies"], *plain, *(line for each in named for line in flat(each))]


def test_the_page_says_how_many_packages_each_extra_brings():
    """Of those that are installed here, which the pins are of."""
    told = in_the_page()
    assert told.keys() == {"", *PROJECT["optional-dependencies"]} - {"dev", "docs", "nvrtc"}
    for extra in ("", "cluster", "prefect", "notebook", "sklearn"):
        assert len(closure(flat(extra))) == told[extra], extra
    assert f"The library alone is {told['']} packages" in (ROOT / "README.md").read_text()


def what_pip_would_install(folder: Path, *words: str, timeout: float) -> list[str]:
    """Names of the packages that pip would install for these words. Nothing is built or installed."""
    report = folder / "report.json"
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--report", str(report)]
    ended = subprocess.run(
        [*pip, "--only-binary", ":all:", "--target", str(folder / "site"), *words],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    if re.search("NewConnectionError|NameResolutionError|ReadTimeout|ProxyError", ended.stderr):
        pytest.skip("no package registry can be reached")
    assert ended.returncode == 0, ended.stderr[-2000:]
    return [each["metadata"]["name"] for each in json.loads(report.read_text())["install"]]


@pytest.mark.registry
@pytest.mark.exhaustive
def test_the_page_says_how_many_packages_all_extras_bring(tmp_path):
    """Bokeh is not installed here, so a registry is asked what it needs."""
    pins = ["-c", str(ROOT / "constraints.txt"), "--python-version", "3.11", *flat("dashboard")]
    dashboard = {canonicalize_name(name) for name in what_pip_would_install(tmp_path, *pins, timeout=500)}
    assert len(dashboard) == in_the_page()["dashboard"]
    others = closure([line for line in flat("all") if Requirement(line).name != "bokeh"])
    assert len(others | dashboard) == in_the_page()["all"]


@pytest.mark.registry
@pytest.mark.exhaustive
@pytest.mark.parametrize("python", [PYTHONS[0], PYTHONS[-1]])
def test_the_core_can_be_installed_and_is_small(python, tmp_path):
    """What `pip install .` would bring. Nothing is built, and no interpreter of that version is needed.

    `test_pythons` asks for the pinned packages of the versions between.
    """
    core = ["--python-version", python, *PROJECT["dependencies"]]
    names = {name.lower() for name in what_pip_would_install(tmp_path, *core, timeout=300)}
    assert {"numba", "pyarrow"} <= names
    assert len(names) <= MOST_PACKAGES
    assert not names & {"dask", "distributed", "prefect", "bokeh"}


def test_the_core_needs_no_call_that_only_linux_has(source, tmp_path):
    """As on macOS, as far as names go: what the module `os` has on Linux alone is not there."""
    program = """
import os, time
only_linux = ("sched_", "posix_f", "pidfd", "memfd", "eventfd", "copy_file_range", "splice", "getrandom", "O_TMPFILE")
for name in list(vars(os)):
    if name.startswith(only_linux):
        delattr(os, name)
import bicliques as bq
print(hasattr(os, "sched_getaffinity"), len(bq.mine("g.parquet", "OUT", progress=False)) > 0)
print(bq.verify("OUT", progress=False).count > 0)
"""
    assert without([], program, tmp_path) == ["False True", "True"]


def test_every_version_of_python_that_is_tried_is_allowed_and_no_other():
    from packaging.specifiers import SpecifierSet

    allowed = SpecifierSet(PROJECT["requires-python"])
    assert [f"3.{minor}" for minor in range(8, 20) if f"3.{minor}.1" in allowed] == list(PYTHONS)
