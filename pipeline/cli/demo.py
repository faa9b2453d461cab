"""The demonstration. It mines the graph that comes with the project, and says how to read the result."""

from __future__ import annotations

from pathlib import Path

from pipeline.results.results import Results
from schemas.errors import InputError

__all__ = ["demo_source", "how_to_read"]

_GRAPH = Path("examples/debian12_package_tag.parquet")
_PACKAGE = Path(__file__).parents[1]


def demo_source() -> Path:
    """The file of the packages of Debian 12 and their tags.

    Raises
    ------
    InputError
        The file is missing.
    """
    places = (_PACKAGE / _GRAPH, _PACKAGE.parent / _GRAPH)  # in a wheel, and in the repository
    for path in places:
        if path.exists():
            return path
    raise InputError(f"{places[0]} is not there; install the project again")


def how_to_read(results: Results) -> str:
    """The paths of the files, and three lines of pandas that read them."""
    files = "\n".join(f"  {file}" for file in results.files)
    return (
        f"The Parquet files:\n{files}\n\nRead them with pandas:\n\n"
        f"import pandas as pd\n"
        f'bicliques = pd.read_parquet("{results.path / "bicliques"}", columns=["n_left", "n_right", "left", "right"])\n'
        f'print(bicliques.sort_values("n_left").tail())'
    )
