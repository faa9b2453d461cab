"""The demonstration. It mines the graph that comes with the project, and says how to read the result."""

from __future__ import annotations

from pathlib import Path

from pipeline.results.results import Results
from schemas.errors import InputError

__all__ = ["demo_source", "how_to_read"]

_GRAPH = Path("examples/debian12_package_tag.parquet")


def demo_source() -> Path:
    """The file of the packages of Debian 12 and their tags.

    Raises
    ------
    InputError
        The file is missing, because only the wheel is installed.
    """
    path = Path(__file__).parents[2] / _GRAPH
    if not path.exists():
        raise InputError(f"{path} is not there: the demonstration needs the project's repository, not only its wheel")
    return path


def how_to_read(results: Results) -> str:
    """The paths of the files, and three lines of pandas that read them."""
    files = "\n".join(f"  {file}" for file in results.files)
    return (
        f"The Parquet files:\n{files}\n\nRead them with pandas:\n\n"
        f"import pandas as pd\n"
        f'bicliques = pd.read_parquet("{results.path / "bicliques"}")\n'
        f'print(bicliques.sort_values("n_left").tail())'
    )
