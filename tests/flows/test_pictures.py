"""The pictures among a run's artifacts: there for what the run has numbers of, and they show it."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import pipeline
from flows.pictures import pictures_of
from pipeline.reporting.content import content_of
from pipeline.reporting.figures import BUSY, LEFT, RIGHT, WRITING
from tests.runs import random_edges, write_edges


def drawn(out: Path) -> dict[str, np.ndarray]:
    """Points of each picture, as (height, width, red green blue)."""
    start = "data:image/png;base64,"
    addresses = pictures_of(content_of(out))
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
    found = drawn(out)
    assert list(found) == ["sizes", "degrees", "stages", "time-line"]
    for name, colours in {"degrees": (LEFT, RIGHT), "stages": (LEFT,), "time-line": (BUSY, WRITING)}.items():
        assert all(points(found[name], colour) > 100 for colour in colours), name
    most, fewest = "#fde725", "#440154"  # the ends of the colours by count; the bar beside the picture has few of each
    assert points(found["sizes"], most) > 1000
    assert points(found["sizes"], fewest) > 1000


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
    assert {"sizes", "degrees", "stages", "time-line"} - drawn(out).keys() == missing
