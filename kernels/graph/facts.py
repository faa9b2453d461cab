"""What is known of a graph on the way from the edge table to the search."""

from __future__ import annotations

from dataclasses import dataclass

from bicliques.schemas.search import Side


@dataclass(frozen=True)
class PrepareFacts:
    """Sizes of the graph on the way from the edge table to the search.

    ``core_*`` are vertices and edges of the core, and ``merged_*`` those after twins are merged. ``wedges_*``
    is the number of wedges to walk with that side as roots.
    """

    core_left: int
    core_right: int
    core_edges: int
    merged_left: int
    merged_right: int
    merged_edges: int
    wedges_left: int
    wedges_right: int
    root_side: Side
