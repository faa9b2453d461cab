"""Every CUDA header stands alone: it includes the files whose names it uses, and no others."""

import re
from functools import cache
from pathlib import Path

import pytest

from bicliques.kernels.gpu.machine_code import FOLDER, compile_options
from tests.kernels.resources import compile_source

FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.cu*"))
HEADERS = [name for name in FILES if name.endswith(".cuh")]

#: A macro, a record, a type, the parameter block, or a function that begins a line.
_DEFINITION = re.compile(
    r"^(?:#define (?P<macro>\w+)|struct (?P<record>\w+)|typedef [\w ]+ (?P<type>\w+);|__constant__ \w+ (?P<block>\w+);"
    r"|(?:template <.*>\s)?__device__ [^;={(]*?\b(?P<function>\w+)\()",
    re.MULTILINE,
)


@cache
def code(name: str) -> str:
    return re.sub(r"//.*", "", (FOLDER / name).read_text())


@cache
def words(name: str) -> set[str]:
    return set(re.findall(r"\w+", code(name)))


@cache
def definitions(name: str) -> dict[str, re.Pattern[str]]:
    """The names that a file defines, each with a pattern of its uses. A field that has a function's name is no use."""
    found = {}
    for match in _DEFINITION.finditer(code(name)):
        word = match[match.lastgroup]
        call = r"(?:<[^;()]*>)?\(" if match.lastgroup == "function" else r"\b"
        found[word] = re.compile(rf"(?<![\w.>]){word}{call}")
    return found


def includes(name: str) -> list[str]:
    return re.findall(r'^#include "(.*)"', code(name), re.MULTILINE)


def used_files(name: str) -> list[str]:
    """The headers of the common folder, and of the folder of `name`, that define something that `name` uses."""
    in_reach = [other for other in HEADERS if other != name and Path(other).parts[0] in ("common", Path(name).parts[0])]
    own = definitions(name)
    return [
        other
        for other in in_reach
        if any(word in words(name) - own.keys() and use.search(code(name)) for word, use in definitions(other).items())
    ]


@pytest.mark.parametrize("name", FILES)
def test_a_file_includes_what_it_uses_and_nothing_else(name):
    assert sorted(includes(name)) == used_files(name)


def test_definitions_and_uses_are_found():
    """If the patterns found nothing, the test above would compare nothing with nothing."""
    found = {word for name in FILES for word in definitions(name)}
    assert found >= {"NOBODY", "Item", "i32", "params", "sum_below", "search_levels", "set_of", "open_subtree"}
    assert len(used_files("bitmatrix/hub.cuh")) > 10


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_compiles_alone(name):
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed (pip install '.[nvrtc]')")
    options = [*compile_options(()), "--gpu-architecture=compute_90"]
    assert compile_source(f'#include "{name}"\n', f"{Path(name).stem}.cu", options) == ""


def test_hash_constants_are_defined_once():
    factors = [word for name in FILES for word in re.findall(r"\b(?:0x[0-9A-Fa-f]{8,}|\d{8,})(?:u|ull)\b", code(name))]
    masks = {"0xffffffffu", "0x55555555u", "0x33333333u", "0x0f0f0f0fu", "0x00ff00ffu", "0x0000ffffu"}
    numbers = [factor for factor in factors if factor not in masks]
    assert "2654435769u" in numbers
    assert len(numbers) == len(set(numbers))


def test_a_compiler_without_a_message_leaves_pythons_bytes_alone():
    """The log is one NUL then, and Python shares all byte strings of that length."""
    assert compile_source("", "empty.cu", []) == ""
    assert list(b"a b"[1:2]) == [32]
