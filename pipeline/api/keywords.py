"""The keywords of the Python calls, for type checkers. Names, types and calls are those of the table of options.

`pipeline.api.table.with_options` gives each call its signature and the description of its options; a test compares.
"""

from __future__ import annotations

import os
from typing import Literal, TypedDict

from bicliques.pipeline.workers.devices import Devices
from bicliques.pipeline.workers.options import Scheduler
from bicliques.schemas.options import Ids, LabelType, Order, RootSide, Where
from bicliques.schemas.reading import Conditions
from bicliques.schemas.search import By, Labels


class _Reading(TypedDict, total=False):
    strict: bool
    format: str | None
    left: str | int | None
    right: str | int | None
    where: Conditions
    delimiter: str | None
    skip_lines: int | None
    header: bool | None
    label_type: LabelType
    min_weight: float | None
    weight: str | int | None
    skip_bad_lines: bool


class _Workers(TypedDict, total=False):
    workers: int | None
    scheduler: Scheduler | None
    devices: Devices | None
    device_memory: str | None


class _Session(_Workers, total=False):
    slice_seconds: float
    rmm_pool: str | None
    spill: bool


class _How(_Reading, total=False):
    engine: str
    root_side: RootSide
    order: Order


class _Search(_How, total=False):
    min_left: int
    min_right: int
    max_left: int | None
    max_right: int | None
    containing_left: Labels
    containing_right: Labels
    containing_left_from: str | os.PathLike[str] | None
    containing_right_from: str | os.PathLike[str] | None
    ingest_on: Where


class _NewRun(_Search, _Session, total=False):
    overwrite: bool
    report: bool
    ids: Ids
    time_limit: float | None


class _Missing(TypedDict, total=False):
    missing_pairs: int | None
    missing_each: int | None
    missing_left: int | None
    missing_right: int | None


class Mine(_NewRun, _Missing, total=False):
    """Those of `bicliques.mine`."""

    undirected: bool
    count_only: bool
    sizes: bool
    per_vertex: bool
    max_results: int | None
    write_on: Where


class Largest(_NewRun, _Missing, total=False):
    """Those of `bicliques.largest`."""

    undirected: bool
    top: int | None
    by: By


class Count(_Search, _Session, _Missing, total=False):
    """Those of `bicliques.count`."""

    undirected: bool
    fingerprint: bool
    folder: str | os.PathLike[str] | None
    per_vertex: str | os.PathLike[str] | None
    pq: str | None
    sizes: bool
    max_results: int | None
    time_limit: float | None


class Cliques(_How, _Session, total=False):
    """Those of `bicliques.clique_counts`."""

    folder: str | os.PathLike[str] | None
    time_limit: float | None


class Diff(_Search, _Session, total=False):
    """Those of `bicliques.diff`."""

    added: str | os.PathLike[str] | object
    removed: str | os.PathLike[str] | object
    folder: str | os.PathLike[str] | None


class Refresh(_Search, _Session, total=False):
    """Those of `bicliques.refresh`."""

    report: bool


class DryRun(_Search, _Workers, _Missing, total=False):
    """Those of `bicliques.dry_run`."""

    count_only: bool
    sample_time: float
    sizes: bool
    ids: Ids


class Look(_Reading, total=False):
    """Those of `bicliques.look`."""

    all: bool


class Resume(_Session, total=False):
    """Those of `bicliques.resume`."""

    report: bool
    max_results: int | Literal["as before"] | None
    time_limit: float | Literal["as before"] | None
    write_on: Where
