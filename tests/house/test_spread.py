"""`make test` leaves out what is exhaustive and nothing else, and what belongs together stays in one process."""

from __future__ import annotations

import re
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import pytest

from tests.house.tree import ROOT
from tests.spread import home_of, leave_the_rest_to_test_all

VALUES = {"shape": ["wide", "dense", "words"], "limit": [None, 0, 60, 7], "side": ["left", "right"], "bounds": [{}, {}]}


def case(test: str, params: dict[str, Any], *marks: str) -> Any:
    kept = list(marks)
    return SimpleNamespace(
        nodeid=f"tests/x.py::{test}[{params}]",
        callspec=SimpleNamespace(params=params),
        marks=kept,
        get_closest_marker=lambda name: name if name in kept else None,
        add_marker=lambda mark: kept.append(mark.name),
    )


def cases(test: str, values: dict[str, list[Any]], *marks: str) -> list[Any]:
    return [case(test, dict(zip(values, some, strict=True)), *marks) for some in product(*values.values())]


def pairs(some: list[Any]) -> set[Any]:
    return {
        frozenset(two)
        for one in some
        for two in combinations(((name, id(v)) for name, v in one.callspec.params.items()), 2)
    }


def test_any_two_values_meet_in_what_is_kept() -> None:
    every = cases("test_product", VALUES, "pairs")
    leave_the_rest_to_test_all(every)
    kept = [one for one in every if "exhaustive" not in one.marks]
    assert pairs(kept) == pairs(every)
    assert len(kept) <= 16 < len(every) == 48, "3 x 4 is the least that there can be"


def test_what_is_no_product_is_kept() -> None:
    one_axis = cases("test_one", {"shape": VALUES["shape"]}, "pairs")
    two_axes = cases("test_two", {"shape": VALUES["shape"], "side": VALUES["side"]}, "pairs")
    not_marked = cases("test_other", VALUES)
    without = SimpleNamespace(nodeid="tests/x.py::test_none", get_closest_marker=lambda name: name)
    leave_the_rest_to_test_all([*one_axis, *two_axes, *not_marked, without])
    assert not [one for one in (*one_axis, *two_axes, *not_marked) if "exhaustive" in one.marks]


def test_what_is_started_once_stays_together() -> None:
    assert home_of("tests/flows/test_mine.py::test_a") == home_of("tests/flows/test_notify.py::test_b[x::y]")
    assert home_of("tests/pipeline/workers/test_dask_pool.py::test_a") == home_of(
        "tests/pipeline/workers/test_dask_pool.py::test_b[1]"
    )
    assert home_of("tests/pipeline/workers/test_dask_pool.py::test_a") != home_of(
        "tests/pipeline/workers/test_tls.py::test_a"
    )
    assert home_of("tests/kernels/test_gpu_engines.py::TestX::test_a[1]") != home_of(
        "tests/kernels/test_gpu_engines.py::TestX::test_a[2]"
    )


@pytest.mark.parametrize(("target", "left_out"), [("test", "exhaustive"), ("test-all", None)])
def test_the_targets_differ_in_that_alone(target: str, left_out: str | None) -> None:
    recipe = re.search(rf"(?m)^{target}:.*\n\t\$\(PYTEST\)(.*)$", (ROOT / "Makefile").read_text())
    assert recipe is not None
    assert recipe[1] == (f' -m "not {left_out}"' if left_out else "")


def test_every_change_has_to_pass_the_whole_suite() -> None:
    assert re.findall(r"(?m)^ +step (test\S*)$", (ROOT / ".ci/run").read_text()) == ["test-all"]
