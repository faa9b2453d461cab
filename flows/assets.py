"""The result of a run as an asset of Prefect: what was made, from which input, and how many bicliques it has.

An asset is the same every night. Its key has the folder of the run with the word ``date`` in place of the day.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from prefect.assets import Asset, AssetProperties
from prefect.cache_policies import NO_CACHE
from prefect.tasks import MaterializingTask

from bicliques.pipeline.ingest.sources.names import STDIN
from bicliques.pipeline.publishing.publish_run import Published
from bicliques.pipeline.results.listing import shown
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.run.names import url_of
from bicliques.pipeline.run.store import store_at

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
