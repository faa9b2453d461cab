"""The pictures among a run's artifacts: there for what the run has numbers of, and they show it."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import pipeline
from pipeline.results.report.content import Content, content_of
from pipeline.results.report.figures import BUSY, LEFT, RIGHT, WRITING
from pipeline.results.report.timeline import Block, Lane, Stretch, Timeline
from pipeline.run.opened import Run
from tests.support.runs import random_edges, write_edges


def drawn(content: Content) -> dict[str, np.ndarray]:
    """Points of each picture, as (height, width, red green blue)."""
    from flows.pictures import pictures_of  # Matplotlib; every process imports this module

    start = "data:image/png;base64,"
    addresses = pictures_of(content)
    assert all(address.startswith(start) for address in addresses.values())
    files = {name: base64.b64decode(address.removeprefix(start)) for name, address in addresses.items()}
    assert all(len(file) < 200_000 for file in files.values()), "they are kept in Prefect's database"
    return {name: np.asarray(Image.open(io.BytesIO(file)).convert("RGB")) for name, file in files.items()}


def points(picture: np.ndarray, colour: str) -> int:
    """How many points have a colour, as #rrggbb."""
    wanted = np.frombuffer(bytes.fromhex(colour.removeprefix("#")), np.uint8)
    return int((picture == wanted).all(axis=2).sum())


def test_every_picture_of_a_run(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "g.parquet", random_edges(60, 40, 0.3, 1))
    out = pipeline.mine(source, tmp_path / "out", workers=0, progress=False, report=False).path
    found = drawn(content_of(Run.at(out)))
    assert list(found) == ["sizes", "degrees", "steps", "time-line"]
    for name, colours in {"degrees": (LEFT, RIGHT), "steps": (LEFT,)}.items():
        assert all(points(found[name], colour) > 100 for colour in colours), name
    most, fewest = "#fde725", "#440154"  # the ends of the colours by count; the bar beside the picture has few of each
    assert points(found["sizes"], most) > 1000
    assert points(found["sizes"], fewest) > 1000


def test_the_time_line_shows_searching_writing_and_idle(tmp_path: Path) -> None:
    out = pipeline.mine(pa.table({"l": [1], "r": [1]}), tmp_path / "out", workers=0, progress=False, report=False).path
    block = Block(start=0.0, stop=10.0, busy=10.0, writing=5.0, slices=1, rows=9, first=0, last=0)
    lanes = (Lane("here:1", (block,), 0.5), Lane("there:2", (replace(block, start=10.0, stop=20.0),), 0.5))
    times = Timeline((Stretch(0.0, 20.0, "complete"),), lanes)
    picture = drawn(replace(content_of(Run.at(out)), timeline=times))["time-line"]
    busy, writing = points(picture, BUSY), points(picture, WRITING)
    assert busy > 3000, "more than the legend"
    assert busy == pytest.approx(writing, rel=0.1)


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({"count_only": True}, {"sizes"}),
        ({"count_only": True, "sizes": True}, set()),
        ({"min_left": 9}, {"sizes", "time-line"}),
    ],
)
def test_what_a_run_has_no_numbers_of_is_not_drawn(tmp_path: Path, options: dict[str, Any], missing: set[str]) -> None:
    table = pa.table({"l": [1, 2, 3, 3], "r": ["a", "a", "b", "a"]})
    out = pipeline.mine(table, tmp_path / "out", workers=0, progress=False, report=False, **options).path
    assert {"sizes", "degrees", "steps", "time-line"} - drawn(content_of(Run.at(out))).keys() == missing
