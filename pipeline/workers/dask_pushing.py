"""Small results of Dask tasks come as events, together with the news that the task has ended.

Dask fetches a result only after that: the client asks the scheduler, which asks the worker, and each answers. That took
as much processor time as all the rest of a task (docs/lab/scaling.md). An event takes one message, which goes with the
news.

The task is Dask's as before, and the result stays at the worker until the client lets it go. So an event that does not
arrive, because the scheduler was started again or another run on the same client has ended, costs nothing but time: the
result is fetched.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import distributed

from bicliques.pipeline.workers.notice import OURS

#: The events of all runs, so each driver gets those of the others, too. The scheduler keeps the last 1,000 events of a
#: topic, and a client cannot drop them, so a run must not have a topic of its own. The id of a client as the topic,
#: which the scheduler does clear, was tried and saved nothing (docs/lab/scaling.md).
_TOPIC = f"{OURS}results"
#: Results of at most so many bytes are sent, because Dask keeps what was sent lately, also after the run: the scheduler
#: the last 1,000 events and the last 1,000 batches of messages to each client, and a worker its last 1,000 batches.
MOST_BYTES = 16_000

#: Results that came, by the key of their task, and None for those that are expected. Clients of one process share it,
#: because a client has one handler for a topic.
_came: dict[str, bytes | None] = {}


def push(function: Callable[[Any], Any], argument: Any) -> Any:
    """Return ``function(argument)`` in a task, and send it to those who `listen` if it is small.

    If it is not, they are told that nothing comes, because Dask may have run the task before, on a worker that sent a
    result and died.
    """
    value = function(argument)
    packed = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    worker = distributed.get_worker()
    sent = packed if len(packed) <= MOST_BYTES else None
    worker.log_event(_TOPIC, {"key": worker.get_current_task(), "value": sent})
    return value


def listen(client: distributed.Client) -> None:
    """Have results of `push` come to this client."""
    client.subscribe_topic(_TOPIC, _take)


def unlisten(client: distributed.Client) -> None:
    """Have them come no more."""
    with suppress(Exception):  # nobody has listened, or the client is closed or has lost its scheduler
        client.unsubscribe_topic(_TOPIC)


def expect(key: str) -> None:
    """Keep the result of this task if it comes. It has to be forgotten later."""
    _came[key] = None


def came(key: str) -> tuple[Any] | None:
    """The result of a task, alone in a tuple. None if it did not come."""
    packed = _came.get(key)
    return None if packed is None else (pickle.loads(packed),)


def forget(key: str) -> None:
    """Drop the result of a task."""
    _came.pop(key, None)


def _take(event: tuple[float, dict[str, Any]]) -> None:
    message = event[1]
    if message["key"] in _came:  # others are of other clients
        _came[message["key"]] = message["value"]
