"""The steps of a run as Prefect flows: one task per step, with retries, a schedule and a history.

``prefect.yaml`` deploys the flows `flows.mine.mine` and `flows.verify.verify`. A step reads from the run's folder and
writes to it, so only paths, options and counters travel between tasks. Dask stays inside the mining task, because a
Prefect task per slice would cost more than the slice.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

if find_spec("prefect") is None:
    raise ModuleNotFoundError(
        "flows need Prefect, which is not installed (pip install 'bicliques[prefect]'); pipeline runs without it",
        name="prefect",
    )

# These variables are set before Prefect and Dask are imported, so that they hold wherever a flow is called. What the
# user's environment sets is kept. ``prefect.toml`` is for servers and workers, which start in the project's folder.
_SETTINGS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    # A flow without a server starts its own server. The default of 20 s for that is too little on two busy cores.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    # Prefect's console handler would print every step of every Dask worker.
    "DASK_LOGGING__DISTRIBUTED": "critical",
}
for _name, _value in _SETTINGS.items():
    os.environ.setdefault(_name, _value)
