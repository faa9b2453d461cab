"""Fixtures and options shared by the whole suite."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.kernels.suite", "tests.oracles")

settings.register_profile("quick", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--require-gpu", action="store_true", help="a skipped GPU test is a failure")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests whose devices are missing, and say why; with --require-gpu fail those that need one only."""
    devices = _device_count()
    for item in items:
        wanted = 1 if item.get_closest_marker("gpu") else 0
        multi = item.get_closest_marker("multi_gpu")
        wanted = multi.args[0] if multi else wanted
        if wanted > max(devices, 1 if config.getoption("--require-gpu") else 0):
            item.add_marker(pytest.mark.skip(reason=f"needs {wanted} CUDA device(s), found {devices}"))


def _device_count() -> int:
    try:
        import cupy
    except ImportError:
        return 0
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0
