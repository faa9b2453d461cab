"""How the suite is spread: over two targets of the Makefile, and over processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pytest

__all__ = ["home_of", "leave_the_rest_to_test_all"]


def leave_the_rest_to_test_all(items: Iterable[pytest.Item]) -> None:
    """Of each test marked ``pairs`` keep cases in which any two values meet; mark the other ones ``exhaustive``.

    The parameters of such a test have nothing to do with one another, so what breaks does so for one value, or for two
    together. Cases are taken greedily: always the first that brings most new pairs.
    """
    products: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("pairs") and hasattr(item, "callspec"):
            products[item.nodeid.partition("[")[0]].append(item)
    for cases in products.values():
        values = [sorted((name, id(value)) for name, value in case.callspec.params.items()) for case in cases]
        pairs = [set(combinations(some, 2)) for some in values]
        missing, kept = set().union(*pairs), set[int]()
        while missing:
            best = max(range(len(cases)), key=lambda k: len(missing & pairs[k]))
            missing -= pairs[best]
            kept.add(best)
        for k, case in enumerate(cases):
            if kept and k not in kept:
                case.add_marker(pytest.mark.exhaustive)


def home_of(test: str) -> str:
    """Tests with the same home run in the same process, one after the other.

    What a file starts for all of its tests, such as workers or a browser, is started once; so is the one Prefect server
    of all flows. Tests of kernels start nothing, and some of their files would keep one process busy to the end.
    """
    file = test.partition("::")[0]
    if file.startswith("tests/flows/"):
        return "tests/flows"
    return test if file.startswith("tests/kernels/") else file
