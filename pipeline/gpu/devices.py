"""Which GPUs a run uses: all that are visible, or those the user names."""

from __future__ import annotations

import os
from collections.abc import Sequence

from schemas.errors import InputError, ResourceError

__all__ = ["choose_devices", "visible_devices"]


def visible_devices() -> list[str]:
    """GPUs this process may use, as ``CUDA_VISIBLE_DEVICES`` names them; empty without one.

    That variable decides where it is set, else the driver counts.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip() not in ("", "-1")]
    try:
        import cupy
    except ImportError:
        return []
    try:
        return [str(k) for k in range(cupy.cuda.runtime.getDeviceCount())]
    except cupy.cuda.runtime.CUDARuntimeError:
        return []


def choose_devices(devices: Sequence[int] | None, workers: int | None) -> list[str]:
    """GPUs to start a worker on, as ``CUDA_VISIBLE_DEVICES`` names them.

    Parameters
    ----------
    devices : sequence of int or None
        Positions among the visible ones, from 0; None for all.
    workers : int or None
        Use the first so many of them.

    Raises
    ------
    InputError
        If a device or a number of workers is named that is not there.
    ResourceError
        If there is no GPU at all.
    """
    visible = visible_devices()
    if not visible:
        raise ResourceError("a GPU engine was asked for, but no GPU is visible; choose --engine cpu")
    chosen = list(range(len(visible))) if devices is None else list(devices)
    for device in chosen:
        if device not in range(len(visible)):
            there = "GPU 0 only" if len(visible) == 1 else f"GPUs 0 to {len(visible) - 1}"
            raise InputError(f"there is no GPU {device} here, {there}; correct --devices")
    if len(set(chosen)) < len(chosen):
        raise InputError(f"a GPU is named twice in {chosen}; one worker a GPU is all it can serve")
    if workers is not None and workers > len(chosen):
        raise InputError(f"{workers} workers need a GPU each, and there are {len(chosen)}; lower --workers")
    return [visible[device] for device in chosen[:workers]]
