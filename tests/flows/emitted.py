"""The events that the server has got of a run or an asset."""

import time

from prefect.client.orchestration import get_client
from prefect.events.filters import EventFilter, EventNameFilter, EventOrder, EventResourceFilter
from prefect.events.schemas.events import ReceivedEvent

COMPLETE, CHANGED, PUBLISHED = "bicliques.run.complete", "bicliques.run.changed", "bicliques.run.published"
MADE, READ = "prefect.asset.materialization.succeeded", "prefect.asset.referenced"


def events(n: int, beginning: str, **resource: str) -> list[ReceivedEvent]:
    """The events of a resource whose names begin so, in the order in which they were sent, once `n` are there.

    `n` is how many are expected. That an event is there does not mean that those sent before it are: what the server
    could not write, as to an SQLite file that is locked, goes back to the end of its queue.
    """
    wanted = EventFilter(
        event=EventNameFilter(prefix=[beginning]),
        resource=EventResourceFilter(labels={f"prefect.resource.{name}": [value] for name, value in resource.items()}),
        order=EventOrder.ASC,
    )
    deadline = time.monotonic() + 300  # the server waits up to 60 s for a lock, each time that it writes
    with get_client(sync_client=True) as client:
        while True:
            found = client.read_events(wanted, limit=50).events
            if len(found) >= n or time.monotonic() > deadline:
                return list(found)
            time.sleep(0.1)
