"""The steps of a run, the engine seam, Dask and Parquet; and the Python API.

import pipeline

results = pipeline.mine("purchases.csv", "OUT", min_left=2, min_right=2)
results.to_pandas(columns=["left", "right"])

A public name is imported when it is first used, so that ``bicliques --help`` does not wait for the compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.api import mine, open_run, resume, verify
    from pipeline.counting import count
    from pipeline.dry_running import dry_run
    from pipeline.pruning import prune
    from pipeline.reporting.make import report
    from pipeline.results import Count, Results
    from pipeline.run_status import status
    from pipeline.version import __version__

__all__ = [
    "Count",
    "Results",
    "__version__",
    "count",
    "dry_run",
    "mine",
    "open_run",
    "prune",
    "report",
    "resume",
    "status",
    "verify",
]

#: Public name -> module that defines it. No module is called like a public name: importing it would hide the name.
_HOMES = {
    "Count": "results",
    "Results": "results",
    "__version__": "version",
    "count": "counting",
    "dry_run": "dry_running",
    "mine": "api",
    "open_run": "api",
    "prune": "pruning",
    "report": "reporting.make",
    "resume": "api",
    "status": "run_status",
    "verify": "api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pipeline.startup import getting_ready

    with getting_ready():
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
