"""Looks at the rows that a reader of ``bicliques/`` would see, before every call that changes a file."""

import json
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

#: Calls of Python that change what is in a folder; of ``open`` only those that may write. Rows themselves are written
#: outside Python, and get their names by these.
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")


def seen_by_readers(out: Path) -> tuple[int, list[str]]:
    """How many files a reader of ``bicliques/*.parquet`` finds, and what is wrong with them."""
    files = sorted((out / "bicliques").glob("*.parquet"))  # before the ledger, in which entries only come
    counted = {}
    for entry in (out / "ledger").glob("[0-9]*.json"):
        try:
            counted.update({part["name"]: part["rows"] for part in json.loads(entry.read_text())["parts"]})
        except ValueError:  # damaged on purpose
            continue
    wrong, ids = [], Counter[Any]()
    for file in files:
        try:
            found = pq.ParquetFile(file).read(columns=["id"])["id"].to_pylist()
        except FileNotFoundError:  # another thread, or the call before, has removed it
            continue
        except (OSError, pa.ArrowException) as error:
            wrong.append(f"{file.name} cannot be read: {error}")
            continue
        ids.update(found)
        if file.name not in counted:
            wrong.append(f"{file.name} does not count")
        elif counted[file.name] != len(found):
            wrong.append(f"{file.name} has {len(found)} rows, not {counted[file.name]}")
    twice = [key for key, n in ids.items() if n > 1]
    return len(files), [*wrong, *(f"the row {key} is there twice" for key in twice)]


def watch(out: Path, record: Path, killed_at: int = 0) -> None:
    """From now on, write a line of JSON into `record` before every change below the folder of `out`: what was seen.

    The process is killed in the place of the change `killed_at`, from 1.
    """
    busy = threading.local()
    lock = threading.Lock()
    lines, n_changes = record.open("w"), 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if getattr(busy, "is_looking", False) or not _is_change(event, arguments, out.parent):
            return
        busy.is_looking = True
        try:
            with lock:
                n_files, wrong = seen_by_readers(out)
                lines.write(json.dumps({"call": f"{event} {arguments[0]}", "files": n_files, "wrong": wrong}) + "\n")
                lines.flush()
                nonlocal n_changes
                n_changes += 1
                if n_changes == killed_at:
                    os.kill(os.getpid(), signal.SIGKILL)
        finally:
            busy.is_looking = False

    sys.addaudithook(hook)


def _is_change(event: str, arguments: tuple[Any, ...], below: Path) -> bool:
    if event == "open":
        path, mode, flags = arguments
        if not (any(letter in str(mode) for letter in "wax+") if mode else flags & 3):
            return False
    elif event in _CHANGES:
        path = arguments[0]
    else:
        return False
    return isinstance(path, str) and path.startswith(f"{below}/")
