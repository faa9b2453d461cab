"""The two targets differ in what is exhaustive alone, and what belongs together stays in one process."""

import os
import re
import subprocess
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import pytest

from tests.house.tree import ROOT
from tests.spread import home_of, keep_first, spread_products

VALUES = {"shape": ["wide", "dense", "words"], "limit": [None, 0, 60, 7], "side": ["left", "right"], "bounds": [{}, {}]}


def _mark(words: str):
    """A mark with its argument, if it has one: ``values 3``."""
    name, *arguments = words.split()
    return SimpleNamespace(name=name, args=tuple(map(int, arguments)))


def case(test: str, params: dict[str, Any], *marks: str):
    kept = list(marks)
    return SimpleNamespace(
        nodeid=f"tests/x.py::{test}[{params}]",
        callspec=SimpleNamespace(params=params),
        marks=kept,
        get_closest_marker=lambda name: next((mark for mark in map(_mark, kept) if mark.name == name), None),
        add_marker=lambda mark: kept.append(mark.name),
    )


def cases(test: str, values: dict[str, list[Any]], *marks: str) -> list[Any]:
    return [case(test, dict(zip(values, some, strict=True)), *marks) for some in product(*values.values())]


def meetings(some: list[Any], n: int) -> set[Any]:
    return {
        frozenset(few)
        for one in some
        for few in combinations(((name, id(v)) for name, v in one.callspec.params.items()), n)
    }


def test_any_two_values_meet_in_one_target_and_any_three_in_the_other():
    every = cases("test_product", VALUES | {"mode": ["list", "count"]}, "pairs")
    beyond = spread_products(every)
    in_test = [one for one in every if "exhaustive" not in one.marks]
    in_test_all = [one for one in every if one not in beyond]
    assert meetings(in_test, 2) == meetings(every, 2)
    assert len(in_test) <= 16, "3 x 4 is the least that there can be"
    assert meetings(in_test_all, 3) == meetings(every, 3)
    assert 3 * 4 * 2 <= len(in_test_all) <= 36 < len(every) == 96
    assert not [one for one in in_test if one in beyond]


def test_the_first_cases_are_in_one_target_and_all_in_the_other():
    every = [one for test in ("test_x", "test_y") for one in cases(test, {"shape": VALUES["shape"]}, "first 2")]
    keep_first(every)
    assert ["exhaustive" in one.marks for one in every] == 2 * [False, False, True]


def test_a_product_of_three_is_whole():
    every = cases("test_product", {name: VALUES[name] for name in ("shape", "limit", "side")}, "pairs")
    assert spread_products(every) == []
    assert 12 <= sum("exhaustive" not in one.marks for one in every) <= 16 < len(every) == 24


def test_any_value_occurs_in_one_target_and_any_two_meet_in_the_other():
    every = cases("test_product", VALUES, "values")
    beyond = spread_products(every)
    in_test = [one for one in every if "exhaustive" not in one.marks]
    assert meetings(in_test, 1) == meetings(every, 1)
    assert len(in_test) == 4, "as many as there are limits"
    assert meetings([one for one in every if one not in beyond], 2) == meetings(every, 2)
    assert 12 <= len(every) - len(beyond) <= 16
    assert not [one for one in in_test if one in beyond]


def test_the_mark_for_fewer_cases_goes_before_the_other():
    """A class of tests with many cases is marked ``pairs``; where these are slow, its subclass is marked ``values``."""
    kept = {}
    for marks in (("values",), ("pairs", "values")):
        every = cases("test_product", VALUES | {"mode": ["list", "count"]}, *marks)
        beyond = spread_products(every)
        kept[marks] = [("exhaustive" in one.marks, one in beyond) for one in every]
    assert kept["pairs", "values"] == kept[("values",)]


def test_a_mark_may_say_how_many_values_meet():
    every = cases("test_product", VALUES | {"mode": ["list", "count"]}, "pairs", "values 3")
    beyond = spread_products(every)
    assert sum("exhaustive" not in one.marks for one in every) == 4
    assert meetings([one for one in every if one not in beyond], 3) == meetings(every, 3)


def test_what_is_no_product_is_kept():
    one_axis = cases("test_one", {"shape": VALUES["shape"]}, "pairs")
    two_axes = cases("test_two", {"shape": VALUES["shape"], "side": VALUES["side"]}, "pairs")
    not_marked = cases("test_other", VALUES)
    without = SimpleNamespace(nodeid="tests/x.py::test_none", get_closest_marker=lambda name: name)
    assert spread_products([*one_axis, *two_axes, *not_marked, without]) == []
    assert not [one for one in (*one_axis, *two_axes, *not_marked) if "exhaustive" in one.marks]


def test_what_is_started_once_stays_together():
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
def test_the_targets_differ_in_that_alone(target, left_out):
    recipe = re.search(rf"(?m)^{target}:.*\n\t\$\(PYTEST\)(.*)$", (ROOT / "Makefile").read_text())
    assert recipe[1] == (f' -m "not {left_out}"' if left_out else "")


def test_every_change_has_to_pass_the_whole_suite():
    assert re.findall(r"(?m)^ +step (test\S*)$", (ROOT / ".ci/run").read_text()) == ["test-all"]


def test_processes_of_make_keep_the_modules_that_they_have_compiled():
    """Tests start thousands of processes, and with the variable each would take three times as long to begin."""
    told = subprocess.run(
        ["make", "--silent", "--eval=told: ; @env", "told"],
        cwd=ROOT,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "PATH=" in told.stdout
    assert "PYTHONDONTWRITEBYTECODE" not in told.stdout
