"""Runs docs/tutorial.ipynb in a fresh folder, and stores what it shows: ``python -m tests.tutorial --write``."""

import argparse
import json
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial.ipynb"
#: What else Jupyter writes into the metadata is of a machine.
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def code_cells(notebook: Any) -> list[Any]:
    """The cells that are run."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def digest_of(notebook: Any) -> str:
    """A digest of all code. The one in the metadata is of the code whose outputs are stored."""
    return sha256(json.dumps(["".join(cell["source"]) for cell in code_cells(notebook)]).encode()).hexdigest()


def run(file: Path) -> None:
    """Run the tutorial in a folder that is empty and goes afterwards, and write it to a file with what it shows.

    Raises
    ------
    RuntimeError
        If it leaves a file behind.
    """
    import nbformat  # only here, because pytest takes the warnings of Jupyter for errors
    from nbclient import NotebookClient

    notebook = nbformat.read(TUTORIAL, as_version=4)
    with TemporaryDirectory() as folder:
        how = {"kernel_name": "python3", "timeout": 300, "resources": {"metadata": {"path": folder}}}
        # Lines that a cell prints arrive in one or in several pieces
        NotebookClient(notebook, record_timing=False, coalesce_streams=True, **how).execute()
        left = sorted(path.name for path in Path(folder).iterdir())
    if left:
        raise RuntimeError(f"the tutorial leaves {', '.join(left)} behind; remove it in the last cell")
    notebook.metadata = _METADATA | {"digest": digest_of(notebook)}
    nbformat.write(notebook, file)


def main() -> None:
    """Run the tutorial, and write it."""
    parser = argparse.ArgumentParser("python -m tests.tutorial", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--write", action="store_const", const=TUTORIAL, dest="file", help="docs/tutorial.ipynb")
    where.add_argument("--output", type=Path, dest="file", metavar="FILE", help="another notebook")
    run(parser.parse_args().file)


if __name__ == "__main__":
    main()
