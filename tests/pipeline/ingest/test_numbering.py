"""Numbers of labels. A label has the same number in all blocks, and ranks are in sorted order."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bicliques.pipeline.ingest.table.numbering import Integers, TextParts, Texts
from bicliques.schemas.errors import ResourceError
from tests.support.children import in_child

BLOCKS = st.lists(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=9, unique=True), max_size=4), max_size=5)


@pytest.mark.parametrize("kind", [Integers, Texts, *(partial(TextParts, parts=parts) for parts in (2, 3, 7))])
@given(rounds=BLOCKS)
def test_a_label_keeps_its_number(kind: Any, rounds: list[list[list[int]]]) -> None:
    numbering = kind("left")
    number_of: dict[object, int] = {}
    for blocks in filter(None, rounds):
        texts = ([*map(str, block)] for block in blocks)
        arrays = [*map(pa.array, blocks)] if kind is Integers else [pa.array(text, pa.large_string()) for text in texts]
        for array, numbers in zip(arrays, numbering.numbers_of(arrays), strict=True):
            for label, number in zip(array.to_pylist(), numbers.tolist(), strict=True):
                assert number_of.setdefault(label, number) == number
    assert len(set(number_of.values())) == len(number_of) == len(numbering)
    if not isinstance(numbering, TextParts):
        assert sorted(number_of.values()) == list(range(len(numbering)))
    elif not number_of:
        return
    values, order, ranks = numbering.ranked()
    assert [values[k].as_py() for k in order.tolist()] == sorted(number_of)
    assert {label: int(ranks[number]) for label, number in number_of.items()} == {
        label: rank for rank, label in enumerate(sorted(number_of))
    }


def test_labels_of_a_part_are_sorted_by_their_bytes_and_share_the_work() -> None:
    """Labels of other scripts, and so many that each range has some."""
    firsts = [chr(code) for code in range(0x41, 0xD7FF, 13)]
    labels = sorted({f"{firsts[977 * k % len(firsts)]}-{k}" for k in range(4000)}, key=str.encode)
    numbering = TextParts("right", 5)
    numbering.numbers_of([pa.array(labels[start::7], pa.large_string()) for start in range(7)])
    assert min(len(part) for part in numbering.parts) > len(labels) / 10
    values, order, _ = numbering.ranked()
    assert values.take(pa.array(order)).to_pylist() == labels


def test_text_of_all_parts_together_has_to_fit_into_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bicliques.pipeline.ingest.table.numbering.MAX_TEXT", 60)
    numbering = TextParts("left", 4)
    numbering.numbers_of([pa.array([f"label-{k}" for k in range(7)], pa.large_string())])
    with pytest.raises(ResourceError, match="the left labels have 63 bytes of text together, and 60 are the most"):
        numbering.numbers_of([pa.array([f"label-{k}" for k in range(2)] + ["label 7", "label 8"], pa.large_string())])


MEMORY = """
import numpy as np, pyarrow as pa
from bicliques.pipeline.ingest.table.numbering import Integers
from tests.support.own_memory import OwnMemory
numbering = Integers("left")
labels = np.random.default_rng(1).permutation(2_000_000) * 3
numbering.numbers_of([pa.array([1, 2])])
memory = OwnMemory()
before = memory.peak()
for part in np.split(labels, 8):
    numbering.numbers_of([pa.array(part)])
numbering.ranked()
print(len(numbering), memory.peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_integer_needs_less_than_the_sixty_bytes_that_are_told(tmp_path: Path) -> None:
    """It took 33, and labels that come are among them."""
    n, taken = map(int, in_child(MEMORY, tmp_path).split())
    assert n == 2_000_002
    assert taken < 45 * n
