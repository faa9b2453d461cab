"""What the edges of a random graph are drawn from: its model, and left vertices with what is known of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

__all__ = ["Quadrants", "Rows", "Stubs", "begins_of"]


class Stubs(NamedTuple):
    """What `kernels.compiled.random_edges.draw_by_stubs` is told of a graph, in its words."""

    keys: np.ndarray
    grid: tuple[int, int, int]
    classes: tuple[np.ndarray, ...]
    shift: int


class Quadrants(NamedTuple):
    """What `kernels.compiled.random_edges.draw_by_quadrants` is told of a graph: its `quadrants`."""

    chances: np.ndarray


@dataclass(frozen=True, eq=False)
class Rows:
    """Left vertices whose neighbours are drawn.

    Parameters
    ----------
    vertices, degrees : ndarray of int64
        Left vertices, and how many neighbours to draw for each.
    firsts : ndarray of int64
        First stub of each. Empty without stubs.
    planted : (ndarray, ndarray) of int64
        As of `kernels.compiled.random_edges.draw_by_stubs`.
    """

    vertices: np.ndarray
    degrees: np.ndarray
    firsts: np.ndarray
    planted: tuple[np.ndarray, np.ndarray]

    def pick(self, which: np.ndarray) -> Rows:
        """Some of the rows, by their numbers (int64, ascending)."""
        starts, values = self.planted
        sizes = np.diff(starts)
        chosen = np.zeros(len(sizes), bool)
        chosen[which] = True
        planted = begins_of(sizes[which]), values[np.repeat(chosen, sizes)]
        return Rows(self.vertices[which], self.degrees[which], self.firsts[which if len(self.firsts) else []], planted)

    @cached_property
    def indptr(self) -> np.ndarray:
        """Where the neighbours of each begin, with the planted ones that noise leaves. int64."""
        starts, values = self.planted
        stays = np.concatenate([[0], np.cumsum(values >= 0)])[starts]
        return begins_of(self.degrees + np.diff(stays))

    @cached_property
    def spaces(self) -> np.ndarray:
        """The same with those that noise takes. int64."""
        return begins_of(self.degrees + np.diff(self.planted[0]))


def begins_of(sizes: np.ndarray) -> np.ndarray:
    """Where lists of these sizes begin, one behind the other, and where the last one ends. int64."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
