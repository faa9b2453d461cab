"""Functions that only compiled functions call: `kernels.compiled.jit` marks them, `making` beside it compiles them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Part:
    """A function to compile that only compiled functions call. Its code is part of that of its callers."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.dispatcher = function, None

    def __call__(self, *arguments: object) -> None:
        """Refuse."""
        name = self.function.__name__
        raise TypeError(f"{name} can be called from compiled code only; decorate it with `entry` instead")
