"""What tests of runs in a store share: a machine with a bucket, and a graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stored import Machines, machines_with_a_bucket, source_in


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    with machines_with_a_bucket(tmp_path, monkeypatch) as there:
        yield there


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return source_in(tmp_path)
