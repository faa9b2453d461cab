"""The events that the server has got of a run or an asset."""

from __future__ import annotations

import time

from prefect.client.orchestration import get_client
from prefect.events.filters import EventFilter, EventNameFilter, EventOrder, EventResourceFilter
from prefect.events.schemas.events import ReceivedEvent

__all__ = ["CHANGED", "COMPLETE", "MADE", "PUBLISHED", "READ", "events"]

COMPLETE, CHANGED, PUBLISHED = "bicliques.run.complete", "bicliques.run.changed", "bicliques.run.published"
MADE, READ = "prefect.asset.materialization.succeeded", "prefect.asset.referenced"


def events(n: int, beginning: str, **resource: str) -> list[ReceivedEvent]:
    """The first events of a resource whose names begin so, at least `n`, in the order in which they were sent."""
    wanted = EventFilter(
        event=EventNameFilter(prefix=[beginning]),
        resource=EventResourceFilter(labels={f"prefect.resource.{name}": [value] for name, value in resource.items()}),
        order=EventOrder.ASC,
    )
    deadline = time.monotonic() + 120
    with get_client(sync_client=True) as client:
        while True:
            found = client.read_events(wanted, limit=50).events
            if len(found) >= n or time.monotonic() > deadline:
                return list(found)
            time.sleep(0.1)
