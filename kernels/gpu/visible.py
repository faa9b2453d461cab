"""The GPUs that CUDA shows to this process, without starting CUDA.

To start it takes a quarter of a second for each GPU that the process sees (docs/lab/scaling.md).
"""

from __future__ import annotations

import functools
import os

from bicliques.kernels.gpu.nvml import Nvml

#: The variable that tells CUDA which GPUs it may show, and in which order.
VARIABLE = "CUDA_VISIBLE_DEVICES"


def named_devices() -> list[str] | None:
    """The GPUs that `VARIABLE` names. None if it is not set; then CUDA shows all that there are."""
    named = os.environ.get(VARIABLE)
    return None if named is None else [name.strip() for name in named.split(",") if name.strip() not in ("", "-1")]


@functools.cache
def numbered_devices() -> tuple[str, ...] | None:
    """All GPUs of this machine as `VARIABLE` would name them: ``"0"``, ``"1"``, and so on.

    None if only CUDA knows: where there is no NVML, where this process may not use some GPU of the machine, and where a
    GPU is divided into instances (MIG), of which CUDA shows one.
    """
    try:
        nvml = Nvml()
        devices = [nvml.device_at(k) for k in range(nvml.count())]
        is_divided = any(nvml.is_divided(device) for device in devices)
    except OSError:
        return None
    return None if is_divided else tuple(map(str, range(len(devices))))
