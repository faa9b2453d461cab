"""How the suite is spread: over two targets of the Makefile, and over processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pytest

__all__ = ["home_of", "spread_products"]


def spread_products(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Of tests marked ``pairs`` leave cases to `make test` in which any two values meet, to `make test-all` any three.

    The parameters of such a test have nothing to do with one another, so what breaks does so for one value, or for few
    together. Cases are taken greedily: always the first that brings most of what is missing. All but those for two are
    marked ``exhaustive``. Returns the cases beyond those for three.
    """
    products: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("pairs") and hasattr(item, "callspec"):
            products[item.nodeid.partition("[")[0]].append(item)
    beyond = []
    for cases in products.values():
        values = [sorted((name, id(value)) for name, value in case.callspec.params.items()) for case in cases]
        n_parameters = len(values[0])
        if n_parameters < 2:
            continue
        for_two = _cover([set(combinations(some, 2)) for some in values], set())
        for_three = _cover([set(combinations(some, min(3, n_parameters))) for some in values], for_two)
        for k, case in enumerate(cases):
            if k not in for_two:
                case.add_marker(pytest.mark.exhaustive)
            if k not in for_three:
                beyond.append(case)
    return beyond


def _cover(meetings: list[set[Any]], kept: set[int]) -> set[int]:
    """The cases `kept`, and others until all that meets in any case meets in one of them."""
    kept = set(kept)
    missing = set().union(*meetings).difference(*(meetings[k] for k in kept))
    while missing:
        best = max(range(len(meetings)), key=lambda k: len(missing & meetings[k]))
        missing -= meetings[best]
        kept.add(best)
    return kept


def home_of(test: str) -> str:
    """Tests with the same home run in the same process, one after the other.

    What a file starts for all of its tests, such as workers or a browser, is started once; so is the one Prefect server
    of all flows. Tests of kernels start nothing, and some of their files would keep one process busy to the end.
    """
    file = test.partition("::")[0]
    if file.startswith("tests/flows/"):
        return "tests/flows"
    return test if file.startswith("tests/kernels/") else file
