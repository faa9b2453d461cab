"""Items that a thread takes before they are wanted: the same items and errors, in the same order."""

import threading
from collections.abc import Iterator

import pytest

from bicliques.pipeline.process.in_order import ahead

TOGETHER = 120


@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("items", [[], [1], list(range(20))])
def test_the_items_are_the_same(items: list[int], n: int) -> None:
    assert list(ahead(items, n)) == items


def test_the_next_item_is_taken_while_one_is_in_use() -> None:
    taken = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        taken.set()
        yield 2

    found = ahead(items(), 2)
    assert next(found) == 1
    assert taken.wait(TOGETHER)
    assert list(found) == [2]


@pytest.mark.parametrize("n", [1, 9])
def test_an_error_comes_in_place_of_its_item(n: int) -> None:
    def items() -> Iterator[int]:
        yield from (1, 2)
        raise OSError("torn")

    found = ahead(items(), n)
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(OSError, match="torn"):
        next(found)


def test_no_more_is_taken_than_was_asked_for() -> None:
    taken: list[int] = []
    found = ahead((taken.append(k) for k in range(100)), 3)
    next(found)
    found.close()  # type: ignore[attr-defined]  # a generator
    assert len(taken) <= 4
