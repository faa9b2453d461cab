"""What is built is what is in the tree: all of the four packages, their CUDA files, and nothing of the tests."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from shutil import copy2

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from bicliques.kernels import shipped
from bicliques.kernels.gpu import pack
from bicliques.kernels.gpu.machine_code import COMPILER, file_name
from tests.house.tree import LAYERS, ROOT, clean_environment, text_of, tracked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Files of the packages that only tests read.
NOT_SHIPPED = {"kernels/cuda/budget.json"}
#: Extras whose packages our code imports. The others are for tools, for pages of Dask, and for the compiler of kernels.
IMPORTED = ("cluster", "prefect", "gpu")
#: Requirements that no package imports, and why they are there.
NOT_IMPORTED = {
    "fastapi": "a bound that Prefect needs (docs/operations.md)",
    "sqlalchemy": "a bound that Prefect needs (docs/operations.md)",
    "cuda-toolkit": "the CUDA that CuPy loads",
    "cudf-cu13": "imported as pylibcudf",
    "cupy-cuda13x": "imported as cupy",
}
#: What a wheel has from elsewhere.
EXAMPLE = {"bicliques/examples/debian12_package_tag.parquet"}


def copy_of_tree(folder: Path) -> Path:
    """A copy of the tracked files."""
    for path in tracked():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        copy2(ROOT / path, folder / path)
    for layer in LAYERS:
        (folder / "bicliques" / layer).symlink_to(Path("..", layer))
    return folder


def build(source: Path, output: Path, *options: str) -> Path:
    """Build what is in a folder, with the tools of this environment, which are pinned."""
    command = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", str(output), str(source)]
    result = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return output


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the source archive and the wheel made from it, from tracked files alone."""
    return build(copy_of_tree(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def with_machine_code(tmp_path_factory):
    """A folder as `built`, from a tree with the machine code of one kernel for one architecture."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed (pip install '.[nvrtc]')")
    source, output = copy_of_tree(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("dist")
    shipped.build(source / "kernels" / "machine_code", pack.shipped(), ("sm_90",), processes=1)
    (source / "kernels" / "machine_code" / "cpu" / "digest").mkdir(parents=True)
    (source / "kernels" / "machine_code" / "cpu" / "digest" / "entry.o").touch()
    return build(source, output, "--sdist", "--wheel")


def wheel_files(built: Path) -> set[str]:
    [wheel] = built.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def packages_in_tree() -> set[str]:
    rooms = {f"bicliques/{path}" for path in tracked() if path.parts[0] in LAYERS and str(path) not in NOT_SHIPPED}
    return rooms | {str(path) for path in tracked() if path.parts[0] == "bicliques"}


def test_wheel_holds_one_package_and_nothing_else(built):
    files = wheel_files(built)
    metadata = {name for name in files if ".dist-info/" in name}
    assert files - metadata == packages_in_tree() | EXAMPLE
    assert {"bicliques/py.typed", *(f"bicliques/{layer}/py.typed" for layer in LAYERS)} < files
    assert any(name.endswith(".cuh") for name in files)
    assert any(name.endswith("licenses/LICENSE") for name in metadata)


def test_source_archive_holds_what_the_wheel_needs_and_no_test(built):
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        files = {name.partition("/")[2] for name in tar.getnames()}
    example = "examples/debian12_package_tag.parquet"
    assert files >= packages_in_tree() | {"LICENSE", "README.md", "pyproject.toml", "setup.py", example}
    assert not [name for name in files if name.startswith(("tests", "benchmarks", ".ci"))]


def installed(built: Path, folder: Path) -> Path:
    """Where the wheel is installed, without what it depends on."""
    [wheel] = built.glob("*.whl")
    site = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*pip, str(wheel)], env=clean_environment(), check=True, timeout=120)
    return site


def output_of(site: Path, *command: str) -> str:
    """What a command prints that imports the installed packages. Their search is compiled there, and not optimised."""
    environment = clean_environment(
        PYTHONPATH=str(site), COLUMNS="120", NUMBA_OPT="0", NUMBA_CACHE_DIR=str(site.parent / "code")
    )
    result = subprocess.run(
        command, cwd=site.parent, env=environment, capture_output=True, text=True, check=False, timeout=500
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


@pytest.mark.exhaustive  # it builds another wheel
def test_machine_code_is_in_the_wheel_and_found_where_it_is_installed(with_machine_code, tmp_path):
    [variant] = pack.shipped()
    made = {
        f"bicliques/kernels/machine_code/{name}"
        for name in (COMPILER, file_name(variant, "sm_90"), "cpu/digest/entry.o")
    }
    assert {name for name in wheel_files(with_machine_code) if "machine_code/" in name} == made
    [archive] = with_machine_code.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        assert [name for name in tar.getnames() if "machine_code/" in name] == []
    script = """
from bicliques.kernels.gpu.machine_code import code_for
from bicliques.kernels.gpu.pack import shipped
for capability in ((9, 0), (8, 0)):
    code = code_for(*shipped(), capability, 13000)
    print(code.kind, code.path and code.path.stat().st_size > 10_000, code.path)
"""
    site = installed(with_machine_code, tmp_path)
    found, other = output_of(site, sys.executable, "-c", script).splitlines()
    assert found == f"cubin True {site}/bicliques/kernels/machine_code/{file_name(variant, 'sm_90')}"
    assert other == "nvrtc None None"


COMPILE_AGAIN = """
import sys
from bicliques.kernels import engines
engines.compile_engine("cpu")
print("numba" in sys.modules, engines.kind("cpu").will_compile(engines.Search()))
"""


@pytest.mark.exhaustive  # it compiles the search once more, because an installed package has machine code of its own
def test_installed_wheel_runs_from_anywhere(built, tmp_path):
    """Installed beside nothing of this repository; what it depends on comes from this environment.

    Of the search only the outermost function is kept. To make code of all hundred functions took three times as long.
    """
    site = installed(built, tmp_path)

    def run(*command: str) -> str:
        return output_of(site, *command)

    assert run(sys.executable, "-c", "import bicliques; print(bicliques.__file__)").startswith(str(site))
    assert {path.name for path in site.iterdir() if not path.name.endswith(".dist-info")} == {"bicliques", "bin"}
    text = run(sys.executable, str(site / "bin" / "bicliques"), "--help")
    assert "mine" in text
    assert "exit codes" in text
    demonstration = run(sys.executable, str(site / "bin" / "bicliques"), "demo", "--quiet")
    assert f"{site}/{min(EXAMPLE)}: 30,300 package (left), 598 tag (right), 112,118 edges" in demonstration
    assert "Read them with pandas" in demonstration
    kept = [path.name.split("-")[0] for path in (tmp_path / "code").glob("*/bicliques.kernels.cpu.*")]
    assert kept == ["bicliques.kernels.cpu.explore.explore"]
    assert run(sys.executable, "-c", COMPILE_AGAIN) == "False False\n", "neither compiled nor imported what compiles"
    source = run(
        sys.executable,
        "-c",
        "from bicliques.kernels.gpu.machine_code import *; print(*map(source_of, KERNELS), source_digest())",
    )
    assert "__global__" in source


@pytest.mark.registry
@pytest.mark.exhaustive
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_kernels_of_another_project_can_be_installed_next_to_it(first, built, tmp_path):
    """It is on the index under a name that was a package of ours: pip put both into one folder, without a word."""
    [wheel] = built.glob("*.whl")
    site, names = tmp_path / "site", ["kernels", str(wheel)]
    for name in names if first == "theirs" else reversed(names):
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), name]
        subprocess.run(command, env=clean_environment(), check=True, timeout=300)
    records = [path.read_text() for path in site.glob("*.dist-info/RECORD")]
    named = [[line.split(",")[0] for line in record.splitlines()] for record in records]
    assert len(named) == 2
    assert not set(named[0]) & set(named[1])
    assert [name for names in named for name in names if not name.startswith("..") and not (site / name).exists()] == []
    assert output_of(site, sys.executable, "-c", "import bicliques as bq; print(bq.mine.__name__)") == "mine\n"


def test_versions_agree():
    from bicliques import __version__

    assert PROJECT["version"] == __version__
    newest = re.search(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text())
    assert newest[1] == __version__
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (cited["version"], cited["license"]) == (__version__, PROJECT["license"])
    assert cited.keys() >= {"cff-version", "message", "title", "authors"}, "without these it is not a citation file"


def pins() -> dict[str, list[Requirement]]:
    """Lines of constraints.txt by name; some have one line for each version of Python."""
    lines = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        requirement = Requirement(line)
        lines.setdefault(requirement.name, []).append(requirement)
    return lines


@pytest.mark.parametrize("python", ["3.11.4", "3.12.4", "3.13.1", "3.14.1"])
def test_every_requirement_is_pinned_within_its_bounds(python):
    here = {"python_full_version": python, "python_version": python.rpartition(".")[0], "sys_platform": "linux"}
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(line for lines in extras.values() for line in lines)]
    pinned = pins()
    for requirement in map(Requirement, wanted):
        if requirement.name == PROJECT["name"]:
            continue
        lines = [pin for pin in pinned.get(requirement.name, []) if pin.marker is None or pin.marker.evaluate(here)]
        remedy = "run make constraints"
        assert len(lines) == 1, f"{requirement} has {len(lines)} pins for Python {python}: {remedy}"
        [pin] = lines[0].specifier
        assert pin.operator == "=="
        assert Version(pin.version) in requirement.specifier, f"{lines[0]} is not {requirement}: {remedy}"


def test_every_requirement_is_imported_or_has_a_reason():
    text = "\n".join(text_of(path) for path in tracked() if path.parts[0] in LAYERS and path.suffix == ".py")
    imported = set(re.findall(r"(?m)^\s*(?:import|from) (\w+)", text))
    lines = [line for name in IMPORTED for line in PROJECT["optional-dependencies"][name]]
    names = {Requirement(line).name.replace("-", "_") for line in [*PROJECT["dependencies"], *lines]}
    names = {name.replace("_", "-") for name in names - imported}
    assert names == set(NOT_IMPORTED)
