"""Sees to it that our packages are ours. Their names are general, and other software uses them, too."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120


def refuse_strangers() -> None:
    """Import the packages on which `pipeline` stands.

    Raises
    ------
    ImportError
        If one of them is another software's.
    """
    for name in ("kernels", "schemas"):
        ours(name)


def ours(name: str) -> ModuleType:
    """One of our four packages.

    Raises
    ------
    ImportError
        If another folder with this name comes first on ``sys.path``.
    """
    module = import_module(name)
    found = os.path.dirname(module.__file__ or "") or next(iter(module.__path__), "")  # noqa: PTH120
    wanted = os.path.join(_HOME, name)  # noqa: PTH118
    if os.path.realpath(found) != os.path.realpath(wanted):
        raise ImportError(
            f"the package {name} of bicliques is {wanted}, but {found} comes first on sys.path; "
            "rename that one, or give bicliques an environment of its own",
            name=name,
        )
    return module
