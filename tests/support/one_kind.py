"""Graphs of one kind of vertices."""

import itertools
from collections import Counter
from collections.abc import Iterator

import networkx as nx
import numpy as np
import scipy.sparse as sp

from bicliques.kernels.graph.prepare import prepare
from bicliques.schemas.graph import MiningGraph
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
