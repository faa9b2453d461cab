"""Counts of p x q bicliques in slices, what they should be, and the numbers of known graphs."""

import itertools

import numpy as np

from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import job_of
from bicliques.schemas.leaves import Leaves
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.support.oracles import bicliques_by_size, random_edges, whole_graph_of

#: Numbers by another program: (2,2), (3,3), (4,4).
KNOWN = {
    "debian12_package_tag": (101_500_051, 21_625_794_410, 1_404_810_060_897),
    "ucforum": (76_095, 39_733, 3_059),
    "moreno_crime": (143, 0, 0),
    "escorts": (231_440, 160_143, 20_931),
    "dblp4_paper_author": (42_047, 8_671, 772),
    "dbpedia_writers": (126_753, 155_958, 148_789),
    "movielens_ut": (1_580_737, 11_968_821, 27_563_333),
    "cp4im_vote": (2_987_550, 295_060_417, 12_026_876_105),
    "marvel": (10_709_594, 462_550_547, 8_634_112_357),
    "movielens_ti": (959_491, 2_578_855, 4_213_666),
    "movielens_ui": (7_490_391, 149_912_190, 857_935_315),
    "youtube": (12_540_261, 146_517_782, 626_892_852),
    "fimi_mushroom": (2_052_255_916, 5_591_088_030_085, 5_822_676_676_305_609),
}
#: Numbers of other sizes.
MORE = {"ucforum": {(1, 2): 65_776, (2, 1): 109_045}, "marvel": {(1, 2): 12_299_444, (2, 1): 569_770}}


def counted(engine, graph: MiningGraph, pq: str = "all", seconds: float | None = None, pieces: int = 1) -> Leaves:
    """The leaves of a graph in as many slices as it takes, which divide what is left among `pieces`."""
    return sum((done.total for done in slices([engine], graph, pq, seconds, pieces)), Leaves.none())


def slices(engines, graph: MiningGraph, pq: str = "all", seconds: float | None = None, pieces: int = 1):
    """Slices of engines that take turns, until nothing is left."""
    search, work, turns = Search("count", pq=pq), Subtrees.of_roots(np.arange(graph.n_roots)), itertools.cycle(engines)
    while len(work):
        done = next(turns).mine(graph, work.spread(pieces), search, Limits(seconds), nowhere)
        work = Subtrees.from_bytes(done.left_over.to_bytes()).check(job_of(search).numbers(graph))
        yield done


def every_size(found: Leaves, most: int = 9) -> list[int]:
    """The numbers of small sizes, and of all together."""
    some = [of_size(found, p, q) for p, q in itertools.product(range(1, most), repeat=2)]
    return [*some, found.bicliques((1, None), (1, None))]


def of_size(found: Leaves, p: int, q: int) -> int:
    return found.bicliques((p, p), (q, q))


def random_graphs(seed: int, n: int):
    """Graphs of up to 8 x 8 vertices, with the numbers of their bicliques by the definition."""
    rng = np.random.default_rng(seed)
    for k in range(n):
        edges = random_edges(rng, *rng.integers(1, 9, 2).tolist(), rng.uniform(0.1, 0.95))
        yield k, whole_graph_of(edges, ("left", "right")[k % 2]), bicliques_by_size(edges)


def check(found: Leaves, expected, most: tuple[int, int] = (7, 7)):
    for p, q in itertools.product(range(1, most[0] + 1), range(1, most[1] + 1)):
        assert of_size(found, p, q) == expected[p, q]
    some = sum(n for (p, q), n in expected.items() if p <= 2 and 2 <= q <= most[1])
    assert found.bicliques((1, 2), (2, most[1])) == some
