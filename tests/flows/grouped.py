"""Options of a run by their names, as the flow takes them."""

from __future__ import annotations

from typing import Any

from bicliques.pipeline.api.table import entries_of


def grouped(**given: Any) -> dict[str, Any]:
    """Parameters of the flow `mine`: options in their groups, everything else as it is."""
    groups = {entry.name: entry.told.group for entry in entries_of("flow")}
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name in groups:
            found.setdefault(groups[name], {})[name] = value
        else:
            found[name] = value
    return found
