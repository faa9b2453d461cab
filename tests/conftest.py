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
    """Skip tests whose devices are missing, and say why; with --require-gpu leave out those that need several only."""
    devices = _device_count()
    left_out = []
    for item in items:
        wanted = 1 if item.get_closest_marker("gpu") else 0
        multi = item.get_closest_marker("multi_gpu")
        wanted = multi.args[0] if multi else wanted
        if wanted <= devices:
            continue
        if not config.getoption("--require-gpu"):
            item.add_marker(pytest.mark.skip(reason=f"needs {wanted} CUDA device(s), found {devices}"))
        elif wanted > 1:
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With --require-gpu a skip is a failure, a module's too."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--require-gpu") and terminal is not None and terminal.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _device_count() -> int:
    try:
        import cupy
    except ImportError:
        return 0
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0
