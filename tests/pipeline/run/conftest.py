"""The graph of tests of runs in a store."""

from pathlib import Path

import pytest

from tests.support.stored import source_in


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return source_in(tmp_path)
