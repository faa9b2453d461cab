"""Fixtures and options shared by the whole suite."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.spread import home_of, keep_first, spread_products
from tests.support.disk import folder_in_memory, force_nothing
from tests.support.examples import take_few

pytest.register_assert_rewrite("tests.kernels.suite", "tests.support.oracles")

settings.register_profile("quick", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", parent=settings.get_profile("quick"), max_examples=20)
settings.register_profile("long", max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("quick")
force_nothing()
if (memory := folder_in_memory()) is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))  # below which pytest makes the folders of tests

#: What many tests need machine code for. Each is a program, because compiling keeps one core busy.
_COMPILE = (
    "engines.compile_engine('cpu', Search(min_left=2))",
    "engines.compile_engine('cpu', Search()); engines.compile_engine('cpu', Search('count', pq='all'))",
    "engines.compile_engine('cpu', Search(missing_pairs=1, min_left=3, min_right=3)); "
    "first_use.before_building(BuildOptions(), True); first_use.before_proving()",
)
_IMPORTS = (
    "from bicliques.kernels import engines; from bicliques.pipeline.slices import first_use; "
    "from bicliques.schemas.options import BuildOptions; from bicliques.schemas.search import Search"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--require-gpu", action="store_true", help="a skipped GPU test is a failure")
    parser.addoption("--every-case", action="store_true", help="of tests marked pairs or values the whole product")


def pytest_configure(config: pytest.Config) -> None:
    """`make test` takes fewer random examples."""
    if config.getoption("markexpr") == "not exhaustive":
        take_few()
        settings.load_profile("few")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile before there are several processes, each of which would compile the same at the same time."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; children inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if session.config.getoption("numprocesses", None) and not session.config.getoption("collectonly"):
        programs = [[sys.executable, "-c", f"{_IMPORTS}; {what}"] for what in _COMPILE]
        compiling = [subprocess.Popen(program, cwd=session.config.rootpath) for program in programs]
        if any([process.wait() for process in compiling]):
            raise pytest.UsageError("the compiled functions cannot be compiled")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What there is once all tests are there stays to the end, so that nobody looks through it for garbage.

    These are all modules and thousands of tests. Looking through them takes a second, again and again. Later garbage is
    looked for less often than usual: tests make little, and leave it soon.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadgroup`` the groups are `home_of`."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class ByHome(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return home_of(nodeid)

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            """Forget homes whose tests are through. After each test all tests of the homes of a process are counted."""
            super().mark_test_complete(node, item_index, duration)
            homes = self.assigned_work[node]
            home = home_of(self.registered_collections[node][item_index])
            if all(homes[home].values()):
                del homes[home]

    return ByHome(config, log)


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests whose devices are missing, and say why; with --require-gpu leave out those that need several only."""
    beyond = spread_products(items)
    keep_first(items)
    left_out = [] if config.getoption("--every-case") else beyond
    devices = _device_count()
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
        gone = {*map(id, left_out)}
        items[:] = [item for item in items if id(item) not in gone]


@pytest.fixture
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The edges of a module of tests as a file."""
    from tests.support.runs import write_edges

    return write_edges(tmp_path / "g.parquet", request.module.EDGES)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Generator[Any, None, None]:
    """A `tests.support.bucket.Bucket`, for tests that ask for one; importing its server takes a while."""
    from tests.support.bucket import bucket_of_moto

    with bucket_of_moto(monkeypatch) as there:
        yield there


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Any, None, None]:
    """`tests.support.stored.Machines`, the first of which knows nothing yet."""
    from tests.support.stored import machines_with_a_bucket

    with machines_with_a_bucket(tmp_path, monkeypatch) as there:
        yield there


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
