"""The documentation site, which `make docs` makes of the documents as they are, and of docstrings.

Its root is the root of the repository, so a link in a document leads to the same place here and where Git is shown.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

project = "bicliques"
author = copyright = "The developers of bicliques"
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc"]
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**"]
exclude_patterns = [".*", "bicliques", "build", "examples", "flows", "kernels", "pipeline", "schemas", "tests"]
root_doc = "README"
default_role = "literal"
smartquotes = False  # two hyphens begin an option
myst_heading_anchors = 4
nb_execution_mode = "off"  # tests run the tutorial
autodoc_typehints = "none"
numpydoc_show_class_members = False
#: All of numpydoc's rules but: a longer text, related functions, types that are words; and what tests/house look at, an
#: example of each function and class that runs, and what a function returns. Of a method its first line says that.
numpydoc_validation_checks = {"all", "ES01", "SA01", "PR06", "EX01", "RT01"}
numpydoc_validation_exclude = {r"\.errors\."}  # users make none
add_module_names = False

html_theme = "furo"
html_title = "bicliques"
html_copy_source = False

#: The pages by what a reader is about to do.
NAVIGATION = {
    "Start": "install tutorial commands words",
    "Guides": "formats asking-for-less interesting guides/text communities holes counts cliques what-changed "
    "report guides/joining guides/database scikit-learn generate",
    "In production": "operations publish guides/catalogs guides/offline guides/slurm multi-gpu power",
    "Reference": "output options python/README limits versions /CHANGELOG",
    "How it works": "design kernels speed benchmarks related",
    "Development": "/CONTRIBUTING code-tour lab/README",
}
#: Pages that list those below them in words, too.
BELOW = {"docs/python/README": "functions results records estimator", "docs/lab/README": "*"}


def navigate(app: Any, page: str, text: list[str]) -> None:
    """Append the list of pages, which only the site can read."""
    titles = NAVIGATION if page == root_doc else {"Below": BELOW[page]} if page in BELOW else {}
    for title, pages in titles.items():
        names = [name if page in BELOW or name.startswith("/") else f"/docs/{name}" for name in pages.split()]
        text[0] += "\n".join(["\n```{toctree}", ":hidden:", ":glob:", f":caption: {title}", *names, "```\n"])


def escape(app: Any, what: str, name: str, documented: Any, options: Any, lines: list[str]) -> None:
    """In a docstring a star before a suffix, as in *.parquet, begins no emphasis."""
    lines[:] = [re.sub(r"(?<=[\s(/])\*(?=\.\w)", r"\\*", line) for line in lines]


def open_with_readme(app: Any, error: Exception | None) -> None:
    """The README is what a server shows of a folder."""
    if error is None:
        shutil.copy(Path(app.outdir, f"{root_doc}.html"), Path(app.outdir, "index.html"))


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("build-finished", open_with_readme)
    app.connect("source-read", navigate)
    app.connect("autodoc-process-docstring", escape)
