"""The flow `verify`: read the bicliques of a complete run again and check them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from bicliques.flows import tasks
from bicliques.flows.cards import publish_verification
from bicliques.flows.events import note, tell
from bicliques.flows.names import Keys, name_of_verifying
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import here
from bicliques.pipeline.run.store import store_at
from bicliques.pipeline.series.runs import series_of
from bicliques.schemas.values import at_home


# Prefect reads the part of the docstring below "Args:", and shows it beside the fields of the form of a run.
@flow(
    name="verify",
    flow_run_name=name_of_verifying,
    on_completion=[tell],
    on_failure=[tell],
    on_cancellation=[tell],
    on_crashed=[tell],
)
def verify(
    output: str,
    sample: int = 1000,
    seed: int = 0,
    bound_time: float = 60.0,
    complete: tuple[int, int] | None = None,
    notify: str | None = None,
) -> dict[str, Any]:
    """Check the results of a complete run from its files alone. The flow fails if a check fails.

    Returns ``folder``, ``count`` and ``fingerprint`` (decimal string) of the rows that were read.

    Args:
        output: Folder of the run.
        sample: Number of rows to compare with the input. They are chosen at random.
        seed: Seed of that choice.
        bound_time: Of a run that found the largest: most seconds for a second search, which counts that none is larger.
        complete: The size of bicliques of the input to draw, such as [1, 1]. All maximal bicliques around them must be
            rows. None draws nothing.
        notify: A notification block, such as custom-webhook/on-call. It is told if the flow fails, crashes or is
            cancelled.
    """
    output = at_home(output)
    path = Path(output)
    folder = here(path)
    note(folder)
    keys = Keys.of(series_of(RunFolder(folder).origin()), output)
    found = tasks.verify(path, sample, seed, bound_time, complete, keys)
    publish_verification(found, folder, keys)
    return {
        "folder": str(store_at(folder.absolute()).address),
        "count": found.count,
        "fingerprint": str(found.fingerprint),
    }
