"""The images are made of what is there, run as nobody in particular, and are what the documents say."""

import json
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from bicliques.pipeline.cli.commands import parser
from tests.house.dockerfiles import instructions
from tests.house.tree import LAYERS, ROOT, tracked

FILES = ("Dockerfile", "Dockerfile.cuda")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
LINTER = Path(sys.executable).parent / "hadolint"


def lint(text: str) -> subprocess.CompletedProcess[str]:
    if not LINTER.exists():
        pytest.skip("hadolint is not installed")
    return subprocess.run([str(LINTER), "-"], input=text, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", FILES)
def test_hadolint_has_nothing_to_say(name):
    found = lint((ROOT / name).read_text())
    assert (found.returncode, found.stdout) == (0, "")


def test_hadolint_has_something_to_say_of_a_bad_one():
    found = lint((ROOT / "Dockerfile").read_text().replace("USER 1000", "USER root"))
    assert found.returncode == 1
    assert "DL3002" in found.stdout


@pytest.mark.parametrize("name", FILES)
def test_an_image_is_of_a_python_that_is_allowed_and_of_extras_that_exist(name):
    steps = instructions((ROOT / name).read_text())
    bases = {words.split()[0] for word, words in steps if word == "FROM"}
    [base] = bases  # what is installed in one stage runs in the other
    version = re.fullmatch(r"python:(3\.\d+)-slim-\w+", base)
    assert f"{version[1]}.1" in SpecifierSet(PROJECT["requires-python"])
    [extras] = [words.removeprefix("EXTRAS=") for word, words in steps if word == "ARG"]
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert ("gpu" in extras.split(",")) == (name == "Dockerfile.cuda")


@pytest.mark.parametrize("name", FILES)
def test_an_image_runs_as_a_user_and_starts_what_it_is_told(name):
    last = "\n".join((ROOT / name).read_text().split("\nFROM ")[-1:])
    steps = dict(instructions("FROM " + last))
    assert steps["USER"].isdecimal()
    assert int(steps["USER"]) > 0
    assert "ENTRYPOINT" not in steps
    program, *words = yaml.safe_load(steps["CMD"])
    assert program in PROJECT["scripts"]
    with pytest.raises(SystemExit):  # it is --help
        parser().parse_args(words)
    assert "PATH=/venv/bin:$PATH" in steps["ENV"]


def test_an_image_is_made_of_what_a_wheel_is_made_of():
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    kept = {line[1:] for line in lines if line.startswith("!")}
    assert {"pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "constraints.txt"} < kept
    assert kept >= {*LAYERS, "examples"}
    tops = {path.parts[0] for path in tracked()}
    assert kept <= tops
    assert not {".git", "tests", "docs", "benchmarks"} & kept
    assert any(fnmatch("kernels/machine_code", line) for line in lines)


def test_the_pools_of_the_documents_run_the_deployments_that_there_are():
    """Each is a mapping that can stand in prefect.yaml, and names an image and what nobody is to be told."""
    blocks = [yaml.safe_load(block) for block in re.findall(r"(?ms)^```yaml\n(.*?)^```", OPERATIONS)]
    pools = [block["work_pool"] for block in blocks if "work_pool" in block]
    assert [pool["name"] for pool in pools] == ["bicliques-docker", "bicliques-kubernetes"]
    here = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"][0]["work_pool"]
    steps = dict(instructions((ROOT / "Dockerfile").read_text()))
    for pool in pools:
        assert pool.keys() == here.keys()
        home = {"PREFECT_HOME": dict(re.findall(r"(\w+)=(\S+)", steps["ENV"]))["PREFECT_HOME"]}
        assert pool["job_variables"]["env"] == here["job_variables"]["env"] | home
        assert "bicliques" in pool["job_variables"]["image"]
        assert f"prefect work-pool create {pool['name']} --type {pool['name'].partition('-')[2]}" in OPERATIONS
    [pull] = [block["pull"] for block in blocks if "pull" in block]
    [(step, given)] = pull[0].items()
    assert step in yaml.safe_load((ROOT / "prefect.yaml").read_text())["pull"][0]
    assert given == {"directory": steps["WORKDIR"]}
    [volumes] = [pool["job_variables"]["volumes"] for pool in pools if "volumes" in pool["job_variables"]]
    assert volumes == [f"/srv/mining:{steps['WORKDIR']}", f"bicliques-cache-{steps['USER']}:/cache"]
    assert f"install --directory --owner {steps['USER']} /srv/mining" in OPERATIONS


def test_the_templates_of_prefect_have_places_for_our_variables():
    """A variable without a place is dropped, and nobody says so."""
    [package] = find_spec("prefect").submodule_search_locations
    brought = Path(package) / "server/api/collections_data/views/aggregate-worker-metadata.json"
    kinds = {kind: found for package in json.loads(brought.read_text()).values() for kind, found in package.items()}
    blocks = [yaml.safe_load(block) for block in re.findall(r"(?ms)^```yaml\n(.*?)^```", OPERATIONS)]
    for pool in [block["work_pool"] for block in blocks if "work_pool" in block]:
        template = kinds[pool["name"].partition("-")[2]]["default_base_job_configuration"]
        places = template["variables"]["properties"]
        assert pool["job_variables"].keys() <= places.keys()
        assert "container_create_kwargs" not in places, "then a variable would do for GPUs"


@pytest.mark.parametrize("name", FILES)
def test_what_an_image_writes_goes_to_the_volumes(name):
    """Every user may write there and nowhere else, and an unknown user has no home but the one that is named."""
    last = instructions("FROM " + (ROOT / name).read_text().split("\nFROM ")[-1])
    [made] = [words for word, words in last if word == "RUN"]
    places = made.partition("&&")[0].split()[2:]
    assert made.startswith("mkdir --mode=1777 ")
    assert places == ["/cache", dict(last)["WORKDIR"]]
    variables = dict(re.findall(r"(\w+)=(\S+)", dict(last)["ENV"]))
    written = {key for key in variables if key in ("HOME", "XDG_CACHE_HOME") or key.endswith(("_HOME", "_DIR"))}
    assert written >= {"HOME", "XDG_CACHE_HOME", "PREFECT_HOME"}
    assert all(variables[key].split("/")[1] == "cache" for key in written)
    uses = re.findall(r"-v \"?([\w$()-]+(?: -u\))?)\"?:/cache", (ROOT / name).read_text() + OPERATIONS)
    assert set(uses) == {"bicliques-cache-$(id -u)"}, "a cache belongs to the user who made it"


@pytest.mark.parametrize("name", FILES)
def test_an_image_has_bytecode_of_the_python_that_it_has(name):
    text = (ROOT / name).read_text()
    [version] = set(re.findall(r"FROM python:(3\.\d+)-", text))
    assert re.findall(r"compileall -q \S+?/python(\S+)", text) == [version]
