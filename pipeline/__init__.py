"""The steps of a run, the engine seam, Dask and Parquet; and the Python API.

import pipeline

results = pipeline.mine("purchases.csv", "OUT", min_left=2, min_right=2)
results.to_pandas(columns=["left", "right"])

Errors of these functions name keywords, where the command line names options (`pipeline.api.python_words`). A public
name is imported when it is first used, so that ``bicliques --help`` does not wait for the compiler. Nothing else is
imported here, because Ctrl-C is not handled before the command line is imported; see `pipeline.cli.main`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for that of typing, whose import takes two milliseconds
if TYPE_CHECKING:
    from typing import Any

    from pipeline.api.counting import count
    from pipeline.api.cross_tables import from_table
    from pipeline.api.dry_running import dry_run
    from pipeline.api.estimator import MaximalBicliques as MaximalBicliques
    from pipeline.api.iterating import maximal_bicliques
    from pipeline.api.looking import Look, look
    from pipeline.api.runs import largest, mine, open_run, resume, verify
    from pipeline.compare.difference import Difference
    from pipeline.compare.diffing import diff
    from pipeline.publishing.publish_run import Published, publish
    from pipeline.results.counted import Count
    from pipeline.results.report.make import report
    from pipeline.results.results import Results
    from pipeline.results.run_status import status
    from pipeline.rows.frames import to_pandas
    from pipeline.run.version import __version__
    from pipeline.series.pruning import prune
    from pipeline.synthetic.generated import Generated
    from pipeline.synthetic.generating import generate

__all__ = [
    "Count",
    "Difference",
    "Generated",
    "Look",
    "Published",
    "Results",
    "__version__",
    "count",
    "diff",
    "dry_run",
    "from_table",
    "generate",
    "largest",
    "look",
    "maximal_bicliques",
    "mine",
    "open_run",
    "prune",
    "publish",
    "report",
    "resume",
    "status",
    "to_pandas",
    "verify",
]

#: Public name -> module that defines it. No module is called like a public name: importing it would hide the name.
_HOMES = {
    "Count": "results.counted",
    "Difference": "compare.difference",
    "Generated": "synthetic.generated",
    "Look": "api.looking",
    "MaximalBicliques": "api.estimator",  # not in `__all__`, because it needs scikit-learn
    "Published": "publishing.publish_run",
    "Results": "results.results",
    "__version__": "run.version",
    "count": "api.counting",
    "diff": "compare.diffing",
    "dry_run": "api.dry_running",
    "from_table": "api.cross_tables",
    "generate": "synthetic.generating",
    "largest": "api.runs",
    "look": "api.looking",
    "maximal_bicliques": "api.iterating",
    "mine": "api.runs",
    "open_run": "api.runs",
    "prune": "series.pruning",
    "publish": "publishing.publish_run",
    "report": "results.report.make",
    "resume": "api.runs",
    "status": "results.run_status",
    "to_pandas": "rows.frames",
    "verify": "api.runs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from pipeline.process.neighbours import refuse_strangers
    from pipeline.process.startup import getting_ready

    with getting_ready():
        refuse_strangers()
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        if isinstance(value, type(__getattr__)):
            from pipeline.api.python_words import speaking_python

            value = speaking_python(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
