"""Tiny graphs through every search of the GPU engines: what compute-sanitizer watches."""

from __future__ import annotations

import networkx as nx
import numpy as np

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.memory import GpuSizes
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cumbe.engine import CumbeEngine
from bicliques.kernels.cumbe.memory import CumbeSizes
from bicliques.schemas.search import Limits, Search
from tests.support.near import near_graph
from tests.support.one_kind import cover_of, edges_of, table
from tests.support.oracles import graph_of, random_edges, run, whole_graph_of
from tests.support.pivot import counted, every_size

SIZES = GpuSizes(
    row_cap=512, list_cap=1024, given=1 << 12, left_over=1 << 12, pool=1 << 18, values=1 << 15, records=1 << 12, warps=8
)._replace(poll=1, give_min=0, narrow=1)
CUMBE_SIZES = CumbeSizes(
    left_over=1 << 12, pool=1 << 18, values=1 << 15, records=1 << 12, blocks=4, shared_ints=256, poll=1
)


def main() -> None:
    """Mine them and compare with the CPU engine; an exception if they differ."""
    rng = np.random.default_rng(4)
    for shape in ((110, 9, 0.6), (30, 50, 0.3)):  # hubs; word problems, narrow and wide, and lattices
        graph = graph_of(random_edges(rng, *shape))
        expected = run(CpuEngine(), graph, Search("fingerprint"))
        for mode, limits in (("list", Limits()), ("count", Limits(seconds=0.002))):
            for engine in (BitMatrixEngine(sizes=SIZES), CumbeEngine(sizes=CUMBE_SIZES)):
                found = run(engine, graph, Search(mode), limits)
                if found.count != expected.count:
                    raise SystemExit(f"{engine.name}, {shape}: {found.count} bicliques, expected {expected.count}")
    for missing in ({"missing_pairs": 1}, {"missing_each": 1}):
        search = Search("list", min_left=4, min_right=4, **missing)
        graph = near_graph(random_edges(rng, 16, 16, 0.6), search)
        expected = run(CpuEngine(), graph, search)
        for limits in (Limits(), Limits(seconds=0.002)):
            found = run(BitMatrixEngine(sizes=SIZES), graph, search, limits)
            if found.count != expected.count:
                raise SystemExit(f"{missing}: {found.count} near-bicliques, expected {expected.count}")
    graph = whole_graph_of(random_edges(rng, 30, 30, 0.5))
    cover = cover_of(edges_of(nx.gnp_random_graph(40, 0.5, seed=4)))
    for own, pq, numbers in ((graph, "all", every_size), (cover, "cliques", table)):
        expected = numbers(counted(CpuEngine(), own, pq))
        for seconds in (None, 0.002):
            engine = BitMatrixEngine(sizes=SIZES._replace(row_cap=6))
            if numbers(counted(engine, own, pq, seconds=seconds)) != expected:
                raise SystemExit(f"wrong numbers of {pq}")


if __name__ == "__main__":
    main()
