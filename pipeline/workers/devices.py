"""Chooses the GPUs that a run uses: all that are visible, or those that the user names."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from importlib.util import find_spec

from bicliques.kernels.gpu.visible import named_devices, numbered_devices
from bicliques.schemas.errors import InputError, ResourceError

#: How a user names GPUs: a number, several numbers, or text as on the command line, ``"0,1"``.
Devices = int | str | Sequence[int]


def device_numbers(devices: Devices) -> tuple[int, ...]:
    """The numbers of the GPUs that are named. They count the visible GPUs from 0.

    Raises
    ------
    InputError
        If `devices` has another form.
    """
    named = devices.split(",") if isinstance(devices, str) else [devices] if isinstance(devices, int) else devices
    try:
        numbers = tuple(int(number) if isinstance(number, str) else operator.index(number) for number in named)
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or min(numbers) < 0:
        raise InputError(f"GPUs are numbers from 0, as 0,1 or [0, 1], not {devices!r}; correct --devices")
    return numbers


def visible_devices() -> list[str]:
    """The GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them. Empty if there is none.

    If that variable is not set, NVML is asked for the number of GPUs, and where it does not know, the CUDA driver.
    """
    named = named_devices()
    if named is not None:
        return named
    if find_spec("cupy") is None:
        return []
    numbered = numbered_devices()
    if numbered is not None:
        return list(numbered)
    import cupy

    try:
        return [str(k) for k in range(cupy.cuda.runtime.getDeviceCount())]
    except cupy.cuda.runtime.CUDARuntimeError:
        return []


def choose_devices(devices: Devices | None, workers: int | None) -> list[str]:
    """The GPUs to start a worker on, as ``CUDA_VISIBLE_DEVICES`` names them.

    Parameters
    ----------
    devices : int, str, sequence of int or None
        See `device_numbers`. None: all visible GPUs.
    workers : int or None
        Use only the first `workers` of them. None: all.

    Raises
    ------
    InputError
        If a device is not there or is named twice, or there are fewer devices than `workers`.
    ResourceError
        If there is no GPU at all.
    """
    visible = visible_devices()
    if not visible:
        raise ResourceError("a GPU engine was asked for, but no GPU is visible; choose --engine cpu")
    chosen = list(range(len(visible))) if devices is None else list(device_numbers(devices))
    for device in chosen:
        if device not in range(len(visible)):
            there = "GPU 0 only" if len(visible) == 1 else f"GPUs 0 to {len(visible) - 1}"
            raise InputError(f"there is no GPU {device} here, {there}; correct --devices")
    if len(set(chosen)) < len(chosen):
        raise InputError(f"a GPU is named twice in {chosen}; one worker per GPU is all it can serve")
    if workers is not None and workers > len(chosen):
        raise InputError(f"{workers} workers need a GPU each, and there are {len(chosen)}; lower --workers")
    return [visible[device] for device in chosen[:workers]]
