"""Graphs of one kind of vertices."""

import itertools
from collections import Counter
from collections.abc import Iterator

import networkx as nx
import numpy as np
import scipy.sparse as sp

from bicliques.kernels.graph.prepare import prepare
from bicliques.pipeline.results.cliques import cliques
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.leaves import Leaves
from bicliques.schemas.options import BuildOptions
from tests.support.known import dense_edges, known_graph

#: The connected graphs of 3 and 4 vertices, by name.
FORMS = {
    "wedges": nx.path_graph(3),
    "triangles": nx.complete_graph(3),
    "paths": nx.path_graph(4),
    "stars": nx.star_graph(3),
    "cycles": nx.cycle_graph(4),
    "tailed triangles": nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)]),
    "diamonds": nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3), (1, 3)]),
    "4-cliques": nx.complete_graph(4),
}


#: Edges, largest clique, 3-, 4-, 5- and 8-cliques, and for some 4-vertex motifs, of the right side of known graphs.
KNOWN = {
    "hyper_email_enron": (1_800, 18, (9_895, 34_887, 88_794, 310_236), (322_419, 121_626, 10_769, 309_746, 84_507)),
    "hyper_contact_high_school": (5_818, 23, (34_220, 134_700, 410_028, 3_409_767), None),
    "hyper_contact_primary_school": (8_317, 25, (103_760, 693_906, 2_985_971, 41_040_333), None),
    "hyper_email_eu": (
        29_299,
        35,
        (395_205, 3_393_670, 21_753_132, 1_700_598_425),
        (105_501_420, 60_745_280, 3_225_489, 66_613_228, 13_821_882),
    ),
    "hyper_ndc_classes": (6_222, 33, (40_541, 262_601, 1_437_622, 74_008_625), None),
    "dblp4_paper_author": (40_269, 20, (57_501, 80_575, 128_487, 383_619), None),
    "hyper_ndc_substances": (88_268, 55, (1_829_056, 29_355_818, 374_810_508, 240_529_927_523), None),
}


def table(found: Leaves) -> list[int]:
    """The numbers of cliques of 1, 2 and more vertices."""
    return [cliques(found, (k, k)) for k in range(1, 30)]


def by_definition(graph: nx.Graph) -> Counter[int]:
    """How many cliques there are of each number of vertices, one by one."""
    return Counter(map(len, nx.enumerate_all_cliques(graph)))


def motifs_of(graph: nx.Graph) -> dict[str, int]:
    """Looks at every set of 3 and 4 vertices."""
    found = dict.fromkeys(FORMS, 0)
    for size in (3, 4):
        for some in itertools.combinations(graph, size):
            own = graph.subgraph(some)
            for name, form in FORMS.items():
                found[name] += form.order() == size and nx.is_isomorphic(own, form)
    return found


def cover_of(edges: np.ndarray, order: str = "degree", side: str = "auto") -> MiningGraph:
    """The double cover of edges, shape (n, 2), as cliques are counted in it. Vertices without edges are left out."""
    ids, ends = np.unique(edges, return_inverse=True)
    both = ends.reshape(-1, 2)
    left, right = np.unique(np.concatenate([both, both[:, ::-1]]), axis=0).astype(np.int32).T
    options = BuildOptions(order=order, root_side=side)
    return prepare(left.copy(), right.copy(), len(ids), len(ids), options, reductions=frozenset())[0]


def random_graphs(seed: int, n: int, most: int = 11) -> Iterator[nx.Graph]:
    """Graphs of a few vertices, of any density, with at least one edge."""
    rng = np.random.default_rng(seed)
    while n:
        size = int(rng.integers(2, most + 1))
        found = nx.Graph(np.argwhere(np.triu(rng.random((size, size)) < rng.uniform(0.1, 0.95), 1)).tolist())
        if found.number_of_edges():
            n -= 1
            yield found


def edges_of(graph: nx.Graph) -> np.ndarray:
    """Its edges, shape (n, 2)."""
    return np.array(list(graph.edges()), np.int64).reshape(-1, 2)


def right_side(name: str) -> np.ndarray | None:
    """The right vertices of a known graph, joined if they share a left one, shape (n, 2). None when it is not here."""
    if known_graph(name) is None:
        return None
    left, right = dense_edges(known_graph(name)).T
    rows = sp.csr_array((np.ones(len(left), np.int64), (left, right)))
    shared = (rows.T @ rows).tocoo()
    wanted = shared.row < shared.col
    return np.column_stack([shared.row[wanted], shared.col[wanted]])
