"""The steps of a run as Prefect flows: one task a stage, with retries, a schedule and a history.

`flows.mine.mine` and `flows.verify.verify` are what ``prefect.yaml`` deploys. A stage works from the run's
folder to the run's folder, so only paths, options and counters travel between tasks, and Dask stays inside
the mining task: a Prefect task for every slice would cost more than the slice.
"""

from __future__ import annotations

import os

# Before Prefect is imported: neither a flow nor the server that it may start for itself calls home, wherever
# it is run. ``prefect.toml`` says the same to servers and workers started in the project's folder.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")

# Before Dask is imported, here and in its workers: Prefect's console handler would print every step of theirs.
os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
