"""The steps of a run, the engine seam, Dask and Parquet; and the Python API.

import pipeline

results = pipeline.mine("purchases.csv", "OUT", min_left=2, min_right=2)
results.to_pandas(columns=["left", "right"])
"""

from __future__ import annotations

from pipeline.api import mine, open_run, resume, verify
from pipeline.counting import count
from pipeline.dry_run import dry_run
from pipeline.results import Count, Results
from pipeline.version import __version__

__all__ = ["Count", "Results", "__version__", "count", "dry_run", "mine", "open_run", "resume", "verify"]
