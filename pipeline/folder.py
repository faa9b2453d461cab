"""The folder of a run: what is where, and files that are either whole or not there.

OUT/options.json                what identifies the run
    steps/{ingest,build,plan}.json   a step's facts, written last: the step is done
    edges/  labels/             the normalised input (`pipeline.ingest`)
    graph/                      the reduced graph and the labels, memory-mapped by workers
    plan/                       roots in dealing order, and their weights
    bicliques/part-*.parquet    the results
    summary/                    how many of each size, and in how many each vertex takes part
    ledger/<slice>.json         one entry a committed slice
    manifest.json               the proof, once complete
    report.html                 the run as a page with pictures
    run.lock                    while a driver works on the run
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.files import disk_errors, read_json, write_json
from pipeline.lock import locked
from pipeline.version import __version__
from schemas.bicliques import SCHEMA_VERSION
from schemas.errors import IncompleteError, InputError
from schemas.manifest import Manifest
from schemas.options import RunLimits, RunOptions

__all__ = ["RunFolder", "new_run"]

LOCK_FILE = "run.lock"


@dataclass(frozen=True)
class RunFolder:
    """Paths below the folder of a run, and its JSON files.

    Parameters
    ----------
    path : Path
    """

    path: Path

    @property
    def graph(self) -> Path:
        """The reduced graph and the memory-mapped labels."""
        return self.path / "graph"

    @property
    def plan(self) -> Path:
        """Roots in dealing order, and their weights."""
        return self.path / "plan"

    @property
    def bicliques(self) -> Path:
        """The Parquet parts."""
        return self.path / "bicliques"

    @property
    def summary(self) -> Path:
        """See `pipeline.summary`."""
        return self.path / "summary"

    @property
    def report(self) -> Path:
        """The run as a page with pictures."""
        return self.path / "report.html"

    @property
    def ledger(self) -> Path:
        """One JSON file a committed slice."""
        return self.path / "ledger"

    @property
    def manifest_file(self) -> Path:
        """There when the run is complete and proven."""
        return self.path / "manifest.json"

    @property
    def lock_file(self) -> Path:
        """See `pipeline.lock`."""
        return self.path / LOCK_FILE

    def options(self) -> RunOptions:
        """What identifies the run.

        Raises
        ------
        InputError
            If this is not the folder of a run.
        """
        return RunOptions.from_json(self._header()["options"])

    def limits(self) -> RunLimits:
        """The limits the run was last started with."""
        return RunLimits(**self._header()["limits"])

    def run_id(self) -> str:
        """A name no other run has, wherever its folder is."""
        return str(self._header()["run"])

    def write_options(self, options: RunOptions, limits: RunLimits) -> None:
        """Store what the run is; `limits` may be replaced later, `options` may not."""
        file = self.path / "options.json"
        run = self.run_id() if file.exists() else uuid.uuid4().hex
        header = {
            "run": run,
            "version": __version__,
            "schema_version": SCHEMA_VERSION,
            "options": options.to_json(),
            "limits": vars(limits),
        }
        write_json(file, header)

    def facts(self, step: str) -> dict[str, Any] | None:
        """What a finished step wrote down; None when it is not done."""
        file = self.path / "steps" / f"{step}.json"
        return read_json(file) if file.exists() else None

    def need(self, step: str) -> dict[str, Any]:
        """What a finished step wrote down.

        Raises
        ------
        IncompleteError
            If the step is not done.
        """
        facts = self.facts(step)
        if facts is None:
            raise IncompleteError(
                f"step {step} of {self.path} is not done; continue with: bicliques resume {self.path}"
            )
        return facts

    def finish(self, step: str, facts: dict[str, Any]) -> None:
        """Mark a step as done: written after everything else of the step."""
        (self.path / "steps").mkdir(exist_ok=True)
        write_json(self.path / "steps" / f"{step}.json", facts)

    def fresh(self, folder: Path) -> Path:
        """Make `folder`, empty, removing what an interrupted step may have left there."""
        with disk_errors(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        return folder

    def manifest(self) -> Manifest | None:
        """The proof of a complete run; None while there is none."""
        return Manifest.from_json(read_json(self.manifest_file)) if self.manifest_file.exists() else None

    def damage(self, manifest: Manifest) -> str | None:
        """The first file in ``bicliques/`` that is not as the manifest says, in words; None when all are."""
        named = {part.name: part.bytes for part in manifest.parts}
        there = {path.name: path.stat().st_size for path in self.bicliques.iterdir()}
        for name in sorted(named.keys() | there.keys()):
            size, expected = there.get(name, "no"), named.get(name, "none")
            if name not in named or size != expected:
                return f"{self.bicliques / name} has {size} bytes, but the manifest says {expected}"
        return None

    def _header(self) -> dict[str, Any]:
        file = self.path / "options.json"
        if not file.exists():
            raise InputError(f"{self.path} is not the folder of a run: it has no options.json")
        header = read_json(file)
        if header.get("schema_version") != SCHEMA_VERSION:
            raise InputError(
                f"{self.path} was made with schema version {header.get('schema_version')}, and this package reads "
                f"version {SCHEMA_VERSION}; use version {header.get('version')} of the package"
            )
        return header


@contextmanager
def new_run(path: Path) -> Iterator[RunFolder]:
    """Make the folder of a new run and hold its lock; when the block fails, everything made is removed again.

    Raises
    ------
    InputError
        If `path` exists and is not an empty folder, cannot be made, or another driver works in it.
    """
    made = _make(path)
    try:
        _refuse_content(path)
        with locked(path / LOCK_FILE):
            _refuse_content(path)
            try:
                yield RunFolder(path)
            except BaseException:
                for child in path.iterdir():
                    shutil.rmtree(child) if child.is_dir() else child.unlink()
                raise
    except BaseException:
        _unmake(made)
        raise


def _refuse_content(path: Path) -> None:
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError(f"the output folder {path} is not writable; name another one")
    if set(os.listdir(path)) - {LOCK_FILE}:  # noqa: PTH208 - only the names
        remedy = f"continue the run in it with: bicliques resume {path}" if (path / "options.json").exists() else ""
        raise InputError(
            f"the output folder {path} is not empty; name another one" + (f", or {remedy}" if remedy else "")
        )


def _make(path: Path) -> list[Path]:
    """Make `path` and what is missing above it; the folders made, innermost first."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _unmake([folder for folder in missing if folder.exists()])
        raise InputError(f"the output folder {path} cannot be made ({error.strerror}); name another one") from error
    return missing


def _unmake(made: list[Path]) -> None:
    for folder in made:
        folder.rmdir()
