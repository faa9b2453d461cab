"""The steps of a run as Prefect flows: one task per step, with retries, a schedule and a history.

`flows.mine.mine` and `flows.verify.verify` are what ``prefect.yaml`` deploys. A step works from the run's
folder to the run's folder, so only paths, options and counters travel between tasks, and Dask stays inside
the mining task: a Prefect task for every slice would cost more than the slice.
"""

from __future__ import annotations

import os

# Set before Prefect and Dask are imported, so that they hold wherever a flow is called; the environment of the
# user goes before them. ``prefect.toml`` is for servers and workers, which are started in the project's folder.
_SETTINGS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    # A flow without a server starts one for itself; the default of 20 s is too little for two busy cores.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    # Prefect's console handler would print every step of every Dask worker.
    "DASK_LOGGING__DISTRIBUTED": "critical",
}
for _name, _value in _SETTINGS.items():
    os.environ.setdefault(_name, _value)
