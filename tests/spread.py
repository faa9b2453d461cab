"""How the suite is spread: over two targets of the Makefile, and over processes."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pytest


def spread_products(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Of tests marked ``pairs`` leave cases to `make test` in which any two values meet, to `make test-all` any three.

    Of those marked ``values`` it is one fewer: `make test` has every value in some case, and in `make test-all` any two
    meet, or any n if it is marked ``values(n)``. That goes for those with both marks, too.

    The parameters of such a test have nothing to do with one another, so what breaks does so for one value, or for few
    together. Cases are taken greedily: always the first that brings most of what is missing. All but those for
    `make test` are marked ``exhaustive``. Returns the cases beyond those for `make test-all`.
    """
    products: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and any(map(item.get_closest_marker, ("pairs", "values"))):
            products[item.nodeid.partition("[")[0]].append(item)
    beyond = []
    for cases in products.values():
        of_values = cases[0].get_closest_marker("values")
        few, many = (1, *(of_values.args or (2,))) if of_values else (2, 3)
        values = [sorted((name, id(value)) for name, value in case.callspec.params.items()) for case in cases]
        n_parameters = len(values[0])
        if n_parameters < 2:
            continue
        in_test = _cover([set(combinations(some, few)) for some in values], set())
        in_test_all = _cover([set(combinations(some, min(many, n_parameters))) for some in values], in_test)
        for k, case in enumerate(cases):
            if k not in in_test:
                case.add_marker(pytest.mark.exhaustive)
            if k not in in_test_all:
                beyond.append(case)
    return beyond


def keep_first(items: Iterable[pytest.Item]) -> None:
    """Of tests marked ``first(n)`` leave all cases but the first n to `make test-all`. They are of one kind."""
    seen: Counter[str] = Counter()
    for item in items:
        if mark := item.get_closest_marker("first"):
            name = item.nodeid.partition("[")[0]
            seen[name] += 1
            if seen[name] > mark.args[0]:
                item.add_marker(pytest.mark.exhaustive)


def _cover(meetings: list[set[Any]], kept: set[int]) -> set[int]:
    """The cases `kept`, and others until all that meets in any case meets in one of them.

    What a case brings only becomes less. So the first one that brings as much as was known of it brings most.
    """
    kept = set(kept)
    missing = set().union(*meetings).difference(*(meetings[k] for k in kept))
    known = [(-len(each), k) for k, each in enumerate(meetings)]
    heapq.heapify(known)
    while missing:
        brings, k = known[0]
        now = -len(missing & meetings[k])
        if now == brings:
            missing -= meetings[k]
            kept.add(k)
        else:
            heapq.heapreplace(known, (now, k))
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
