"""What a reader of a page types, one thing after the other, in one interpreter: most takes less time than its start."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.house.tree import ROOT, clean_environment

#: Takes what is typed from the lines of the input: words of `bicliques` as a list, or a program as a text. After what
#: each prints it says its exit code.
_ALL = """
import json, sys
from bicliques.pipeline.cli.main import main
for line in sys.stdin:
    typed = json.loads(line)
    code = main(typed) if isinstance(typed, list) else exec(typed, {"__name__": "__main__"}) or 0
    print("ended with", code, flush=True)
"""


def printed(folder: Path, typed: Sequence[list[str] | str]) -> list[str]:
    """What each command and program prints that a reader types in a folder. None may fail."""
    ended = subprocess.run(
        [sys.executable, "-c", _ALL],
        cwd=folder,
        env=clean_environment(PYTHONPATH=str(ROOT), COLUMNS="120"),
        input="".join(f"{json.dumps(each)}\n" for each in typed),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    *each, rest = re.split(r"(?m)^ended with (\d+)\n", ended.stdout)
    for what, code in zip(typed, each[1::2], strict=False):
        assert code == "0", f"{what} gave {code}: {ended.stderr[-2000:]}"
    assert (ended.returncode, rest, len(each)) == (0, "", 2 * len(typed)), ended.stderr[-2000:]
    return each[::2]
