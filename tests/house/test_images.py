"""Where there is a daemon, an image is built, and its containers do what docs/operations.md says of them."""

import shutil
import subprocess

import pytest

from tests.house.dockerfiles import instructions
from tests.house.tree import ROOT

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]

IMAGE = "bicliques-tested"
#: Prints on how many cores a run works.
CORES = "from bicliques.pipeline.process.cores import count_cores; print(count_cores())"
#: Is stopped while it imports. The first process of a container is not ended by a signal that nobody handles.
STOPPED = """
import os, signal, sys
from bicliques import program
sys.argv = ["bicliques", "count", "in.parquet"]
sys.addaudithook(lambda event, facts: (event, facts[:1]) == ("import", ("pyarrow",)) and os.kill(1, signal.SIGTERM))
program()
"""
#: Ends as a driver that is killed.
KILLED = """
import os
from pathlib import Path
from bicliques.pipeline.run.lock import locked
with locked(Path("OUT/run.lock")):
    os._exit(9)
"""


def docker(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(["docker", *words], capture_output=True, text=True, check=False, timeout=1800)
    assert not check or ended.returncode == 0, ended.stdout + ended.stderr
    return ended


@pytest.fixture(scope="module")
def image():
    """It takes minutes, and packages from the network."""
    if shutil.which("docker") is None or docker("info", check=False).returncode:
        pytest.skip("there is no Docker daemon")
    [base] = {words.split()[0] for word, words in instructions((ROOT / "Dockerfile").read_text()) if word == "FROM"}
    if docker("image", "inspect", base, check=False).returncode and docker("pull", base, check=False).returncode:
        pytest.skip(f"{base} is not there, and cannot be fetched")
    docker("build", "--tag", IMAGE, str(ROOT))
    yield IMAGE
    docker("image", "rm", IMAGE)


def test_any_user_mines_in_containers_and_goes_on_in_others(image, tmp_path):
    shutil.copy(ROOT / "examples" / "debian12_package_tag.parquet", tmp_path / "in.parquet")
    tmp_path.chmod(0o777)
    places = ("-v", f"{tmp_path}:/data", "-v", f"{IMAGE}:/cache")
    limits = ("--user", "4242", "--read-only", "--network", "none", "--cpus", "1")

    def run(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return docker("run", "--rm", *limits, *places, image, *words, check=check)

    try:
        assert "usage: bicliques" in run().stdout
        assert run("python", "-c", CORES).stdout == "1\n"
        first = run("bicliques", "mine", "in.parquet", "-o", "OUT", "--max-results", "9", check=False)
        assert (first.returncode, "compiling" in first.stderr) == (3, True)
        assert run("python", "-c", KILLED, check=False).returncode == 9
        second = run("bicliques", "resume", "OUT", "--max-results", "none")
        assert "bicliques: 56,688, all of them" in second.stdout
        assert "compiling" not in second.stderr
        assert "verified: 56,688" in run("bicliques", "verify", "OUT").stdout
        assert run("python", "-c", STOPPED, check=False).returncode == 143
    finally:
        docker("volume", "rm", IMAGE, check=False)
