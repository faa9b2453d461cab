"""Says before mining begins that a graph is too large for the device that is to search it."""

from __future__ import annotations

from kernels import engines
from pipeline.run.opened import Run
from pipeline.run.progress import size
from schemas.errors import ResourceError

__all__ = ["refuse_too_large"]

#: Bytes that any device has free on which engines run. For less no device is asked, because asking takes time.
_ANY_DEVICE = 1 << 30


def refuse_too_large(run: Run) -> None:
    """Refuse a run whose graph does not fit on the device of this process, beside the smallest buffers of its engine.

    Raises
    ------
    ResourceError
    """
    kind = engines.kind(run.options.engine)
    for search, graph in run.bands:
        needed = kind.device_bytes(graph, search, kind.platform.most_halvings)
        free = kind.platform.free_bytes() if needed > _ANY_DEVICE else None
        if free is not None and needed > free:
            raise ResourceError(
                f"the graph of {graph.n_edges:,} edges takes {size(needed)} on the device with the smallest "
                f"buffers of engine {kind.name}, and {size(free)} are free there; raise --min-left and --min-right, or "
                "begin anew with --engine cpu"
            )
