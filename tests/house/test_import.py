"""`import bicliques` costs nothing, and software that is called as one of our rooms is no trouble."""

import re
import subprocess
import sys
from pathlib import Path

import bicliques as bq
from tests.house.tree import LAYERS, ROOT, clean_environment, text_of, tracked


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


def test_it_imports_nothing_before_it_is_used():
    program = "import sys, bicliques as bq; print({'numpy', 'pyarrow', 'numba', 'prefect'} & set(sys.modules))"
    done = run(program + "; print(callable(bq.mine))")
    assert done.stdout.splitlines() == ["set()", "True"], done.stderr


def test_it_runs_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "bicliques", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"bicliques {bq.__version__}\n"


def test_other_software_may_have_the_name_of_a_room(tmp_path):
    """As `kernels` of Hugging Face, which the same people have installed."""
    for name in LAYERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("mine = 'not ours'\n")
    theirs = ", ".join(f"{name}.mine" for name in LAYERS)
    done = run(
        f"import bicliques as bq, {', '.join(LAYERS)}; print(*{{{theirs}}}, bq.mine.__name__, bq.flows.__name__)",
        tmp_path,
    )
    assert done.stdout == "not ours mine bicliques.flows\n", done.stderr


def test_nothing_of_ours_is_imported_without_the_name_of_the_project():
    """Otherwise a module could be there twice, under two names."""
    short = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(LAYERS)})\b(?!.*\bimport bicliques)", re.MULTILINE)
    assert [str(path) for path in tracked() if path.suffix == ".py" and short.search(text_of(path))] == []
    assert short.search("import os\n    from pipeline.run import folder")
