"""The receivers of an engine's bicliques."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bicliques.schemas.bicliques import Bicliques


class Emit(Protocol):
    """A receiver of batches of bicliques, one after the other."""

    @property
    def on_device(self) -> bool:
        """Whether it takes a batch as arrays of the engine's device (CuPy), too, and may keep the arrays that it gets.

        An engine should not copy such arrays to the host. The device may still be filling them. So a reader on another
        stream than that of the call must first wait for that stream. Their rows come in the blocks of `schemas.blocks`;
        those of a batch of host arrays have no order.
        """
        ...

    def __call__(self, batch: Bicliques, /) -> None:
        """Take a batch. Its arrays may change after the call, unless the receiver may keep them."""
        ...


class _Function:
    def __init__(self, function: Callable[[Bicliques], object], on_device: bool) -> None:
        self._function, self.on_device = function, on_device

    def __call__(self, batch: Bicliques, /) -> None:
        self._function(batch)


def emit_to(function: Callable[[Bicliques], object], on_device: bool = False) -> Emit:
    """Make an `Emit` of a function. ``on_device`` says whether it takes arrays of the device, too."""
    return _Function(function, on_device)


#: The receiver for searches that hand out nothing, or whose bicliques are not wanted.
nowhere = emit_to(lambda batch: None)
