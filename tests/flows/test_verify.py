"""The flow `verify`: what it publishes of a good run, and that it fails on a damaged one."""

from pathlib import Path

import pytest

import bicliques as bq
from bicliques.flows.verify import verify
from bicliques.schemas.errors import IncompleteError
from tests.flows.states import artifacts
from tests.support.runs import QUIET, answer, random_edges, write_edges

pytestmark = pytest.mark.usefixtures("prefect_server")

EDGES = random_edges(14, 11, 0.4, 2)


def mined(tmp_path: Path) -> Path:
    source = write_edges(tmp_path / "g.parquet", EDGES)
    return bq.mine(source, tmp_path / "out", **QUIET).files[0]


def test_a_good_run_is_verified(tmp_path):
    mined(tmp_path)
    state = verify(str(tmp_path / "out"), sample=10, return_state=True)
    count, fingerprint = answer(EDGES)
    assert state.result() == {"folder": str(tmp_path / "out"), "count": count, "fingerprint": str(fingerprint)}
    shown = artifacts(state)
    assert f"**verified: {count:,} bicliques" in shown["verification"]
    assert "\nnot proven:\n" in shown["verification"]
    assert shown[""].startswith("verify-out-g-")
    assert shown["verifying"] == 100


def test_a_damaged_part_fails(tmp_path):
    part = mined(tmp_path)
    part.write_bytes(part.read_bytes()[:-40])
    state = verify(str(tmp_path / "out"), return_state=True)
    assert state.is_failed()
    with pytest.raises(IncompleteError, match=r"bytes, (but|and) the manifest says"):
        state.result()
