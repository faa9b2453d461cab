"""Days in names of folders and files, such as those of a run that starts every night."""

from __future__ import annotations

import re
from datetime import date

_DAY = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")


def day_in(name: str) -> str | None:
    """The day in a name such as ``2026-01-31`` or ``day=2026-01-31``. None if the name holds no day, or several."""
    days = _DAY.findall(name)
    try:
        return date.fromisoformat(days[0]).isoformat() if len(days) == 1 else None
    except ValueError:  # 2026-99-99
        return None


def without_days(name: str) -> str:
    """The name with ``{date}`` in place of every day in it. So the inputs of two nights have the same name."""
    return _DAY.sub("{date}", name)
