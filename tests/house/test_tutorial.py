"""The tutorial runs from its first cell to its last, and is kept without its outputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.runs import ROOT, environment

TUTORIAL = ROOT / "docs" / "tutorial.ipynb"


def test_it_runs(tmp_path: Path) -> None:
    done = tmp_path / "done.ipynb"
    program = (
        "import nbformat, nbclient, sys\n"
        "notebook = nbformat.read(sys.argv[1], 4)\n"
        "place = {'metadata': {'path': sys.argv[2]}}\n"
        "nbclient.NotebookClient(notebook, timeout=300, kernel_name='python3', resources=place).execute()\n"
        "nbformat.write(notebook, sys.argv[3])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(TUTORIAL), str(TUTORIAL.parent), str(done)],
        env=environment() | {"IPYTHONDIR": str(tmp_path), "TMPDIR": str(tmp_path), "JUPYTER_PLATFORM_DIRS": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    cells = [cell for cell in json.loads(done.read_text())["cells"] if cell["cell_type"] == "code"]
    printed = "".join(str(cell["outputs"]) for cell in cells)
    assert "56,688 maximal bicliques" in printed
    assert "go on with: bicliques resume" in printed
    shown = [output.get("data", {}) for cell in cells for output in cell["outputs"]]
    assert sum("<svg" in str(data.get("text/html")) for data in shown) == 1, "the picture that the page has, too"
    assert sum("image/png" in data for data in shown) == 1, "the picture of its own"
    assert not list(tmp_path.glob("tutorial-*")), "it cleans up"


def test_it_is_kept_without_outputs() -> None:
    for cell in json.loads(TUTORIAL.read_text())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
