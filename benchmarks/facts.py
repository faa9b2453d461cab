"""What all benchmarks share: where the project is, what is known of the graphs, which commit is measured."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["DATA", "GOLDEN", "ROOT", "commit", "machine"]

ROOT = Path(__file__).parent.parent
#: Where the known graphs are that do not ship.
DATA = Path(os.environ.get("BICLIQUES_DATA", ROOT.parent / "shared" / "data"))
#: Maximal bicliques of the known graphs.
GOLDEN: dict[str, int] = {
    name: entry["bicliques"] for name, entry in json.loads((ROOT / "tests/golden/golden.json").read_text()).items()
}


def commit() -> str:
    """The commit measured, with a + when files differ from it; $BICLIQUES_COMMIT where there is no repository."""
    if "BICLIQUES_COMMIT" in os.environ:
        return os.environ["BICLIQUES_COMMIT"]
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
    changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True)
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def machine() -> dict[str, Any]:
    """What a time depends on, besides the devices."""
    return {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}
