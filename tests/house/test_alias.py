"""`import bicliques` is `pipeline`, costs nothing, and says in one sentence when a stranger has one of our names."""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bicliques
import pipeline
from tests.house.tree import LAYERS, ROOT, clean_environment


def run(program: str, *first: Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a program with some folders before ours on its path."""
    path = ":".join(map(str, (*first, ROOT)))
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        env=clean_environment(PYTHONPATH=path, PYTHONSAFEPATH="1"),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def stranger(folder: Path, name: str, has_init: bool) -> Path:
    (folder / name).mkdir(parents=True)
    if has_init:
        (folder / name / "__init__.py").write_text("mine = 'not ours'\n")
    return folder


def test_it_has_what_pipeline_has():
    assert bicliques.__all__ == pipeline.__all__
    for name in pipeline.__all__:
        assert getattr(bicliques, name) is getattr(bicliques, name)
        assert inspect.unwrap(getattr(bicliques, name)) is inspect.unwrap(getattr(pipeline, name))  # errors differ
    assert set(pipeline.__all__) <= set(dir(bicliques))
    with pytest.raises(AttributeError, match="module 'bicliques' has no attribute 'nothing'"):
        _ = bicliques.nothing


def test_it_imports_nothing_before_it_is_used():
    program = "import sys, bicliques as bq; print({'numpy', 'pyarrow', 'numba', 'prefect'} & set(sys.modules))"
    done = run(program + "; print(callable(bq.mine))")
    assert done.stdout.splitlines() == ["set()", "True"], done.stderr


def test_it_runs_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "bicliques", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"bicliques {pipeline.__version__}\n"


@pytest.mark.parametrize("has_init", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_a_stranger_is_named_in_one_sentence(name, has_init, tmp_path):
    """A folder without ``__init__.py`` shadows nothing, because Python prefers ours."""
    program = f"import bicliques as bq; bq.{'flows' if name == 'flows' else 'mine'}; print('ours')"
    done = run(program, stranger(tmp_path, name, has_init))
    if not has_init:
        assert done.stdout == "ours\n", done.stderr
        return
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: the package {name} of bicliques is ")
    assert f"but {tmp_path / name} comes first on sys.path; rename that one" in last


@pytest.mark.parametrize("how", ["script", "module"])
def test_the_command_says_in_one_sentence_that_a_stranger_is_called_pipeline(how, tmp_path):
    folder = stranger(tmp_path / "theirs", "pipeline", True)
    script = tmp_path / "bicliques"  # as pip writes it, under the name that pyproject.toml gives it
    script.write_text("import sys\nfrom bicliques import program\nsys.exit(program())\n")
    done = subprocess.run(
        [sys.executable, *((str(script),) if how == "script" else ("-m", "bicliques")), "formats"],
        cwd=tmp_path,
        env=clean_environment(PYTHONPATH=f"{folder}:{ROOT}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"bicliques: the package pipeline of bicliques is in {ROOT}, but {folder}/pipeline ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("theirs", ["mine = 'not ours'\n", None])
def test_a_package_that_another_one_was_installed_over_is_named(theirs, tmp_path):
    """As pip does with two packages of one name; None: the other one was removed again, with what it had replaced."""
    shutil.copytree(ROOT / "bicliques", tmp_path / "bicliques")
    (tmp_path / "pipeline" / "cli").mkdir(parents=True)
    if theirs is not None:
        (tmp_path / "pipeline" / "__init__.py").write_text(theirs)
    done = subprocess.run(
        [sys.executable, "-P", "-S", "-c", "import bicliques"],
        env=clean_environment(PYTHONPATH=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: other software that was installed or removed has changed {tmp_path / 'pipeline'}, which is the "
        "package pipeline of bicliques; install bicliques again, in an environment of its own"
    )


@pytest.mark.parametrize("name", ["kernels", "schemas"])
def test_the_command_says_so_too(name, tmp_path):
    program = "import sys; from pipeline.cli.main import main; sys.exit(main(['formats']))"
    done = run(program, stranger(tmp_path, name, True))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"bicliques: the package {name} of bicliques is ")
    assert len(done.stderr.splitlines()) == 1


def test_a_stranger_called_flows_is_no_trouble_for_mining(tmp_path):
    done = run("import bicliques as bq; print(bq.mine.__name__)", stranger(tmp_path, "flows", True))
    assert done.stdout == "mine\n", done.stderr


def test_ours_through_a_link_are_ours(tmp_path):
    for name in (*LAYERS, "bicliques"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = run("import bicliques as bq; print(bq.mine.__name__)", tmp_path)
    assert done.stdout == "mine\n", done.stderr
