"""Every maximal biclique of a bipartite graph, with proof: the package `pipeline` under the name of the project.

import bicliques as bq

for left, right in bq.maximal_bicliques("purchases.csv", min_left=3, min_right=3):
    print(left, right)

results = bq.mine("purchases.csv", "OUT", min_left=3, min_right=3)
results.head()

Errors of these functions name the calls of `bicliques`, and those of `pipeline` the calls of `pipeline`.
"""

from __future__ import annotations

import os
import sys

import pipeline

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
_FOUND = os.path.dirname(pipeline.__file__ or "") or next(iter(pipeline.__path__), "")  # noqa: PTH120
_IS_ELSEWHERE = os.path.realpath(_FOUND) != os.path.realpath(os.path.join(_HOME, "pipeline"))  # noqa: PTH118
if _IS_ELSEWHERE or not hasattr(pipeline, "_HOMES"):
    _SENTENCE = (
        f"the package pipeline of bicliques is in {_HOME}, but {_FOUND} comes first on sys.path; "
        "rename that one, or give bicliques an environment of its own"
    )
    if not _IS_ELSEWHERE:  # pip puts two packages of one name into one folder
        _SENTENCE = (
            f"other software that was installed or removed has changed {_FOUND}, which is the package pipeline of "
            "bicliques; install bicliques again, in an environment of its own"
        )
    # while `python -m bicliques` imports this package, the name of the program is still -m
    if os.path.basename(next(iter(sys.argv), "")) in ("bicliques", "-m"):  # noqa: PTH119
        sys.exit(f"bicliques: {_SENTENCE}")
    raise ImportError(_SENTENCE, name="pipeline")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pipeline import *  # noqa: F403
    from pipeline import MaximalBicliques as MaximalBicliques

__all__ = pipeline.__all__


def __getattr__(name: str) -> Any:
    if name == "flows":
        from pipeline.process.neighbours import ours

        return ours(name)
    if name not in pipeline._HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(pipeline, name)
    if callable(value) and hasattr(value, "__wrapped__"):
        from pipeline.api.python_words import speaking_python

        value = speaking_python(value.__wrapped__, __name__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *pipeline._HOMES})


def program() -> None:
    """Run the command ``bicliques`` of this process, and end the process. A package that has our name is told of."""
    from pipeline.cli.main import program

    program()
