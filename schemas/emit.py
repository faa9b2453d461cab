"""What an engine hands bicliques to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from schemas.bicliques import Bicliques

__all__ = ["Emit", "emit_to", "nowhere"]


class Emit(Protocol):
    """Takes batches of bicliques, one after the other."""

    @property
    def on_device(self) -> bool:
        """Whether it takes a batch as arrays of the engine's device (CuPy), too, and may keep the arrays that it gets.

        An engine that has them there had better not copy them to the host then. They may still be being filled: who
        reads them on a stream other than that of the call waits for that one first.
        """
        ...

    def __call__(self, batch: Bicliques, /) -> None:
        """Take a batch, whose arrays may change afterwards unless this one may keep them."""
        ...


class _Function:
    def __init__(self, function: Callable[[Bicliques], object], on_device: bool) -> None:
        self._function, self.on_device = function, on_device

    def __call__(self, batch: Bicliques, /) -> None:
        self._function(batch)


def emit_to(function: Callable[[Bicliques], object], on_device: bool = False) -> Emit:
    """An `Emit` of a function; ``on_device`` if it takes arrays of the device, too."""
    return _Function(function, on_device)


#: For searches that hand out nothing, or whose bicliques are not wanted.
nowhere = emit_to(lambda batch: None)
