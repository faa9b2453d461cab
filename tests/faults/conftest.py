"""A machine and a bucket for runs that are kept in a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stored import Machines, machines_with_a_bucket


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    with machines_with_a_bucket(tmp_path, monkeypatch) as there:
        yield there
