"""Every maximal biclique of a bipartite graph, with proof.

import bicliques as bq

for left, right in bq.maximal_bicliques("purchases.csv", min_left=3, min_right=3):
    print(left, right)

results = bq.mine("purchases.csv", "OUT", min_left=3, min_right=3)
results.head()

Errors of these functions name keywords, where the command line names options (`bicliques.schemas.errors.spoken`). A
public name is imported when it is first used, so that ``bicliques --help`` does not wait for the compiler. Nothing else
is imported here, because Ctrl-C is not handled before the command line is imported (`bicliques.pipeline.cli.main`).

The packages `bicliques.schemas`, `kernels`, `pipeline` and `flows` lie next to this folder in a checkout, where links
lead to them, and inside it in a wheel.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for that of typing, whose import takes two milliseconds
if TYPE_CHECKING:
    from typing import Any

    from bicliques.pipeline import __version__
    from bicliques.pipeline.api.counting import clique_counts, count, pq_counts
    from bicliques.pipeline.api.cross_tables import from_table
    from bicliques.pipeline.api.diffing import diff
    from bicliques.pipeline.api.dry_running import dry_run
    from bicliques.pipeline.api.estimator import MaximalBicliques as MaximalBicliques
    from bicliques.pipeline.api.iterating import arrays, maximal_bicliques
    from bicliques.pipeline.api.looking import Look, look
    from bicliques.pipeline.api.refreshing import refresh
    from bicliques.pipeline.api.runs import largest, mine, open_run, resume, verify
    from bicliques.pipeline.compare.difference import Difference
    from bicliques.pipeline.publishing.publish_run import Published, publish
    from bicliques.pipeline.results.counted import Count
    from bicliques.pipeline.results.report.make import report
    from bicliques.pipeline.results.results import Results
    from bicliques.pipeline.results.run_status import status
    from bicliques.pipeline.rows.tabular import to_pandas
    from bicliques.pipeline.series.pruning import prune
    from bicliques.pipeline.synthetic.generating import Generated, generate

__all__ = [
    "Count",
    "Difference",
    "Generated",
    "Look",
    "Published",
    "Results",
    "__version__",
    "arrays",
    "clique_counts",
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
    "pq_counts",
    "prune",
    "publish",
    "refresh",
    "report",
    "resume",
    "status",
    "to_pandas",
    "verify",
]

#: Public name -> module that defines it. No module is called like a public name: importing it would hide the name.
_HOMES = {
    "Count": "pipeline.results.counted",
    "Difference": "pipeline.compare.difference",
    "Generated": "pipeline.synthetic.generating",
    "Look": "pipeline.api.looking",
    "MaximalBicliques": "pipeline.api.estimator",  # not in `__all__`, because it needs scikit-learn
    "Published": "pipeline.publishing.publish_run",
    "Results": "pipeline.results.results",
    "__version__": "pipeline",
    "arrays": "pipeline.api.iterating",
    "clique_counts": "pipeline.api.counting",
    "count": "pipeline.api.counting",
    "diff": "pipeline.api.diffing",
    "dry_run": "pipeline.api.dry_running",
    "from_table": "pipeline.api.cross_tables",
    "generate": "pipeline.synthetic.generating",
    "largest": "pipeline.api.runs",
    "look": "pipeline.api.looking",
    "maximal_bicliques": "pipeline.api.iterating",
    "mine": "pipeline.api.runs",
    "open_run": "pipeline.api.runs",
    "pq_counts": "pipeline.api.counting",
    "prune": "pipeline.series.pruning",
    "publish": "pipeline.publishing.publish_run",
    "refresh": "pipeline.api.refreshing",
    "report": "pipeline.results.report.make",
    "resume": "pipeline.api.runs",
    "status": "pipeline.results.run_status",
    "to_pandas": "pipeline.rows.tabular",
    "verify": "pipeline.api.runs",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "flows":
        return import_module(f"{__name__}.flows")
    if name not in _HOMES:
        advice = "; call open_run" if name in ("load", "open", "read") else ""
        advice = f"; call open_run(folder).{name}()" if name in ("cover", "explain", "plot", "top") else advice
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{advice}")
    from bicliques.pipeline.process.startup import getting_ready

    with getting_ready():
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def program() -> None:
    """Run the command ``bicliques`` of this process, and end the process."""
    from bicliques.pipeline.cli.main import program

    program()
