"""The left-over of a slice on its way from a worker to the workers that take it next.

The driver passes it on as it came. It deals nodes by their weights, so it needs to know of each node what a weight
depends on, and that comes beside the packed nodes. It unpacks them only to cut them into more, or to take a few out of
many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bicliques.pipeline.prepare.weights import SHAPE, shapes_of
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.work import Subtrees

#: Nodes ``start`` to ``stop - 1`` of a list that `Subtrees.to_bytes` packed: (packed, start, stop).
Packed = tuple[bytes, int, int]

#: A list of at most so many bytes is sent whole to a worker that takes some of its nodes. The driver cuts nodes out of
#: longer lists.
_PASSED_ON = 1 << 16


@dataclass(frozen=True)
class Roots:
    """Whole first-level subtrees for a worker. To pack them as nodes would take longer than to send them.

    Parameters
    ----------
    ranks : bytes
        Their roots, an array of int32.
    """

    ranks: bytes

    @classmethod
    def of(cls, ranks: np.ndarray) -> Roots:
        """The subtrees of these roots, in order."""
        return cls(np.asarray(ranks, VERTEX).tobytes())

    def nodes(self) -> Subtrees:
        """The nodes."""
        ranks = np.frombuffer(self.ranks, VERTEX)
        return Subtrees.of_roots(ranks.copy())  # compiled code wants arrays that may be changed


@dataclass(frozen=True)
class LeftOver:
    """Nodes that a slice did not finish.

    Parameters
    ----------
    packed : bytes
        The nodes, packed by `Subtrees.to_bytes`. Empty if there are none.
    outline : bytes
        An array of `pipeline.prepare.weights.SHAPE`, one per node.
    """

    packed: bytes = b""
    outline: bytes = b""

    @classmethod
    def of(cls, nodes: Subtrees) -> LeftOver:
        """Pack some nodes."""
        return cls(nodes.to_bytes(), shapes_of(nodes).tobytes()) if len(nodes) else cls()

    def __len__(self) -> int:
        return len(self.outline) // SHAPE.itemsize

    @property
    def shapes(self) -> np.ndarray:
        """What the weight of each node depends on, `pipeline.prepare.weights.SHAPE`."""
        return np.frombuffer(self.outline, SHAPE)

    def spread(self, pieces: int) -> LeftOver:
        """The same work in about `pieces` nodes, or in as many as there are; see `Subtrees.spread`."""
        if not self.packed or len(self) >= pieces:
            return self
        more = self._nodes.spread(pieces)
        return self if len(more) == len(self) else LeftOver.of(more)

    def some(self, start: int, stop: int) -> Packed:
        """Nodes ``start`` to ``stop - 1``, for a worker."""
        if len(self.packed) <= _PASSED_ON or stop - start == len(self):
            return self.packed, start, stop
        return self._nodes.take(start, stop).to_bytes(), 0, stop - start

    @cached_property
    def _nodes(self) -> Subtrees:
        return Subtrees.from_bytes(self.packed)


def unpacked(work: Sequence[Packed | Roots]) -> Subtrees:
    """The nodes that a worker was sent, in order."""
    return Subtrees.concat([some.nodes() if isinstance(some, Roots) else _some(*some) for some in work])


def _some(packed: bytes, start: int, stop: int) -> Subtrees:
    return Subtrees.from_bytes(packed).take(start, stop)
