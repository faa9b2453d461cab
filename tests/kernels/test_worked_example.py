"""The worked example of docs/kernels.md: its numbers are those of the reference engine and of the kernel."""

from itertools import combinations

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas.bicliques import emit_to
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.emulation.device import EmulatedDevice, why_not
from tests.house.tree import ROOT
from tests.support.emulated import BITMATRIX
from tests.support.oracles import closed_pairs, graph_of, run

PAGE = (ROOT / "docs" / "kernels.md").read_text()
BASE = "abcdef"
#: Neighbours of the roots r0 to r4.
ROOTS = ("cd", "abcd", "abce", "acdf", "bcdef")
#: What lies below r1: base side, and root side.
BELOW = {"abc": "r1 r2", "ac": "r1 r2 r3", "bc": "r1 r2 r4", "acd": "r1 r3", "bcd": "r1 r4"}

EDGES = np.array(sorted((BASE.index(u), v) for v, row in enumerate(ROOTS) for u in row), np.int32)
GRAPH = graph_of(EDGES, BuildOptions(root_side="right"))


def bits(base: str) -> int:
    """A set of base vertices as the kernel writes it: bit 0 is a."""
    return sum(1 << BASE.index(u) for u in base)


def found_below(engine, root: int, limits: Limits) -> tuple[dict[str, str], dict[str, float]]:
    found = {}

    def emit(batch):
        for left, right in batch.to_pairs():
            found["".join(BASE[u] for u in left)] = " ".join(f"r{v}" for v in right)

    result = engine.mine(GRAPH, Subtrees.of_roots(np.array([root])), Search("list"), limits, emit_to(emit))
    assert not len(result.left_over)
    return found, result.stats


def test_roots_are_ranked_as_in_the_page():
    assert GRAPH.root_side == "right"
    assert GRAPH.root_members.tolist() == [0, 1, 2, 3, 4]
    assert (GRAPH.n_base, GRAPH.n_roots) == (6, 5)
    for v, row in enumerate(ROOTS):
        assert f"    r{v}   " + " ".join("1" if u in row else "." for u in BASE) in PAGE


def test_the_reference_finds_the_bicliques_on_the_page():
    assert found_below(ReferenceEngine(), 1, Limits())[0] == {"abcd": "r1"} | BELOW
    count = run(ReferenceEngine(), GRAPH, Search("count")).count
    assert count == len(closed_pairs({(int(u), int(v)) for u, v in EDGES}))
    assert f"All five roots together give {count} maximal bicliques" in PAGE
    for base, roots in BELOW.items():
        assert f"| {base} | {roots} |" in PAGE


def test_the_lattice_of_the_page_is_the_one_by_definition():
    candidates, excluded = [bits(row) & bits("abcd") for row in ROOTS[2:]], bits("cd")
    meets = {int(np.bitwise_and.reduce(chosen)) for k in range(1, 4) for chosen in combinations(candidates, k)}
    words = {
        "candidates": sum(1 << row for row in candidates),
        "excluded": sum(1 << part for part in range(16) if part & excluded == part),
        "intersections": sum(1 << meet for meet in meets),
    }
    words["found"] = words["intersections"] & ~words["excluded"]
    assert words["found"] == sum(1 << bits(base) for base in BELOW)
    for name, word in words.items():
        assert f"| {name} | `0x{word:04X}` |" in PAGE


@pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")
@pytest.mark.parametrize(
    ("limits", "tests"), [(Limits(), {1}), (Limits(rows=100), {7, 8})], ids=["lattice", "word problem"]
)
def test_the_kernel_tests_the_number_of_nodes_on_the_page(limits, tests):
    """With a limit of rows nothing is solved at once, so the word problem is searched node by node.

    Lanes place its three rows in any order, and the order decides between the two numbers.
    """
    engine = BitMatrixEngine(EmulatedDevice(5), BITMATRIX["usual"])
    found, stats = found_below(engine, 1, limits)
    assert found == {"abcd": "r1"} | BELOW
    assert stats.counters["tests"] in tests
    assert "eight nodes tested" in PAGE
