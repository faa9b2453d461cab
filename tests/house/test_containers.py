"""The images are made of what is there, run as nobody in particular, and are what the documents say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from pipeline.cli.commands import parser
from tests.house.tree import LAYERS, ROOT, tracked

FILES = ("Dockerfile", "Dockerfile.cuda")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
LINTER = Path(sys.executable).parent / "hadolint"


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile and their arguments, with continued lines joined and without comments."""
    joined = re.sub(r"(?m)^#.*\n", "", text).replace("\\\n", " ")
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines() if line.strip()]


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
    assert version is not None
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
    for pool in pools:
        assert pool.keys() == here.keys()
        assert pool["job_variables"]["env"] == here["job_variables"]["env"]
        assert "bicliques" in pool["job_variables"]["image"]
        assert f"prefect work-pool create {pool['name']} --type {pool['name'].partition('-')[2]}" in OPERATIONS
    [pull] = [block["pull"] for block in blocks if "pull" in block]
    [(step, given)] = pull[0].items()
    assert step in yaml.safe_load((ROOT / "prefect.yaml").read_text())["pull"][0]
    workdir = dict(instructions((ROOT / "Dockerfile").read_text()))["WORKDIR"]
    assert given == {"directory": workdir}


def test_the_templates_of_prefect_have_places_for_the_variables_of_the_documents():
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


def test_docker_accepts_them():
    """Where there is a daemon. It reads the files and builds nothing."""
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("there is no Docker daemon")
    for name in FILES:
        subprocess.run(["docker", "build", "--check", "--file", name, "."], cwd=ROOT, check=True, timeout=300)
