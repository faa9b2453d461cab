"""Options of a run by their names, as the flow takes them."""

from typing import Any

import pytest

from bicliques.flows.mine import mine
from bicliques.pipeline.api.table import entries_of
from bicliques.schemas.errors import InputError


def grouped(**given) -> dict[str, Any]:
    """Parameters of the flow `mine`: options in their groups, everything else as it is."""
    groups = {entry.name: entry.told.group for entry in entries_of("flow")}
    found = {}
    for name, value in given.items():
        if name in groups:
            found.setdefault(groups[name], {})[name] = value
        else:
            found[name] = value
    return found


def refused(source, output="{date}", **options) -> str:
    """The sentence by which the flow `mine` refuses parameters. It does so before it speaks to a server."""
    given = mine.validate_parameters({"source": str(source), "output": str(output)} | grouped(workers=0, **options))
    with pytest.raises(InputError) as refusal:
        mine.fn(**given)
    return str(refusal.value)
