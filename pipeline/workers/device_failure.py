"""Ends a worker process whose device has failed, because it cannot use the device any more."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from bicliques.schemas.errors import BicliqueError

logger = logging.getLogger(__name__)

#: Exit code of a worker whose device failed.
_DEVICE_FAILED = 70


def has_failed(error: BaseException | None, fatal: frozenset[str]) -> bool:
    """Whether an error has a name in `fatal`; see `schemas.platform.Platform`. Errors of this package have not."""
    return error is not None and not isinstance(error, BicliqueError) and type(error).__name__ in fatal


def guarded(function: Callable[[Any], Any], fatal: frozenset[str], argument: Any) -> Any:
    """Return ``function(argument)``. If the device fails, end this process, because its CUDA context is of no more use.

    Whoever watches over the process starts another one. The slices that this process had in hand are tried again
    elsewhere.
    """
    try:
        return function(argument)
    except Exception as error:
        if not has_failed(error, fatal):
            raise
        logger.critical("the GPU of process %d failed (%s); the process is replaced", os.getpid(), error)
        os._exit(_DEVICE_FAILED)
