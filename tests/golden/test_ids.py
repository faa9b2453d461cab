"""The ids of the bicliques of two small graphs, as literal numbers: any machine and engine gives these, in any version.

Users of yesterday's run join its rows with those of today by them. They change with the schema version only.
"""

import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.schemas.bicliques import SCHEMA_VERSION
from tests.support.emulated import runnable
from tests.support.runs import QUIET

LONG = "a name of more than eight bytes"
EDGES = [
    (3, "Ärger"),
    (3, "東京"),
    (0, "Ärger"),
    (0, "東京"),
    (0, LONG),
    (7, LONG),
    (7, "🎬 film"),
    (2**63 - 1, "🎬 film"),
    (2**63 - 1, "Ärger"),
    (7, "Ärger"),
]
#: Members, and the id where the numbers are on the left, and where they are on the right.
IDS = [
    ([7], [LONG, "Ärger", "🎬 film"], -7299932909727122998, 872304412960312487),
    ([0, 7], [LONG, "Ärger"], -206251082056636437, -7938551939765983234),
    ([0, 3], ["Ärger", "東京"], 903068801434445287, 1452489942302650003),
    ([0, 3, 7, 2**63 - 1], ["Ärger"], 7530454459229375989, 2840083619991876592),
    ([7, 2**63 - 1], ["Ärger", "🎬 film"], 7983788782028299875, -2136619896060031946),
    ([0], [LONG, "Ärger", "東京"], 8859763682927993069, 5312374341954031131),
]
FINGERPRINTS = (17770891733836354785, 402080481382855033)


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "turned round"])
@pytest.mark.parametrize("engine", ["cpu", "reference", "bitmatrix", "cumbe"])
@pytest.mark.parametrize("turned", [False, True], ids=["numbers left", "numbers right"])
def test_ids_are_these_numbers(tmp_path, engine, turned, order):
    numbers, words = map(list, zip(*EDGES[::order], strict=True))
    table = pa.table([words, numbers] if turned else [numbers, words], ["left", "right"])
    how = {"engine": engine, **QUIET}
    with runnable(engine):
        results = bq.mine(table, tmp_path / "out", **how)
    expected = {ids[turned]: ((b, a) if turned else (a, b)) for a, b, *ids in IDS}
    assert {row.id: tuple(row) for row in results} == expected
    assert SCHEMA_VERSION == 3, "these are the ids of versions 2 and 3"
    assert results.to_arrow(["id"])["id"].type == pa.int64()
    assert results.manifest.fingerprint == FINGERPRINTS[turned] == sum(expected) % 2**64
