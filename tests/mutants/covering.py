"""Which tests run a line: a plugin of pytest that notes it, and the map that is made of the notes.

    python -m tests.mutants.covering -n 3 --dist loadgroup -m "not exhaustive"

takes the arguments of pytest, and about twice its time. Lines are noted in this process, its threads, and its children
that end by themselves. Of compiled functions, whose lines nobody sees, it is noted who called them.
"""

import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.mutants.drawing import ROOMS
from tests.mutants.map import NOTES, ROOT, make_map

#: Which test is running; children of tests read it.
_TEST = "MUTANTS_TEST"
_NOTING = {
    "data_file": str(NOTES / "lines"),
    "data_suffix": True,
    "config_file": False,
    "include": [f"{ROOT}/{room}/*" for room in ROOMS],
    "messages": False,
}
#: What every child begins with, by a file in the folder of packages. A child that is killed writes nothing.
_IN_CHILDREN = f"""
import os
if os.environ.get("{_TEST}"):
    import atexit, coverage, multiprocessing.util
    noted = coverage.Coverage(context=os.environ["{_TEST}"], **{_NOTING!r})
    noted.set_option("run:disable_warnings", ["no-data-collected"])
    noted.start()
    atexit.register(lambda: (noted.stop(), noted.save()))
    multiprocessing.util.Finalize(None, lambda: (noted.stop(), noted.save()), exitpriority=1000)
"""


class Noting:
    """The plugin. Of each test it notes the lines (by `coverage`), the time, shared fixtures and compiled functions."""

    def __init__(self):
        self.tests = {}
        self.lines = coverage.Coverage(**_NOTING)
        self.lines.set_option("run:disable_warnings", ["no-data-collected"])
        self.lines.start()
        self._begin("")
        from bicliques.kernels.compiled.jit import Entry

        called = Entry.__call__

        def noted(entry: Entry, *arguments) -> int:
            self._of(os.environ[_TEST])["compiled"][f"{entry.module}.{entry.name}"] = True
            return called(entry, *arguments)

        Entry.__call__ = noted

    def _of(self, test: str) -> dict[str, Any]:
        return self.tests.setdefault(test, {"seconds": 0.0, "shared": [], "compiled": {}})

    def _begin(self, test: str):
        os.environ[_TEST] = test
        self.lines.switch_context(test)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item) -> Generator[None, object, object]:
        definitions = item._fixtureinfo.name2fixturedefs.values()
        shared = [f"{each.baseid}::{each.argname}" for some in definitions for each in some if each.scope != "function"]
        self._of(item.nodeid)["shared"] = shared
        self._begin(item.nodeid)
        try:
            return (yield)
        finally:
            self._begin("")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef) -> Generator[None, object, object]:
        """What several tests share is run for each of them."""
        before = os.environ[_TEST]
        if fixturedef.scope != "function":
            self._begin(f"{fixturedef.baseid}::{fixturedef.argname}")
        try:
            return (yield)
        finally:
            self._begin(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport):
        self._of(report.nodeid)["seconds"] += report.duration
        self._of(report.nodeid)[report.outcome] = True

    def pytest_unconfigure(self):
        self.lines.stop()
        self.lines.save()
        (NOTES / f"tests-{os.getpid()}.json").write_text(json.dumps(self.tests))


def pytest_configure(config: pytest.Config):
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Noting())


if __name__ == "__main__":
    shutil.rmtree(NOTES, ignore_errors=True)
    NOTES.mkdir(parents=True)
    (NOTES / "child.py").write_text(_IN_CHILDREN)
    in_children = Path(sysconfig.get_path("purelib")) / "mutants.pth"
    begin = f"exec(open({str(NOTES / 'child.py')!r}).read(), {{}})"
    in_children.write_text(f"import os; os.environ.get({_TEST!r}) and {begin}\n")
    try:
        pytest.main(["-p", "tests.mutants.covering", *sys.argv[1:]])
    finally:
        in_children.unlink(missing_ok=True)
    make_map(NOTES)
