"""Tells others through the Prefect server how a run ended: programs by events and assets, people by a notification.

An automation of the server can start whatever comes next. docs/operations.md has examples. An asset is the result of a
run: what was made, from which input, and how many bicliques it has. It is the same every night. Its key has the folder
of the run with the word ``date`` in place of the day.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from prefect.assets import Asset, AssetProperties
from prefect.blocks.core import Block
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.events import emit_event
from prefect.flows import Flow
from prefect.logging.loggers import flow_run_logger
from prefect.runtime import flow_run as this_run
from prefect.tasks import MaterializingTask
from prefect.utilities.urls import url_for

from bicliques.pipeline.compare.difference import Difference
from bicliques.pipeline.ingest.sources.names import STDIN
from bicliques.pipeline.publishing.publish_run import Published
from bicliques.pipeline.results.listing import shown
from bicliques.pipeline.results.results import Results, open_results
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import url_of
from bicliques.pipeline.run.store import store_at
from bicliques.pipeline.series.runs import is_run
from bicliques.schemas.errors import BicliqueError

COMPLETE = "bicliques.run.complete"
CHANGED = "bicliques.run.changed"
PUBLISHED = "bicliques.run.published"


def emit_complete(
    results: Results,
    series: str,
    found: Difference | None = None,
    above: float | None = None,
    url: str | None = None,
    is_new: bool = True,
) -> None:
    """Send the event that a run has become complete; after it that much has changed, and that the run was published.

    Parameters
    ----------
    results : Results
        Of a complete run.
    series : str
        The input, as a run records it, with placeholders in place of days.
    found : Difference or None
        What changed since the run before. None if nothing was compared.
    above : float or None
        The share from 0 to 1 above which much has changed. None: any change is told.
    url : str or None
        Where the run was published. None if it was not.
    is_new : bool
        Whether the run has become complete. If not, only the event of its publication is sent.

    Notes
    -----
    The events have the same resource, ``bicliques.run.`` with the identity of the run. Prefect adds the flow run and
    its deployment. If the server does not take an event, Prefect logs it, and the run goes on.
    """
    manifest, folder = results.manifest, str(store_at(results.path.absolute()).address)
    resource = {
        "prefect.resource.id": f"bicliques.run.{RunFolder(results.path).run_id()}",
        "prefect.resource.name": folder,
        "bicliques.series": series,
    }
    facts = {
        "folder": folder,
        "series": series,
        "count": manifest.count,
        "fingerprint": None if manifest.fingerprint is None else str(manifest.fingerprint),
        "seconds": round(sum(manifest.seconds.values()), 3),
    }
    facts |= {} if found is None else _changes(found)
    facts |= {} if url is None else {"published": url}
    first = emit_event(COMPLETE, resource, payload=facts) if is_new else None
    if is_new and found is not None and (found.share is None or found.share > (above or 0.0)):
        emit_event(CHANGED, resource, payload=facts, follows=first)
    if url is not None:
        emit_event(PUBLISHED, resource, payload=facts, follows=first)


def _changes(found: Difference) -> dict[str, Any]:
    return {
        "since": str(found.old_run.folder),
        "gone": len(found.gone),
        "new": len(found.new),
        "unchanged": found.unchanged,
        "share": None if found.share is None else round(found.share, 6),
    }


#: Most characters of a key.
_LONGEST = 512
#: What Prefect takes in no key.
_REFUSED = re.compile(r"[\x00-\x20#?&%\"'<>\[\]{}|\\^`\ud800-\udfff]")


def asset_key(place: str) -> str:
    """The key of an asset of Prefect, by its place.

    Parameters
    ----------
    place : str
        An absolute path or a URL, with placeholders such as ``{date}`` in place of days.

    Notes
    -----
    A character that Prefect does not take becomes a hyphen. Such a key ends with six digits of a digest of the place,
    so two places have two keys.

    Examples
    --------
    >>> asset_key("/srv/runs/{date}")
    'file:///srv/runs/date'
    """
    url = url_of(place)
    scheme, _, rest = (f"file://{place}" if url is None else url).partition("://")
    rest = re.sub(r"\{(date|time)\}", r"\1", rest.rstrip("/"))
    key = f"{re.sub('[^a-z0-9]', '', scheme.lower())}://{_REFUSED.sub('-', rest)}"
    if key == f"{scheme.lower()}://{rest}" and len(key) <= _LONGEST:
        return key
    digest = hashlib.blake2b(place.encode(errors="surrogateescape"), digest_size=3).hexdigest()
    return f"{key[: _LONGEST - len(digest) - 1]}-{digest}"


def record_asset(results: Results, series: str, place: str) -> None:
    """Tell Prefect that a complete run has made its asset anew.

    Parameters
    ----------
    series : str
        The input, as a run records it, with placeholders in place of days. Standard input is no asset.
    place : str
        The folder of the run, with placeholders in place of days.
    """
    manifest = results.manifest
    facts = _facts(results) | {
        "input": manifest.input["digest"],
        **{name: manifest.input[name] for name in ("n_left", "n_right", "n_edges")},
    }
    words = AssetProperties(
        name=shown(f"bicliques of {series}"), description="Maximal bicliques in Parquet, and their proof"
    )
    _record(Asset(key=asset_key(place), properties=words), [] if series == STDIN else [series], facts)


def record_published(published: Published, results: Results, folder: str, place: str) -> None:
    """Tell Prefect that a place has got a copy of a complete run.

    Parameters
    ----------
    folder : str
        The folder of the run, with placeholders in place of days. The copy depends on it.
    place : str
        Where the run was published, as `folder`, without secrets and options.
    """
    facts = _facts(results) | {"url": published.url, "files": published.files, "bytes": published.bytes}
    words = AssetProperties(
        name=shown(f"published at {place}"), description="A copy of a complete run, for other programs"
    )
    _record(Asset(key=asset_key(place), properties=words), [folder], facts)


def _facts(results: Results) -> dict[str, Any]:
    manifest = results.manifest
    return {
        "folder": str(store_at(results.path.absolute()).address),
        "count": manifest.count,
        "fingerprint": None if manifest.fingerprint is None else str(manifest.fingerprint),
    }


def _record(asset: Asset, inputs: list[str], facts: dict[str, Any]) -> None:
    """Run a task that makes the asset from other places."""
    sources: list[Asset | str] = [Asset(key=asset_key(place)) for place in inputs]
    task: MaterializingTask[..., None] = MaterializingTask(
        _add, name="record", assets=[asset], asset_deps=sources, materialized_by="bicliques", cache_policy=NO_CACHE
    )
    task(asset, facts)


def _add(asset: Asset, facts: dict[str, Any]) -> None:
    """Give the asset its facts; only a task may do so."""
    asset.add_metadata(facts)


#: The label of a flow run that names its folder. A worker reads the label when it tells of a run that was killed.
_FOLDER = "folder"
#: The label of a flow run whose state Unchanged is told to nobody yet.
_QUIET = "quiet"


def note(folder: Path, name: str | None = None, quiet: bool = False) -> None:
    """Label the current flow run with its folder, and give it another name if there is one. Nothing outside a flow.

    With `quiet`, nobody is told if the run ends as Unchanged.
    """
    if this_run.id is None:
        return
    with get_client(sync_client=True) as client:
        client.update_flow_run_labels(this_run.id, {_FOLDER: str(store_at(folder.absolute()).address), _QUIET: quiet})
        if name is not None:
            client.set_flow_run_name(this_run.id, name)


def tell(flow: Flow[Any, Any], flow_run: FlowRun, state: State[Any]) -> None:
    """A hook that tells the block in the parameter ``notify`` how the run ended, and which runs had to be left out.

    Nothing is sent without that parameter. Nothing is sent either if no run was left out, and the state is called
    Completed, or Unchanged for fewer nights than are to be told. If sending fails, the log of the run says so.
    """
    block_name = flow_run.parameters.get("notify")
    if block_name is None:
        return
    with get_client(sync_client=True) as client:
        flow_run = client.read_flow_run(flow_run.id)  # with the name and the label that it got since it began
        skipped = _skipped_meanwhile(client, flow_run)
    is_well = state.name == "Completed" or (state.name == "Unchanged" and flow_run.labels.get(_QUIET))
    if state.is_completed() and is_well and not skipped:
        return
    ended = "Cancelled" if state.is_cancelling() else state.name or ""
    block: Any = Block.load(block_name)  # not awaitable here: a hook runs in a thread without an event loop
    with block.raise_on_failure():
        block.notify(_body(flow, flow_run, state, ended, skipped), subject=f"bicliques: {flow.name} {ended.lower()}")
    flow_run_logger(flow_run, flow).info("told %s", block_name)


def _body(flow: Flow[Any, Any], flow_run: FlowRun, state: State[Any], ended: str, skipped: list[str]) -> str:
    lines = [f"Flow run {shown(flow_run.name)} of {flow.name} ended as {ended}: {shown(state.message)}"]
    if flow_run.expected_start_time:
        lines.append(f"Due: {_minute(flow_run.expected_start_time)}")
    folder = flow_run.labels.get(_FOLDER)
    if folder is not None:
        lines += [f"Folder: {shown(folder)}", f"Bicliques: {shown(_count(Path(str(folder))))}"]
    address = url_for(flow_run)
    if address:
        lines.append(f"Flow run: {address}")
    if skipped:
        lines.append(f"Cancelled before they began, while this run was under way: those due {', '.join(skipped)}")
    return "\n".join(lines)


def _count(folder: Path) -> str:
    if url_of(folder) is None and not is_run(folder):
        return "none, because no run has begun there"
    try:
        results = open_results(folder)
    except BicliqueError as error:
        return f"none ({error})"
    return f"{len(results):,}, all of them" if results.complete else f"{len(results):,} so far, not all"


def _skipped_meanwhile(client: Any, flow_run: FlowRun) -> list[str]:
    """When the runs of the same deployment were due that the server cancelled because this run had the slot.

    A worker never begins such runs, so none of their hooks is called.
    """
    if flow_run.deployment_id is None or flow_run.start_time is None:
        return []
    wanted = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=[flow_run.deployment_id]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.CANCELLED])),
    )
    found = client.read_flow_runs(flow_run_filter=wanted, sort=FlowRunSort.EXPECTED_START_TIME_DESC)
    since = flow_run.start_time
    return sorted(
        _minute(run.expected_start_time)
        for run in found
        if run.run_count == 0 and run.expected_start_time and run.state and run.state.timestamp >= since
    )


def _minute(moment: Any) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
