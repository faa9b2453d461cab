"""What users call says what it takes, gives and raises, with units and dtypes, and its examples run."""

import builtins
import dataclasses
import doctest
import inspect
import re
import typing
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import bicliques as bq
from bicliques.pipeline.api.dry_running import DryRun
from bicliques.pipeline.compare.difference import Changed
from bicliques.pipeline.proof.verification import Verification
from bicliques.pipeline.results.by_id import ById
from bicliques.pipeline.results.explanation import Explanation
from bicliques.pipeline.results.forms import Forms
from bicliques.pipeline.results.picture import Picture
from bicliques.pipeline.results.run_status import Status
from bicliques.pipeline.rows.collection import Rows
from bicliques.pipeline.series.pruning import Pruning
from bicliques.schemas import errors
from bicliques.schemas.sizes import SizeCounts
from tests.house.tree import ROOT

FUNCTIONS = {name: getattr(bq, name) for name in bq.__all__ if inspect.isroutine(getattr(bq, name))}
#: What the functions return, and what methods of that return.
RECORDS = (bq.Count, DryRun, Explanation, Picture, Pruning, SizeCounts, Status, Verification)

#: What the text of a parameter tells if its name has the word on the left.
UNITS = {
    "seconds": "[Ss]econds|[Tt]ime",
    "time": "[Ss]econds",
    "bytes": "[Bb]ytes|[Ss]ize",
    "memory": "[Bb]ytes",
    "rss": "[Bb]ytes",
}


def methods(home: type) -> dict[str, Callable[..., Any]]:
    """The public methods and properties of a class, by name."""
    found = {}
    for name, member in vars(home).items():
        if isinstance(member, property):
            member = member.fget
        elif isinstance(member, cached_property):
            member = member.func
        elif isinstance(member, classmethod):
            member = member.__func__
        if not name.startswith("_") and inspect.isfunction(member):
            found[f"{home.__name__}.{name}"] = member
    return found


HOMES = (bq.Results, Rows, Forms, ById, bq.Difference, Changed, *RECORDS)
METHODS = {name: one for home in HOMES for name, one in methods(home).items()}
CALLS = FUNCTIONS | METHODS


def sections(documented) -> dict[str, str]:
    """The parts of a docstring by their headings. The part before the first heading is called "summary"."""
    text = inspect.cleandoc(documented.__doc__ or "")
    pieces = re.split(r"^([A-Z]\w+)\n-+\n", text, flags=re.MULTILINE)
    return {"summary": pieces[0].strip()} | dict(zip(pieces[1::2], pieces[2::2], strict=True))


def entries(section: str) -> dict[str, str]:
    """Type and text of each name in a section such as Parameters."""
    found = {}
    for entry in re.split(r"\n(?=\S)", section.strip("\n")):
        head, _, text = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        found |= dict.fromkeys(names.replace("*", "").split(", "), f"{kind} {inspect.cleandoc(text)}".strip())
    return found


def undocumented(call: Callable[..., Any]) -> list[str]:
    """What a docstring of a function or method leaves out, in words."""
    told, signature = sections(call), inspect.signature(call)
    wrong = [] if re.match(r"\S.*[.:]", told["summary"], re.DOTALL) else ["it has no sentence that says what it does"]
    taken = [name for name in signature.parameters if name not in ("self", "cls")]
    listed = entries(told["Parameters"]) if "Parameters" in told else {}
    for name in taken:
        if not listed.get(name) and f"`{name}`" not in told["summary"]:
            wrong.append(f"nothing is said of {name}")
    wrong += [f"there is no parameter {name}" for name in listed.keys() - set(taken)]
    if call in FUNCTIONS.values():
        wrong += [f"there is no section {name}" for name in ("Returns", "Raises", "Examples") if name not in told]
    return wrong + without_units(listed)


def without_units(listed: dict[str, str]) -> list[str]:
    """The names whose unit or dtype is not told."""
    wrong = []
    for name, text in listed.items():
        for word, unit in UNITS.items():
            if word in name.split("_") and not re.search(unit, text):
                wrong.append(f"{name} is without a unit")
        if "ndarray" in text and not ("shape" in text and re.search(r"u?int\d|float\d|bool", text)):
            wrong.append(f"{name} is without shape or dtype")
    return wrong


@pytest.mark.parametrize("name", CALLS)
def test_a_call_says_what_it_takes_gives_and_raises(name):
    assert undocumented(CALLS[name]) == []


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_record_says_what_its_fields_are(record):
    listed = entries(sections(record)["Parameters"])
    assert list(listed) == [field.name for field in dataclasses.fields(record)]
    assert without_units(listed) == []
    arrays = [name for name, kind in typing.get_type_hints(record).items() if kind is np.ndarray]
    assert all("ndarray, shape" in listed[name] for name in arrays)


@pytest.mark.parametrize("name", [name for name in CALLS if "Raises" in sections(CALLS[name])])
def test_errors_that_are_told_exist(name):
    check_errors(CALLS[name])


def check_errors(call: Callable[..., Any]):
    """Every error that its docstring names is one."""
    for told in entries(sections(call)["Raises"]):
        assert issubclass(getattr(errors, told, None) or getattr(builtins, told), BaseException)


def test_the_estimator_says_as_much():
    """It is not among `CALLS`, because scikit-learn would be imported wherever tests are collected."""
    for call in methods(bq.MaximalBicliques).values():
        assert undocumented(call) == []
        check_errors(call)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_error_of_bad_input_is_told(name, tmp_path):
    others = {"mine": ["out"], "largest": ["out"], "diff": ["not there", "out"], "publish": ["out"]}
    others |= {"refresh": ["not there", "out"], "arrays": ["not there"]}
    paths = [tmp_path / other for other in ("not there", *others.get(name, []))]
    options = {"generate": {"n_left": 1, "n_right": 1, "edges": 2}}.get(name, {})
    with pytest.raises(errors.BicliqueError) as ended:
        next(iter(FUNCTIONS[name](*paths, **options)))  # an iterator raises it when it is asked
    assert type(ended.value).__name__ in entries(sections(FUNCTIONS[name])["Raises"])


@pytest.mark.parametrize(
    "name",
    [
        *("mine", "count", "open_run"),
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name in [*FUNCTIONS, "Results", "MaximalBicliques"]
            if name not in ("mine", "count", "open_run")
        ),
    ],
)
def test_examples_run(name, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(bq, name), name)
    assert example.examples
    lines = []
    result = doctest.DocTestRunner().run(example, out=lines.append)
    assert result.failed == 0, "".join(lines)


def test_what_a_docstring_leaves_out_is_found():
    def call(one: int, max_time: float, mask) -> int:
        """Do it.

        Parameters
        ----------
        max_time : float
            The longest one.
        mask : ndarray, shape (n,)
        two : int
            Not there.
        """
        return one

    assert undocumented(call) == [
        "nothing is said of one",
        "there is no parameter two",
        "max_time is without a unit",
        "mask is without shape or dtype",
    ]
