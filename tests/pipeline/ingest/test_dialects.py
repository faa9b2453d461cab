"""Small graphs in the dialects that people and programs write: what is read is what is meant, or it is refused."""

from collections import Counter
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.schemas.errors import InputError
from tests.pipeline.ingest.dialect_graphs import DIALECTS, Case, case_of, number_of_bicliques
from tests.pipeline.ingest.dialects import REFUSED, RIGHT, WRONG, judge, only_reading, trapped
from tests.support.oracles import all_pairs

#: Cases of each dialect, in `make test` and beyond it in `make test-all`: 400 and 10,000.
CASES = [pytest.param(range(4), id="few"), pytest.param(range(4, 44), id="many", marks=pytest.mark.exhaustive)]


def cases_of(tag: str, turns: range) -> list[Case]:
    place = list(DIALECTS).index(tag)
    return [case_of(7, place + turn * len(DIALECTS)) for turn in turns]


def told(case: Case, sentence: str) -> str:
    return f"{case.tag}: {case.name} {case.options}\n{case.source}\n{case.data.decode(errors='replace')}\n{sentence}"


@pytest.mark.parametrize("turns", CASES)
@pytest.mark.parametrize("tag", DIALECTS)
def test_the_graph_is_the_one_meant_or_is_refused_with_good_advice(tag, turns, tmp_path):
    """No advice leads to a wrong graph alone. One of two alternatives may, because the user knows what is meant."""
    with only_reading():
        for turn, case in enumerate(cases_of(tag, turns)):
            verdict, sentence = judge(case, tmp_path)
            assert verdict != WRONG, told(case, sentence)
            may_count = "may be the numbers of vertices" in sentence or "may count vertices" in sentence
            assert verdict == RIGHT or not case.is_plain or may_count, told(case, sentence)
            if verdict == REFUSED and turn < len(turns) // 2:
                advice = trapped(case, sentence, tmp_path)
                assert advice is None or " if " in advice, told(case, f"{sentence}\nthe advice: {advice}")


@pytest.mark.parametrize("tag", list(DIALECTS)[::6])
def test_a_run_counts_what_is_read(tag, tmp_path):
    """The whole way, with the tables written: what is refused is refused, and every other count is the true one."""
    (case,) = cases_of(tag, range(1))
    try:
        count = bq.count(case.put(tmp_path), engine="cpu", progress=False, **case.options).count
    except InputError as error:
        found = str(error)
    else:
        assert case.edges is not None, told(case, f"{count} bicliques of what cannot be told")
        assert count == number_of_bicliques(case.edges), told(case, f"{count} bicliques")
        return
    assert not case.is_plain, told(case, found)


def test_every_dialect_is_drawn_with_more_than_one_graph():
    drawn = Counter(case_of(7, k).tag for k in range(2 * len(DIALECTS)))
    assert drawn == dict.fromkeys(DIALECTS, 2)
    for tag in DIALECTS:
        assert len({case.edges for case in cases_of(tag, range(12))}) > (0 if tag.startswith("nan") else 9), tag


def test_the_cases_are_drawn_again_as_they_were():
    first, again = ([case_of(3, k) for k in range(2 * len(DIALECTS))] for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert (one.tag, one.name, one.edges, one.options) == (other.tag, other.name, other.edges, other.options)
        assert one.tag == "compressed" or "gzip" in one.tag or one.data == other.data, one.tag


def test_the_count_of_a_case_is_that_of_another_enumeration():
    for k in range(len(DIALECTS)):
        edges = case_of(5, k).edges or frozenset()
        assert number_of_bicliques(edges) == len(all_pairs(dense(edges))) if edges else True


def dense(edges):
    import numpy as np

    sides = [sorted({edge[k] for edge in edges}) for k in (0, 1)]
    return np.array(sorted((sides[0].index(u), sides[1].index(v)) for u, v in edges), np.int32)


def test_a_misread_case_is_noticed(tmp_path: Path):
    """The judge itself: an edge too many, an edge too few, and swapped sides."""
    edges = frozenset({("a", "x"), ("a", "y"), ("b", "x")})
    with only_reading():
        for lines, verdict in {
            "user,item\na,x\na,y\nb,x\n": RIGHT,
            "user,item\na,x\na,y\nb,x\nb,y\n": WRONG,
            "user,item\na,x\na,y\n": WRONG,
            "item,user\na,x\na,y\nb,x\n": RIGHT,
            "user,item\nx,a\ny,a\nx,b\n": WRONG,
            "a\n": REFUSED,
        }.items():
            assert judge(Case(edges, "g.csv", lines.encode()), tmp_path)[0] == verdict, lines
