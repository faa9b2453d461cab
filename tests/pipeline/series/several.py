"""Runs of one series, which are made quickly by copying."""

import shutil
import uuid
from pathlib import Path

from bicliques.pipeline.run.files import read_json, write_json
from bicliques.pipeline.series.pruning import Pruning


def change(folder: Path, **origin):
    """Give a run another origin than it has."""
    header = read_json(folder / "options.json")
    header["origin"] |= origin
    write_json(folder / "options.json", header)


def copy(model: Path, run: Path, created: str, **origin) -> Path:
    shutil.copytree(model, run)
    change(run, run=uuid.uuid4().hex, created=f"{created}T03:00:00.000+00:00", **origin)
    return run


def left(place: Path) -> str:
    return "".join(sorted(path.name for path in place.iterdir()))


def reasons(found: Pruning) -> dict[str, str]:
    return {run.path.name: run.reason for run in found.runs}
